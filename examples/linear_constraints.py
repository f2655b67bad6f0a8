"""
Lasso with linear constraints
=============================

Knowledge often comes as linear equations and inequalities of coefficients. Two ways to say it: write the oracle, where
it is easy, or give the inequalities to a ``Polytope``, whose oracle is a linear program.
"""

import matplotlib.pyplot as plt
import numpy as np

import condgrad as cg

# %%
# **Coefficients that sum to zero.** Where features are the logarithms of shares of a whole, only their ratios mean
# something: a log-contrast model has sum w = 0. The corners of {w : norm_1(w) <= radius, sum w = 0} are
# radius / 2 (e_j - e_k), so the oracle takes the entries of r that are smallest and largest.


def contrast_ball(radius):
    def lmo(r):
        s = np.zeros(r.size)
        s[r.argmin()] += radius / 2
        s[r.argmax()] -= radius / 2
        return s

    return cg.constraints.OracleSet(lmo, lambda w: max(np.abs(w).sum() - radius, abs(w.sum())), is_polytope=True)


rng = np.random.default_rng(0)
shares = rng.dirichlet(np.ones(40), size=300)
true = np.zeros(40)
true[[3, 7, 20, 31]] = [1.0, -0.6, -1.0, 0.6]
X = np.log(shares)
y = X @ true + 0.5 * rng.standard_normal(300)
problem = cg.Problem(X, y, cg.losses.Squared(), contrast_ball(3.2), intercept=True)
result = cg.minimize(problem, tol=1e-8)
print(
    f"{result.status.name}: gap {result.gap:.1e}, sum of w {result.w.sum():+.1e}, l1 norm {np.abs(result.w).sum():.4f}"
)
print("largest coefficients:", {int(j): round(float(result.w[j]), 2) for j in np.argsort(-np.abs(result.w))[:4]})

# %%
# **An effect that must not fall.** A dose is told by steps, x_j = 1 from dose j on; responses rise with the dose and
# level off. So w_1 >= w_2 >= ... >= w_d >= 0, and their sum, the largest effect, is at most 4.

d = 12
dose = rng.integers(0, d + 1, 400)
steps = (dose[:, None] > np.arange(d)).astype(float)
response = 4.0 * (1.0 - np.exp(-dose / 3.0)) + 1.0 * rng.standard_normal(400)
falls = np.eye(d, k=1)[:-1] - np.eye(d)[:-1]  # w_(j+1) - w_j <= 0
shape = cg.constraints.Polytope(
    A_ub=np.vstack([falls, np.ones(d)]), b_ub=np.append(np.zeros(d - 1), 4.0), bounds=(0.0, None)
)
free = cg.constraints.Box(np.full(d, -10.0), np.full(d, 10.0))
figure, ax = plt.subplots(layout="constrained")
ax.plot(dose + rng.uniform(-0.2, 0.2, 400), response, ".", markersize=2, color="grey")
for name, constraint in {"free": free, "concave and rising": shape}.items():
    fit = cg.minimize(cg.Problem(steps, response, cg.losses.Squared(), constraint), tol=1e-7)
    print(f"{name:>18}: objective {fit.objective:.4f}, gap {fit.gap:.1e}, {fit.status.name}")
    ax.plot(np.arange(d + 1), np.append(0.0, np.cumsum(fit.w)), label=name)
ax.plot(np.arange(d + 1), 4.0 * (1.0 - np.exp(-np.arange(d + 1) / 3.0)), "k:", label="truth")
ax.set_xlabel("dose")
ax.legend()
plt.show()
