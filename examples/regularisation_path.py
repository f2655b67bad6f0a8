"""
A regularisation path
=====================

How do the coefficients grow as the budget does? ``lasso_path`` solves the Lasso for 100 radii and certifies each.
"""

import matplotlib.pyplot as plt
import numpy as np

import condgrad as cg
from condgrad import datasets
from condgrad.plotting import PathDisplay, plot_path_scores

data = datasets.simulate_regression(300, 1000, n_informative=8, noise=0.5, random_state=0)
train, test = slice(0, 200), slice(200, 300)
radii, coefs, info = cg.lasso_path(data.X[train], data.y[train], n_radii=100, eps=1e-2, fit_intercept=True)
print(f"{coefs.shape[1]} points in {info.passes:.0f} passes over the columns; largest relative gap:")
print(f"{info.relative_gap.max():.1e}")

# %%
# Radius and penalty are two names of one solution: ``info.alpha`` is the ``alpha`` of other libraries.

for k in (20, 60, 99):
    print(f"radius {radii[k]:6.2f}   alpha {info.alpha[k]:.4f}   {info.n_nonzero[k]:3} of 1000 features")

# %%
# The eight features that made y enter first; beyond some radius the path begins to fit noise, and the error on samples
# that were held out tells where.

error = ((data.y[test, None] - data.X[test] @ coefs.toarray() - info.intercept) ** 2).mean(axis=0)
best = int(error.argmin())
figure, (left, right) = plt.subplots(1, 2, figsize=(11.0, 4.0), layout="constrained")
PathDisplay.from_path((radii, coefs, info), n_labels=8, ax=left)
left.axvline(radii[best], color="grey", linestyle=":")
plot_path_scores(radii, error, n_nonzero=info.n_nonzero, best=best, ax=right)
plt.show()

# %%
found = set(np.flatnonzero(coefs[:, [best]].toarray()))
true = set(np.flatnonzero(data.w))
print(f"at radius {radii[best]:.2f}: {len(found & true)} of {len(true)} true features, {len(found - true)} others")
