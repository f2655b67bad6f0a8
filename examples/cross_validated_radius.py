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
from condgrad.plotting import plot_path_scores

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
# The scores of all folds are kept.

loss = -search.score_path_
place = int(np.flatnonzero(search.radii_ == search.radius_)[0])
error = loss.std(axis=1, ddof=1) / np.sqrt(loss.shape[1])
ax = plot_path_scores(search.radii_, loss.mean(axis=1), error, best=place)
ax.set_ylabel("mean log loss of held-out samples")
plt.show()

# %%
# Without cross-validation ``radius=None`` follows a rule: where the objective falls a tenth as fast as from zero.

quick = make_pipeline(StandardScaler(), cg.ConstrainedLogisticRegression()).fit(X_train, y_train)
print(f"the rule says {quick[-1].radius_}; test accuracy {quick.score(X_test, y_test):.3f}")
