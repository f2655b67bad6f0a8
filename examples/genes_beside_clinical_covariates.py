"""
Genes beside clinical covariates
================================

What do blood tests or genes tell more than age, sex and the like already do? The clinical covariates stay in the model
whatever they cost: they have weight 0 in the l1 norm, and the budget is spent on the others alone. Without that, the
covariates are shrunk or dropped, and what merely repeats them is selected.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

import condgrad as cg
from condgrad.plotting import PathDisplay

# %%
# First a small real table, which scikit-learn ships: 442 patients with diabetes, four covariates and six serum values
# (s1 to s6). ``feature_weight`` is the price of a feature: 1, or 0 for those named here. Cross-validation chooses the
# budget: the smallest one that predicts as well as the best, up to one standard error.

data = load_diabetes(as_frame=True, scaled=False)
table = (data.data - data.data.mean()) / data.data.std()
covariates = ["age", "sex", "bmi", "bp"]
serum = {
    "covariates are free": cg.ConstrainedLassoCV(
        feature_weight=dict.fromkeys(covariates, 0.0), selection="one-standard-error"
    ),
    "all pay": cg.ConstrainedLassoCV(selection="one-standard-error"),
}
for name, model in serum.items():
    model.fit(table, data.target)
    chosen = [f"{feature} {w:.1f}" for feature, w in zip(table.columns, model.coef_, strict=True) if w != 0.0]
    print(f"{name:>20}: gap {model.gap_:.0e}, budget {model.radius_:.1f}: {', '.join(chosen)}")

# %%
# Two serum values, s3 and s5, tell more than the covariates. Where all pay, age is dropped, the other three covariates
# are shrunk, and s1 and s6 come in.

figure, axes = plt.subplots(1, 2, figsize=(11.0, 4.0), sharey=True, layout="constrained")
for ax, (name, model) in zip(axes, serum.items(), strict=True):
    PathDisplay.from_estimator(model, ax=ax)
    ax.set_title(name, fontsize=10, loc="left")
plt.show()

# %%
# Now many features: 250 patients, 3 covariates, 1,000 genes. Five genes matter; forty others only follow the stage of
# the disease. These data are simulated; public ones of this shape are the breast tumours of METABRIC (Curtis et al.,
# 2012).

rng = np.random.default_rng(0)
n, n_genes = 250, 1000
age, sex, stage = rng.normal(0.0, 1.0, n), rng.choice([-1.0, 1.0], n), rng.normal(0.0, 1.0, n)
genes = rng.standard_normal((n, n_genes))
genes[:, 10:50] += 1.2 * stage[:, None]
genes[:, 10:50] /= np.sqrt(1.0 + 1.2**2)
logit = 0.8 * age - 0.4 * sex + 1.8 * stage + genes[:, :5] @ np.array([1.2, -1.2, 1.0, -1.0, 0.9])
y = np.where(logit + rng.logistic(size=n) > 0.0, 1.0, -1.0)
clinical = np.column_stack([age, sex, stage])
X = np.column_stack([clinical, genes])
weight = np.append(np.zeros(3), np.ones(n_genes))
models = {
    "covariates are free": cg.ConstrainedLogisticRegression(radius=2.5, feature_weight=weight),
    "all pay": cg.ConstrainedLogisticRegression(radius=4.5),
}
for name, model in models.items():
    w = model.fit(X, y).coef_[0]
    chosen = np.flatnonzero(w[3:])
    print(f"{name:>20}: gap {model.gap_:.0e}; age, sex, stage {w[:3].round(2)}")
    print(
        f"{'':>20}  {chosen.size} genes: {(chosen < 5).sum()} of 5 that matter, "
        f"{((chosen >= 10) & (chosen < 50)).sum()} that only follow the stage"
    )

# %%
# A free feature is minimised exactly, like the intercept: its slope at the answer is zero up to rounding, and the
# certificate covers it.

slopes = models["covariates are free"].result_.gradient[:3]
print(f"largest slope of a covariate: {np.abs(slopes).max():.0e}")

figure, axes = plt.subplots(2, 1, figsize=(7.5, 4.6), sharex=True, layout="constrained")
for ax, (name, model) in zip(axes, models.items(), strict=True):
    ax.vlines(np.arange(60), 0.0, model.coef_[0, 3:63], color="#0072b2", linewidth=2.0)
    ax.axvspan(-0.5, 4.5, color="#009e73", alpha=0.15)
    ax.axvspan(9.5, 49.5, color="#d55e00", alpha=0.08)
    ax.axhline(0.0, color="black", linewidth=0.6)
    ax.set_title(name, fontsize=10, loc="left")
    ax.set_ylabel("coefficient")
axes[-1].set_xlabel("gene (green: matter; orange: follow the stage)")
plt.show()
