"""Displays draw paths and cross-validations, name what matters, and cover nothing."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.linear_model import Lasso

import condgrad as cg
from condgrad.datasets import simulate_classification, simulate_regression
from condgrad.paths.plotting.path_display import spread
from condgrad.plotting import CVDisplay, PathDisplay, plot_coefficient_path, plot_path_scores

pyplot = pytest.importorskip("matplotlib.pyplot")
pyplot.switch_backend("agg")

DATA = simulate_regression(60, 12, n_informative=4, noise=1.0, random_state=0)


@pytest.fixture(autouse=True)
def close_figures():
    yield
    pyplot.close("all")


@pytest.fixture(scope="module")
def lasso():
    return cg.ConstrainedLassoCV(cv=4, n_radii=12, selection="one-standard-error").fit(DATA.X, DATA.y)


def names_of(display):
    return [text.get_text() for text in display.labels_]


def numbers_on_top(ax):
    (top,) = [other for other in ax.figure.axes if other is not ax]
    return [text.get_text() for text in top.get_xticklabels()]


def legend_box_covers_a_line(ax):
    ax.figure.canvas.draw()
    box = ax.get_legend().get_window_extent()
    paths = [line.get_transform().transform_path(line.get_path()) for line in ax.get_lines()]
    return any(path.intersects_bbox(box, filled=False) for path in paths)


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csc_matrix])
def test_a_path_has_a_line_for_each_feature_that_is_not_zero(form):
    coefs = np.array([[3.0, 1.0, 2.0], [0.0, 0.0, 0.0], [-0.5, 0.0, 0.0]])
    display = PathDisplay([3.0, 1.0, 2.0], form(coefs), names=["a", "b", "c"]).plot()
    assert names_of(display) == ["a", "c"]
    np.testing.assert_array_equal(display.lines_[0].get_data(), [[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]])
    np.testing.assert_array_equal(display.lines_[1].get_ydata(), [0.0, 0.0, -0.5])
    assert numbers_on_top(display.ax_) == ["1", "1", "2"]
    _, mine = pyplot.subplots()
    assert plot_coefficient_path([1.0, 2.0, 3.0], coefs, ax=mine) is mine
    for wrong in (([1.0], coefs), ([1.0, 2.0, 3.0], coefs, ["a"]), ([[1.0]], coefs)):
        with pytest.raises(ValueError, match="must"):
            plot_coefficient_path(*wrong)


def test_a_wide_path_names_its_largest_features_only():
    coefs = np.outer(np.arange(-20.0, 21.0), [1.0, 2.0])
    display = PathDisplay([1.0, 2.0], coefs).plot(n_labels=3)
    assert names_of(display) == ["0", "40", "1"]
    assert len(display.lines_) == 40  # the one in the middle is zero
    colours = [line.get_color() for line in display.lines_]
    assert len(set(colours[:3])) == 3 and set(colours[3:]) == {"0.75"}


def test_names_are_kept_apart_and_in_order():
    heights = np.array([0.5, 0.51, 0.9, 0.495])
    found = spread(heights, 0.1)
    assert np.array_equal(np.argsort(found), np.argsort(heights))
    assert np.diff(np.sort(found)).min() >= 0.1 - 1e-12
    assert found[2] == 0.9
    assert spread(np.array([]), 0.1).size == 0


def test_a_path_comes_from_lasso_path_and_from_an_estimator(lasso):
    path = cg.lasso_path(DATA.X, DATA.y, alphas=[0.5, 0.2])
    display = PathDisplay.from_path(path, names=[f"x{j}" for j in range(12)], n_labels=2)
    np.testing.assert_array_equal(display.radii, np.sort(path[2].radius))  # radii, whatever was asked for
    assert all(name.startswith("x") for name in names_of(display))
    of_model = PathDisplay.from_estimator(lasso)
    assert of_model.chosen_.get_xdata()[0] == lasso.radius_
    assert of_model.figure_ is of_model.ax_.figure
    with pytest.raises(ValueError, match=r"Lasso has no fitted path \(coef_path_\)"):
        PathDisplay.from_estimator(Lasso())


def test_the_cross_validation_of_an_estimator(lasso):
    display = CVDisplay.from_estimator(lasso)
    mean = lasso.mse_path_.mean(axis=1)
    np.testing.assert_allclose(display.line_.get_ydata(), mean)
    assert display.best_radius == lasso.radii_[mean.argmin()]
    assert display.one_standard_error_radius == lasso.radius_ == display.chosen_.get_xdata()[0]
    error = lasso.mse_path_.std(axis=1, ddof=1)[mean.argmin()] / 2.0  # four folds
    assert display.limit_.get_ydata()[0] == pytest.approx(mean.min() + error)
    assert numbers_on_top(display.ax_)[-1] == str(np.count_nonzero(lasso.coef_path_[:, [-1]].toarray()))
    assert "4 folds" in display.ax_.get_ylabel()
    assert not legend_box_covers_a_line(display.ax_)


@pytest.mark.parametrize(
    ("scoring", "label", "is_score"),
    [(None, "loss of samples left out", False), ("accuracy", "accuracy", True), ("neg_log_loss", "log loss", False)],
)
def test_scores_are_drawn_as_what_they_are(scoring, label, is_score):
    data = simulate_classification(60, 5, random_state=0)
    model = cg.ConstrainedLogisticRegressionCV(radii=[0.5, 1.0, 4.0], cv=3, scoring=scoring).fit(data.X, data.y)
    _, ax = pyplot.subplots()
    display = CVDisplay.from_estimator(model, ax=ax)
    assert display.ax_ is ax
    assert ax.get_ylabel() == f"{label}, mean of 3 folds"
    expected = model.score_path_.mean(axis=1) * (1.0 if is_score else -1.0)
    np.testing.assert_allclose(display.line_.get_ydata(), expected)
    assert display.best_radius == model.radius_
    assert not legend_box_covers_a_line(ax)


def test_what_was_not_cross_validated_is_refused():
    with pytest.raises(ValueError, match="ConstrainedLasso holds no scores of a cross-validation"):
        CVDisplay.from_estimator(cg.ConstrainedLasso(radius=1.0).fit(DATA.X, DATA.y))


def test_path_scores_show_error_band_and_sparsity():
    ax = plot_path_scores([4.0, 1.0, 2.0], [0.4, 0.5, 0.3], [0.1, 0.1, 0.1], n_nonzero=[9, 1, 3], best=2)
    line = ax.get_lines()[0]
    np.testing.assert_array_equal(line.get_data(), [[1.0, 2.0, 4.0], [0.5, 0.3, 0.4]])
    assert "chosen: 2" in ax.get_legend_handles_labels()[1]
    assert numbers_on_top(ax) == ["1", "3", "9"]
    assert plot_path_scores([0.0, 1.0], [2.0, 1.0]).get_xscale() == "linear"  # zero has no logarithm
    with pytest.raises(ValueError, match="standard_error must have one entry per point"):
        plot_path_scores([1.0, 2.0], [1.0, 2.0], [1.0])
