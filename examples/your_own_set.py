"""
Your own set
============

A set is known by its oracle: given r, which point s of it has the smallest inner product with r? Take portfolios, with
no weight above a limit in any one asset: {w : w >= 0, sum w = 1, w <= most}. The oracle is greedy: fill the assets with
the smallest r up to the limit until the budget is spent.
"""

import matplotlib.pyplot as plt
import numpy as np

import condgrad as cg
from condgrad.testing import check_constraint_set

# %%
# The quick way is a plain object with a method ``lmo``.


class Portfolio:
    """{w : 0 <= w <= most, sum w = 1}."""

    def __init__(self, most):
        self.most = most

    def lmo(self, r):
        s, budget = np.zeros(r.size), 1.0
        for j in np.argsort(r, kind="stable"):
            s[j] = min(self.most, budget)
            budget -= s[j]
        return s


check_constraint_set(Portfolio(0.2), n_features=10)

# %%
# Which mixture of 30 assets follows an index best? A regression without intercept over the set.

rng = np.random.default_rng(0)
market = rng.standard_normal((500, 3)) * [1.0, 0.5, 0.3]
assets = market @ rng.uniform(-0.2, 1.0, (3, 30)) + 0.4 * rng.standard_normal((500, 30))
index = market @ [0.7, 0.4, 0.2] + 0.05 * rng.standard_normal(500)

figure, ax = plt.subplots(layout="constrained")
for most in (1.0, 0.1, 0.05):
    problem = cg.Problem(assets, index, cg.losses.Squared(), Portfolio(most))
    result = cg.minimize(problem, tol=1e-8)
    print(f"most {most:4}: objective {result.objective:.5f}, gap {result.gap:.0e}, sum {result.w.sum():.6f}, ", end="")
    print(f"largest {result.w.max():.3f}, {np.count_nonzero(result.w > 1e-9)} assets; {result.status.name}")
    ax.plot(np.sort(result.w)[::-1], marker="o", markersize=3, label=f"at most {most}")
ax.set_xlabel("asset, by weight")
ax.set_ylabel("weight")
ax.legend()
plt.show()

# %%
# The certificate comes from the oracle alone, so it holds for your set as for ours. For speed write the oracle as a
# compiled class (see "Add a constraint set"); this one is built in already, as Hypersimplex.

same = cg.constraints.Hypersimplex(10, radius=0.1)
result = cg.minimize(cg.Problem(assets, index, cg.losses.Squared(), same), tol=1e-8)
print(f"Hypersimplex: objective {result.objective:.5f}")
