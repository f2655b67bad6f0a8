"""What a radius means: the loss that it buys, and the rate at which it still falls."""

import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import scale

import condgrad as cg

X, y = load_diabetes(return_X_y=True)
X, y = scale(X), y - y.mean()
radii, _, info = cg.lasso_path(X, y, n_radii=100, eps=1e-3)
default = cg.ConstrainedLasso().fit(X, y).radius_
figure, (left, right) = plt.subplots(1, 2, figsize=(8.4, 3.2), layout="constrained")
left.plot(radii, info.objective, color="#0072b2")
left.set(xlabel="radius", ylabel="loss F(w)")
right.plot(radii, info.alpha, color="#d55e00")
right.set(xlabel="radius", ylabel="rate α(radius)")  # noqa: RUF001
for ax in (left, right):
    ax.axvline(default, color="0.4", linestyle="--", linewidth=1.0)
left.annotate(f"default: {default:g}", (default, info.objective[0]), xytext=(-4, 0), textcoords="offset points",
              ha="right", fontsize=9)  # fmt: skip
