"""The Lasso path of the diabetes data, with the radius that cross-validation chooses."""

from sklearn.datasets import load_diabetes

import condgrad as cg
from condgrad.plotting import PathDisplay

X, y = load_diabetes(return_X_y=True, as_frame=True)
PathDisplay.from_estimator(cg.ConstrainedLassoCV(selection="one-standard-error").fit(X, y))
