"""
General terms: a softmax of your own
====================================

How dark is a pixel, given its eight neighbours? The loss of a sample depends on three linear functions of it, one per
class, so this is a ``GeneralProblem``: the mean of terms given by their own values and derivatives. (For the softmax
itself there is a ``SoftmaxProblem``.) The samples are patches of scikit-learn's digits. Every solver makes the same
number of passes over them; a pass of tufw also takes the Hessians, and is dearer.
"""

from typing import NamedTuple

import numpy as np
from sklearn.datasets import load_digits

import condgrad as cg
from condgrad.terms import compiled_terms

N_CLASSES, RADIUS, PASSES = 3, 12.0, 30  # the classes are paper, grey and ink


@compiled_terms
class Softmax(NamedTuple):
    """f_i(w) = log sum_c exp(<x_i, w_c>) - <x_i, w_(y_i)>; w holds w_0, w_1 and w_2 one after the other."""

    X: np.ndarray
    y: np.ndarray

    is_convex = True

    def chances(self, i, w):  # the probabilities of the classes
        m, p = self.X.shape[1], np.zeros(N_CLASSES)
        for c in range(N_CLASSES):
            for j in range(m):
                p[c] += self.X[i, j] * w[c * m + j]
            p[c] = np.exp(p[c])  # of a number in [-RADIUS, RADIUS], as no entry of X is above 1
        return p / p.sum()

    def value(self, i, w):
        return -np.log(self.chances(i, w)[self.y[i]])

    def gradient(self, i, w):
        m, r, p = self.X.shape[1], np.empty(w.shape[0]), self.chances(i, w)
        for c in range(N_CLASSES):
            for j in range(m):
                r[c * m + j] = (p[c] - (c == self.y[i])) * self.X[i, j]
        return r

    def hessian_product(self, i, w, v):
        H = np.zeros((w.size, w.size))
        self.add_hessian(i, w, 1.0, H)
        return H @ v

    def add_hessian(self, i, w, c, H):  # H[a, b] += c p_a (1{a = b} - p_b) x x' for the blocks of classes a and b
        m, p = self.X.shape[1], self.chances(i, w)
        for a in range(N_CLASSES):
            for b in range(N_CLASSES):
                bend = c * p[a] * ((a == b) - p[b])
                for j in range(m):
                    for k in range(m):
                        H[a * m + j, b * m + k] += bend * self.X[i, j] * self.X[i, k]


patches = np.lib.stride_tricks.sliding_window_view(load_digits().images[::9], (3, 3), axis=(1, 2)).reshape(-1, 9)
X = np.hstack([np.delete(patches, 4, axis=1) / 16.0, np.ones((len(patches), 1))])
terms = Softmax(X, np.digitize(patches[:, 4], [1.0, 12.0]))
n_weights = N_CLASSES * X.shape[1]
problem = cg.GeneralProblem(terms, cg.constraints.L1Ball(RADIUS), n_samples=len(X), n_features=n_weights)
print(f"{len(X)} patches, {n_weights} weights; {PASSES} passes for each solver.")
print("solver             steps  seconds        gap  objective  lower bound")
for name, solver in {
    "fw, open loop": cg.solvers.FrankWolfe(cg.step_sizes.OpenLoop()),
    "fw, backtracking": cg.solvers.FrankWolfe(cg.step_sizes.Backtracking()),
    "tufw": cg.solvers.TUFW(),
    "tufw, adaptive": cg.solvers.TUFW(adaptive=True),
}.items():
    cg.minimize(problem, solver, max_steps=3)  # compiles, so that the clock sees the solver alone
    run = cg.minimize(problem, solver, tol=1e-6, max_epochs=PASSES)
    print(f"{name:<17}{run.n_steps:7}{run.seconds:9.2f}{run.gap:11.1e}{run.objective:11.5f}{run.lower_bound:13.5f}")
