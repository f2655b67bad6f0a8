"""
Cross-validated radius
======================

Which radius? Let the samples that were held out say. Two estimators do it: ``ConstrainedLassoCV`` and
``ConstrainedLogisticRegressionCV``. Every fold solves all radii, each from the last solution and each certified.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import condgrad as cg
from condgrad.plotting import CVDisplay

X, y = load_breast_cancer(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0, stratify=y)

# %%
# "best" takes the radius with the best mean score; the one-standard-error rule takes the smallest one that is not
# clearly worse, which is often a much sparser model.

for selection in ("best", "one-standard-error"):
    search = cg.ConstrainedLogisticRegressionCV(n_radii=15, cv=5, selection=selection)
    model = make_pipeline(StandardScaler(), search).fit(X_train, y_train)
    n_used = np.count_nonzero(search.coef_)
    print(f"{selection:>18}: radius {search.radius_:5.2f}, {n_used:2} features, test accuracy", end=" ")
    print(f"{model.score(X_test, y_test):.3f}, gap {search.gap_:.0e}")

# %%
# The picture comes from the fitted estimator: mean and standard error of the folds, and what both rules choose.

display = CVDisplay.from_estimator(search)
print(f"best {display.best_radius:.2f}, one standard error {display.one_standard_error_radius:.2f}")
plt.show()

# %%
# Without cross-validation ``radius=None`` is a quicker search: it holds out some samples once.

quick = make_pipeline(StandardScaler(), cg.ConstrainedLogisticRegression()).fit(X_train, y_train)
print(f"a quick search says {quick[-1].radius_}; test accuracy {quick.score(X_test, y_test):.3f}")
