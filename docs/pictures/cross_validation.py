"""Cross-validation of the diabetes data, drawn from the fitted estimator."""

from sklearn.datasets import load_diabetes

import condgrad as cg
from condgrad.plotting import CVDisplay

X, y = load_diabetes(return_X_y=True, as_frame=True)
CVDisplay.from_estimator(cg.ConstrainedLassoCV(cv=10, selection="one-standard-error").fit(X, y))
