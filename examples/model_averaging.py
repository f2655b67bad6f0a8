"""
Averaging models
================

How should predictions of several models be mixed? Stacking (Wolpert, 1992) learns the weights on predictions for
samples that a model has not seen. Weights that are at least 0 and sum to one never extrapolate beyond the models and
do not need tuning (Breiman, 1996): points of a simplex, of which few are not zero.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import RandomForestRegressor
from sklearn.model_selection import cross_val_predict, train_test_split
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

import condgrad as cg

X, y = load_diabetes(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=4)
models = {
    "Lasso": cg.ConstrainedLasso(),
    "forest": RandomForestRegressor(50, min_samples_leaf=5, random_state=0),
    "neighbours": make_pipeline(StandardScaler(), KNeighborsRegressor(15)),
    "kernel": make_pipeline(StandardScaler(), SVR(C=50.0)),
    "the mean": DummyRegressor(),
}

# %%
# The features of the second model are the predictions of the first ones, each made without the sample itself.

unseen = np.column_stack([cross_val_predict(model, X_train, y_train, cv=5) for model in models.values()])
problem = cg.Problem(unseen, y_train, cg.losses.Squared(), cg.constraints.Simplex())
result = cg.minimize(problem, tol=1e-6)
print(result)
print(dict(zip(models, result.w.round(3).tolist(), strict=True)))

# %%
# In this split the mixture is better on new samples than each of its parts. In others one model may be a little better:
# but nobody knows in advance which.

test = np.column_stack([model.fit(X_train, y_train).predict(X_test) for model in models.values()])
errors = dict(zip(models, np.sqrt(((test - y_test[:, None]) ** 2).mean(axis=0)), strict=True))
errors["equal weights"] = np.sqrt(np.mean((test.mean(axis=1) - y_test) ** 2))
errors["mixture"] = np.sqrt(np.mean((test @ result.w - y_test) ** 2))
for name, error in errors.items():
    print(f"{name:>14}: test RMSE {error:.2f}")

figure, (left, right) = plt.subplots(1, 2, figsize=(10.0, 3.6), layout="constrained")
left.barh(list(models), result.w, color="#0072b2")
left.set_xlabel("weight")
right.barh(list(errors), list(errors.values()), color=["#0072b2"] * len(models) + ["#999999", "#d55e00"])
right.set_xlim(0.9 * min(errors.values()), None)
right.set_xlabel("test RMSE")
plt.show()
