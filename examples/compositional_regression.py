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
from condgrad.plotting import PathDisplay

# %%
# 150 persons and 60 kinds of bacteria (taxa), of which four matter. The data are simulated; public ones of this shape
# are the gut bacteria of Wu et al. (2011), which Lin et al. used.

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

# %%
# The whole path under the equation; the samples that were held out choose a radius.

radii, coefs, info = cg.lasso_path(X[train], y[train], rows="sum = 0", n_radii=25, eps=0.02, fit_intercept=True)
errors = ((y[test, None] - X[test] @ coefs.toarray() - info.intercept) ** 2).mean(axis=0)
best = int(errors.argmin())
w = coefs[:, [best]].toarray()[:, 0]
print(f"{radii.size} radii, the largest gap is {info.gap.max():.0e}")
print(f"radius {radii[best]:.2f}: {info.n_nonzero[best]} of {d} taxa, sum of coefficients {w.sum():+.0e}")
print("true taxa 2, 9, 17, 30; the largest four:", sorted(np.argsort(-np.abs(w))[:4].tolist()))

# %%
# What the equation buys: predictions do not depend on how deep a sample was sequenced, or on the units of the shares.
# The multiplier of the equation says what the loss would gain without it, per unit of the sum: little.

same = np.allclose(X[test] @ w, (X[test] + np.log(7.0)) @ w)
model = cg.ConstrainedLasso(radius=float(radii[best]), rows="sum = 0").fit(X[train], y[train])
print(f"the same predictions in other units: {same}; multiplier {model.multipliers_.eq[0]:+.3f}, gap {model.gap_:.0e}")

figure, (left, right) = plt.subplots(1, 2, figsize=(11.0, 4.0), layout="constrained")
PathDisplay(radii, coefs, names=[f"taxon {j}" for j in range(d)], chosen=float(radii[best])).plot(left, n_labels=6)
right.plot(radii, errors, "o-", color="#0072b2", markersize=4)
right.axvline(radii[best], color="0.4", linestyle="--")
right.set(xlabel="radius", ylabel="squared error of held-out samples")
plt.show()
