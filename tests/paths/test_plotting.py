"""Plots draw what runs hold, and refuse what they cannot draw in one sentence."""

import builtins

import numpy as np
import pytest
from covering import product_by_pairs

import condgrad as cg
from condgrad.datasets import simulate_regression
from condgrad.plotting import plot_comparison, plot_convergence
from condgrad.run.trace import Progress

pyplot = pytest.importorskip("matplotlib.pyplot")
pyplot.switch_backend("agg")


@pytest.fixture(autouse=True)
def close_figures():
    yield
    pyplot.close("all")


@pytest.fixture(scope="module")
def runs():
    """Runs that end with a gap above zero on any machine: the solution lies inside a face, between many vertices."""
    data = simulate_regression(40, 10, n_informative=6, noise=1.0, random_state=0)
    problem = cg.Problem(data.X, data.y, cg.losses.Squared(), cg.constraints.L1Ball(0.8 * np.abs(data.w).sum()))
    return {name: cg.minimize(problem, name, tol=1e-8, max_epochs=50) for name in ("fw", "away", "pairwise")}


def labels(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def strong_line(ax, label):
    return next(line for line in ax.get_lines() if line.get_label() == label)


@product_by_pairs(
    ("x", "y", "log_x"),
    ["seconds", "epoch", "gradient_evaluations"],
    ["gap", "suboptimality", "objective"],
    [True, False],
)
def test_axes_are_labelled_and_logarithmic(runs, x, y, log_x):
    ax = plot_convergence(runs, x=x, y=y, log_x=log_x)
    assert labels(ax) == ["fw", "away", "pairwise"]
    assert ax.get_xlabel() and ax.get_ylabel()
    assert (ax.get_xscale(), ax.get_yscale()) == ("log" if log_x else "linear", "log")
    ax.figure.canvas.draw()


def test_the_strong_line_is_the_best_gap_so_far(runs):
    ax = plot_convergence(runs["fw"], x="epoch")
    line = strong_line(ax, "FrankWolfe")
    trace = runs["fw"].trace
    np.testing.assert_array_equal(line.get_xdata(), trace.epoch)
    np.testing.assert_array_equal(line.get_ydata(), np.minimum.accumulate(trace.gap))


def test_suboptimality_is_measured_from_the_best_bound_of_all_runs(runs):
    ax = plot_convergence(runs, x="epoch", y="suboptimality")
    best = max(run.lower_bound for run in runs.values())
    found = strong_line(ax, "fw").get_ydata()
    expected = np.minimum.accumulate(runs["fw"].trace.objective - best)
    np.testing.assert_allclose(found, expected, atol=1e-10)
    assert (found > 0.0).all()


def test_draws_into_given_axes(runs):
    _, ax = pyplot.subplots()
    assert plot_convergence(runs["fw"], ax=ax) is ax


def test_lists_are_labelled_by_their_solvers(runs):
    assert labels(plot_convergence(list(runs.values()))) == ["FrankWolfe", "AwayStep", "Pairwise"]
    twice = labels(plot_convergence([runs["fw"], runs["fw"]]))
    assert len(set(twice)) == 2
    assert labels(plot_convergence(runs["fw"].trace)) == ["run 1"]


def test_records_without_a_place_on_a_logarithmic_axis_are_left_out():
    trace = cg.Trace()
    for epoch, gap in enumerate([1.0, 0.1, 0.0]):  # the first has x = 0, the last a gap of zero
        trace.append(
            Progress(**(dict.fromkeys(Progress._fields, 1.0) | {"step": epoch, "epoch": float(epoch), "gap": gap}))
        )
    line = strong_line(plot_convergence({"a": trace}, x="epoch"), "a")
    assert line.get_xdata().tolist() == [1.0]


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"x": "time"}, "x must be one of 'seconds', 'epoch', 'gradient_evaluations'; got 'time'."),
        ({"y": "loss"}, "y must be one of 'gap', 'suboptimality', 'objective'; got 'loss'."),
    ],
)
def test_unknown_axes_are_named(runs, wrong, sentence):
    with pytest.raises(ValueError, match="must be one of") as error:
        plot_convergence(runs, **wrong)
    assert str(error.value) == sentence


def test_what_is_not_a_run_is_refused(runs):
    for wrong in (3, [3], {"a": 3}):
        with pytest.raises(TypeError, match="runs must be a Result or a Trace"):
            plot_convergence(wrong)
    for nothing in ([], {}, cg.Trace()):
        with pytest.raises(ValueError, match="plot"):
            plot_convergence(nothing)


def test_suboptimality_needs_a_convex_loss():
    problem = cg.Problem([[1.0], [2.0]], [0.5, 1.0], cg.losses.Welsch(), cg.constraints.L1Ball(1.0))
    result = cg.minimize(problem, "fw", max_epochs=5)
    with pytest.raises(ValueError, match="convex"):
        plot_convergence(result, y="suboptimality")
    plot_convergence(result, x="epoch")


def test_without_matplotlib_it_says_what_to_install(runs, monkeypatch):
    real_import = builtins.__import__

    def no_matplotlib(name, *rest):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real_import(name, *rest)

    monkeypatch.setattr(builtins, "__import__", no_matplotlib)
    with pytest.raises(ImportError, match=r"pip install condgrad\[plot\]"):
        plot_convergence(runs)


def test_slopes_are_reference_lines(runs):
    ax = plot_convergence(runs["fw"], x="epoch", slopes=(1, 2))
    trace = runs["fw"].trace
    for label, p in (("1/t", 1), ("1/t^2", 2)):
        x, y = strong_line(ax, label).get_data()
        assert y[0] == trace.gap[0]
        assert np.log(y[1] / y[0]) == pytest.approx(-p * np.log(x[1] / x[0]))
    with pytest.raises(ValueError, match="use log_x=True"):
        plot_convergence(runs["fw"], log_x=False, slopes=(1,))


def test_objectives_that_are_not_positive_have_no_logarithm():
    problem = cg.Problem([[1.0], [2.0]], [1.0, 20.0], cg.losses.Poisson(), cg.constraints.L1Ball(1.0))
    with pytest.raises(ValueError, match="needs positive objectives"):
        plot_convergence(cg.minimize(problem, "fw", max_epochs=5), x="epoch", y="objective")


def test_comparison_shows_what_each_run_needed(runs):
    ax = plot_comparison(runs, goals=(1e-1, 1e-3, 1e-300), x="epoch")
    assert labels(ax) == ["fw", "away", "pairwise"]
    widths = np.array([bar.get_width() for bar in ax.patches]).reshape(3, 3)
    for k, run in enumerate(runs.values()):
        gap, epoch = run.trace.gap, run.trace.epoch
        expected = [epoch[np.argmax(gap <= goal)] if (gap <= goal).any() else 0.0 for goal in (1e-1, 1e-3, 1e-300)]
        assert widths[k].tolist() == expected
    assert len(ax.get_lines()) == np.count_nonzero(widths == 0.0) >= 3  # a cross for each gap not reached
    with pytest.raises(ValueError, match="goals must be positive gaps"):
        plot_comparison(runs, goals=())
