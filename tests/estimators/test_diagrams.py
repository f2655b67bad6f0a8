"""Diagrams of notebooks show the gap wherever the estimator stands."""

import numpy as np
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import condgrad as cg
from condgrad import datasets

DATA = datasets.simulate_regression(60, 12, n_informative=4, noise=0.5, random_state=0)


def test_a_pipeline_and_a_search_show_the_gap_of_their_model():
    model = make_pipeline(StandardScaler(), cg.ConstrainedLasso(radius=1.0))
    assert '<div class="caption">gap' not in model._repr_html_()
    model.fit(DATA.X, DATA.y)
    caption = f"gap {model[-1].gap_:.2g}, {np.count_nonzero(model[-1].coef_)} of 12 coefficients"
    assert f'<div class="caption">{caption}</div>' in model._repr_html_()
    search = GridSearchCV(model, {"constrainedlasso__radius": [0.5, 1.0]}, cv=2).fit(DATA.X, DATA.y)
    assert '<div class="caption">gap ' in search._repr_html_()


def test_a_completed_matrix_shows_its_gap_and_rank():
    data = datasets.simulate_low_rank(20, 15, 2, 150, random_state=0)
    model = cg.MatrixCompletion(radius=10.0, tol=1e-2).fit(data.rows, data.cols, data.values)
    page = model._repr_html_()
    assert f"gap {model.gap_:.2g}, rank {model.rank_}" in page
    assert page.count("condgrad-report") == 1
