"""
Compositional regression
========================

Which bacteria go with the body mass? Sequencing counts tell shares of a whole: only ratios mean something. A
regression on logarithms of shares whose coefficients **sum to zero** uses ratios alone, and a budget of the l1 norm
selects few of them (Lin et al., 2014). Both together are one set: the l1 ball, cut by one linear equation.
"""

import matplotlib.pyplot as plt
import numpy as np

import condgrad as cg

rng = np.random.default_rng(0)
n, d = 150, 60
abundance = rng.lognormal(mean=rng.normal(0.0, 1.0, d), sigma=0.9, size=(n, d))
depth = rng.uniform(500, 5000, n)  # how much was sequenced says nothing about the person
counts = rng.poisson(abundance / abundance.sum(axis=1, keepdims=True) * depth[:, None])
X = np.log((counts + 0.5) / (counts + 0.5).sum(axis=1, keepdims=True))
true = np.zeros(d)
true[[2, 9, 17, 30]] = [0.9, -0.9, 0.5, -0.5]
y = 25.0 + np.log(abundance) @ true + 0.8 * rng.standard_normal(n)
train, test = np.arange(n) < 100, np.arange(n) >= 100


def balanced(radius):
    """Return the models whose coefficients sum to zero, of l1 norm at most the radius."""
    return cg.constraints.LinearlyConstrained(cg.constraints.L1Ball(radius), A_eq=np.ones((1, d)), b_eq=[0.0])


# %%
# A path over the radius; the samples that were held out choose.

radii, fits, errors = np.linspace(0.5, 5.0, 10), [], []
for radius in radii:
    problem = cg.Problem(X[train], y[train], cg.losses.Squared(), balanced(radius), intercept=True)
    fits.append(cg.minimize(problem, tol=1e-7))
    errors.append(np.mean((y[test] - X[test] @ fits[-1].w - fits[-1].intercept) ** 2))
best = fits[int(np.argmin(errors))]
print(f"radius {radii[np.argmin(errors)]:.1f}: gap {best.gap:.1e}, sum of coefficients {best.w.sum():+.1e}")
print("test error by radius:", np.round(errors, 2))

# %%
# What the equation buys: predictions do not depend on how deep a sample was sequenced, or on which taxa were counted as
# "others". The multiplier of the equation says what the model would gain without it, per unit of the sum: little.

deeper = X[test] + np.log(7.0)  # shares in other units
same = np.allclose(X[test] @ best.w, deeper @ best.w)
print(f"the same predictions in other units: {same}; multiplier of the equation {best.multipliers.eq[0]:+.3f}")

order = np.argsort(best.w)
shown = np.concatenate([order[:6], order[-6:]])
figure, ax = plt.subplots(figsize=(7.0, 3.8), layout="constrained")
ax.bar(np.arange(12), best.w[shown], color=np.where(true[shown] != 0.0, "#d55e00", "#0072b2"))
ax.axhline(0.0, color="black", linewidth=0.8)
ax.set_xticks(np.arange(12), [f"taxon {j}" for j in shown], rotation=60)
ax.set_ylabel("coefficient (true ones in orange)")
plt.show()
