"""
Group sparsity
==============

Sometimes coefficients belong together: the columns of one categorical variable, the powers of one measurement, the
classes that one feature tells apart. The group ball {w : sum_g norm(w_g) <= radius} takes or leaves whole groups.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes, load_digits
from sklearn.preprocessing import SplineTransformer, scale

import condgrad as cg

# %%
# An additive model: each measurement becomes six splines, and a group of them is a function of it.

data = load_diabetes()
splines = SplineTransformer(n_knots=4, include_bias=False)
X, y = scale(splines.fit_transform(data.data)), data.target
per_feature = X.shape[1] // 10
groups = np.repeat(np.arange(10), per_feature)

for radius in (15.0, 30.0, 60.0):
    ball = cg.constraints.GroupBall(groups, radius)
    model = cg.ConstrainedRegressor(constraint=ball).fit(X, y)
    used = np.flatnonzero(np.linalg.norm(model.coef_.reshape(10, per_feature), axis=1))
    names = " ".join(data.feature_names[g] for g in used)
    print(f"radius {radius:3.0f}: R2 {model.score(X, y):.2f}, gap {model.gap_:.0e}, uses {names}")

# %%
# The l1 ball, to compare: it leaves single splines of many measurements.

lasso = cg.ConstrainedLasso(radius=100.0).fit(X, y)
touched = np.count_nonzero(np.abs(lasso.coef_.reshape(10, per_feature)).sum(axis=1))
print(f"Lasso: R2 {lasso.score(X, y):.2f}, {np.count_nonzero(lasso.coef_)} splines of {touched} measurements")

# %%
# Many classes: with ``multi_class="multinomial"`` and ``constraint="group"`` a pixel is in or out for all ten digits.

digits = load_digits()
X = digits.data / 16.0
figure, axes = plt.subplots(1, 3, figsize=(9.0, 3.2), layout="constrained")
for ax, radius in zip(axes, (4.0, 10.0, 25.0), strict=True):
    model = cg.ConstrainedLogisticRegression(radius, constraint="group", multi_class="multinomial", tol=1e-4)
    model.fit(X, digits.target)
    strength = np.linalg.norm(model.coef_, axis=0).reshape(8, 8)
    ax.imshow(strength, cmap="Greys")
    ax.set_title(f"radius {radius:.0f}: {np.count_nonzero(strength)} pixels\n{model.score(X, digits.target):.0%} right")
    ax.set_axis_off()
plt.show()
