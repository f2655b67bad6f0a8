"""Recommendations of completed matrices: best columns, likeness, ranges, biases with shrinkage."""

import numpy as np
import pytest
import scipy.sparse

import condgrad as cg
from condgrad import datasets
from condgrad.estimators._baselines import Baselines

D = datasets.simulate_low_rank(30, 20, 2, 400, noise=0.2, random_state=0)
USERS = [f"user {k}" for k in D.rows.tolist()]
FILMS = [("film", k) for k in D.cols.tolist()]


@pytest.fixture(scope="module")
def model():
    return cg.MatrixCompletion(20.0, loss="squared", tol=1e-4).fit(USERS, FILMS, D.values)


def test_recommended_are_the_best_unseen_columns(model):
    user = "user 3"
    known = {film for other, film in zip(USERS, FILMS, strict=True) if other == user}
    all_films = sorted(set(FILMS))
    p = dict(zip(all_films, model.predict([user] * len(all_films), all_films), strict=True))
    wanted = sorted((film for film in all_films if film not in known), key=lambda film: -p[film])[:4]
    items, scores = model.recommend(user, 4)
    assert items == wanted
    np.testing.assert_allclose(scores, [p[film] for film in wanted])
    every, _ = model.recommend(user, 100, new_only=False)
    assert set(every) == set(all_films)
    alone, _ = model.model_.recommend(user, 4, exclude=known)
    assert alone == items


def test_an_unknown_row_gets_the_largest_biases_and_a_warning(model):
    with pytest.warns(UserWarning, match="no entries in the fit; these are the columns with the largest biases"):
        items, scores = model.recommend("nobody", 3)
    order = np.argsort(-model.column_bias_)[:3]
    assert items == [model.ids_[1][k] for k in order]
    np.testing.assert_allclose(scores, model.intercept_ + model.column_bias_[order])


def test_similar_columns_have_the_largest_cosines(model):
    A, B = model.factors_
    W = A @ B.T
    places = model.ids_[1]
    cosines = W.T @ W[:, 0] / np.linalg.norm(W, axis=0) / np.linalg.norm(W[:, 0])
    wanted = [k for k in np.argsort(-cosines) if k != 0][:5]
    items, likeness = model.similar_items(places[0], 5)
    assert items == [places[k] for k in wanted]
    np.testing.assert_allclose(likeness, cosines[wanted])


def test_places_in_place_of_ids_and_ranges(tmp_path):
    low, high = -1.0, 1.0
    model = cg.MatrixCompletion(20.0, value_range=(low, high)).fit(D.rows, D.cols, D.values)
    free = cg.MatrixCompletion(20.0).fit(D.rows, D.cols, D.values)
    np.testing.assert_allclose(
        model.predict(D.rows, D.cols), np.clip(free.predict(D.rows, D.cols), low, high), atol=1e-12
    )
    items, scores = model.recommend(2, 3)
    assert all(isinstance(item, int) for item in items) and (scores <= high).all()
    assert items == free.recommend(2, 3)[0]  # clipped predictions do not tie
    model.save(tmp_path / "model.npz")
    loaded = cg.load_model(tmp_path / "model.npz")
    assert loaded.value_range == (low, high)
    np.testing.assert_array_equal(loaded.predict(D.rows, D.cols), model.predict(D.rows, D.cols))
    data = cg.MatrixCompletion(20.0, value_range="data").fit(D.rows, D.cols, D.values)
    assert data.model_.value_range == (D.values.min(), D.values.max())


def test_biases_with_shrinkage_are_ridge_regression():
    rng = np.random.default_rng(0)
    weight, k = rng.uniform(0.5, 2.0, D.values.size), 3.0
    found = Baselines.of(D.rows, D.cols, D.values, weight, (30, 20), k)
    Z = np.zeros((D.values.size, 50))
    Z[np.arange(D.values.size), D.rows] = 1.0
    Z[np.arange(D.values.size), 30 + D.cols] = 1.0
    mean = np.average(D.values, weights=weight)
    best = np.linalg.solve(Z.T @ (weight[:, None] * Z) + k * np.eye(50), Z.T @ (weight * (D.values - mean)))
    np.testing.assert_allclose(np.concatenate([found.rows, found.columns]), best, atol=1e-7)
    assert found.mean == pytest.approx(mean)


@pytest.mark.parametrize("make", [cg.MatrixCompletion, cg.MatrixCompletionCV])
def test_shrunk_biases_are_fixed_and_the_matrix_is_certified_for_them(make):
    radius = {"radius": 15.0} if make is cg.MatrixCompletion else {"radii": [10.0, 15.0], "cv": 2}
    model = make(loss="squared", bias_shrinkage=5.0, tol=1e-5, random_state=0, **radius).fit(D.rows, D.cols, D.values)
    fixed = Baselines.of(D.rows, D.cols, D.values, np.ones(D.values.size), (30, 20), 5.0)
    np.testing.assert_allclose(model.row_bias_, fixed.rows, atol=1e-9)
    np.testing.assert_allclose(model.column_bias_, fixed.columns, atol=1e-9)
    rest = D.values - fixed.at(D.rows, D.cols)
    plain = cg.MatrixCompletion(model.radius_, loss="squared", biases=False, tol=1e-5).fit(D.rows, D.cols, rest)
    errors = [np.mean((one.predict(D.rows, D.cols) - y) ** 2) for one, y in ((model, D.values), (plain, rest))]
    assert errors[0] == pytest.approx(errors[1], rel=1e-3) and model.gap_ <= 1e-5 * np.mean(rest**2)


def test_a_column_with_two_large_entries_is_not_recommended_to_all():
    rows, cols = np.append(D.rows, [0, 1]), np.append(D.cols, [20, 20])  # a new film, which two users praise
    values = np.append(D.values, [2.0, 2.0])
    top = {}
    for shrinkage in (0.0, 8.0):
        model = cg.MatrixCompletion(15.0, loss="squared", bias_shrinkage=shrinkage).fit(rows, cols, values)
        top[shrinkage] = sum(20 in model.recommend(user, 1)[0] for user in range(2, 30))
    assert top[0.0] > 20 and top[8.0] < top[0.0] / 2


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"value_range": (5, 1)}, "value_range must be two ascending numbers"),
        ({"value_range": "all"}, "value_range must be two ascending numbers, 'data' or None; got 'all'"),
        ({"bias_shrinkage": -1.0}, "bias_shrinkage must be a number of at least 0"),
        ({"bias_shrinkage": np.inf}, "bias_shrinkage must be finite"),
        ({"bias_shrinkage": 1.0, "biases": False}, "bias_shrinkage needs biases=True"),
        ({"bias_shrinkage": 1.0, "loss": "poisson"}, "needs a loss of y - p"),
    ],
)
def test_refusals(settings, sentence):
    with pytest.raises(ValueError, match=sentence):
        cg.MatrixCompletion(10.0, **settings).fit(D.rows, D.cols, np.abs(D.values))


def test_refusals_of_recommendations(model):
    with pytest.raises(ValueError, match="n must be a whole number of at least 1; got 0"):
        model.recommend("user 3", 0)
    with pytest.raises(ValueError, match="had no entries in the fit, so that nothing is like it"):
        model.similar_items(("film", 99))
    whole = cg.MatrixCompletion(10.0).fit(scipy.sparse.coo_matrix((D.values, (D.rows, D.cols))))
    assert len(whole.recommend(0, 2)[0]) == 2
