"""
Stochastic solvers on sparse data
=================================

Text makes wide, sparse matrices: many words, few in a document, most of them rare. A step of a stochastic solver on
such data costs what a few documents hold, whatever the number of samples and words.
"""

import matplotlib.pyplot as plt
import numpy as np

import condgrad as cg
from condgrad import datasets
from condgrad.plotting import plot_convergence

data = datasets.simulate_text(20_000, 200_000, words_per_document=60, random_state=0)
X = data.X
print(f"{X.shape[0]} documents, {X.shape[1]} words, {X.nnz / X.shape[0]:.0f} of them in a document on average")
problem = cg.Problem(X, data.y, cg.losses.Logistic(), cg.constraints.L1Ball(radius=20.0))

# %%
# SFW (Négiar et al., 2020) remembers the last derivative of every sample. Its steps take about a microsecond.

cg.minimize(problem, "sfw", max_epochs=0.01, random_state=0)  # compiles
run = cg.minimize(problem, "sfw", max_steps=400_000, tol=0.0, random_state=0, evaluate_every=4)
print(f"{run.n_steps} steps in {run.seconds:.2f} s: {1e6 * run.seconds / run.n_steps:.1f} microseconds a step")
print(f"objective {run.objective:.4f}, exact gap {run.gap:.3f}, {np.count_nonzero(run.w)} words")

# %%
# How do batches, and the memory of the samples, change the course of a run?

solvers = {
    "sfw, 1 sample": "sfw",
    "sfw, 200 samples": cg.solvers.SFW(batch_size=200),
    "momentum, 200 samples": cg.solvers.Momentum(batch_size=200),
    "svrf": "svrf",
}
runs = {
    name: cg.minimize(problem, solver, max_epochs=20, tol=0.0, random_state=0, evaluate_every=1)
    for name, solver in solvers.items()
}
plot_convergence(runs, x="epoch")
plt.show()

# %%
# For the last digits, hand the result to a method of full passes: it goes on from there.

exact = cg.minimize(problem, w0=runs["sfw, 200 samples"], tol=1e-7)
print(f"{exact.solver}\nobjective {exact.objective:.6f}, gap {exact.gap:.1e}, {np.count_nonzero(exact.w)} words")
