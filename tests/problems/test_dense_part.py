"""F on some atoms alone, through a copy of their columns."""

import numpy as np
import pytest

import condgrad as cg
from condgrad.constraints.vertices import Atom
from condgrad.problems.active_set import AtomStack, stack
from condgrad.problems.dense_part import Others

LOSSES = [cg.losses.Logistic(), cg.losses.PseudoHuber(0.5), cg.losses.Squared()]

SETTINGS = [
    {},
    {"intercept": True},
    {"l2": 0.2},
    {"offset": np.linspace(-1.0, 1.0, 60)},
    {"sample_weight": np.arange(60.0), "intercept": True},
]


def make(loss=None, dtype=np.float64, order="C", **settings):
    rng = np.random.default_rng(0)
    X = np.asarray(rng.standard_normal((60, 30)), dtype=dtype, order=order)
    y = np.where(X @ rng.standard_normal(30) + 0.3 * rng.standard_normal(60) > 0.0, 1.0, -1.0)
    return cg.Problem(X, y, loss or cg.losses.Logistic(), cg.constraints.L1Ball(3.0), **settings)


def some_atoms():
    return stack([Atom(7, 3.0), Atom(2, -3.0), Atom(29, 3.0), Atom(11, 3.0)])


def spread(atoms, x):
    w = np.zeros(30)
    np.add.at(w, atoms.index, x * atoms.value)
    return w


def gap_over(problem, atoms, x):
    """Return the gap of F over the hull of the atoms and their negatives."""
    slopes = problem.look(spread(atoms, x)).gradient[atoms.index] * atoms.value
    return slopes @ x + np.abs(slopes).max()


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("loss", LOSSES)
def test_it_finds_the_minimum_over_the_atoms(loss, settings):
    problem, atoms = make(loss, **settings), some_atoms()
    found, x, n_looks, is_close = problem.look(np.zeros(30)).dense_part().minimise(atoms, np.zeros(4), 1e-9, 50)
    assert is_close and n_looks == 0 and np.abs(x).sum() <= 1.0 + 1e-12
    np.testing.assert_array_equal(found.index, atoms.index)
    np.testing.assert_array_equal(found.value, atoms.value)
    assert gap_over(problem, atoms, x) <= 1.01e-9


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_it_is_close_where_the_gap_of_the_problem_is_small(dtype, order):
    problem, atoms, x = make(dtype=dtype, order=order), some_atoms(), np.array([0.2, 0.3, 0.0, -0.1])
    part, gap = problem.look(spread(atoms, x)).dense_part(), gap_over(problem, atoms, x)
    for accuracy in (1.0 - 1e-9) * gap, (1.0 + 1e-9) * gap:
        _, z, _, is_close = part.minimise(atoms, x, accuracy, 0)
        np.testing.assert_array_equal(z, x)
        assert is_close == (accuracy >= gap)


def others(problem, **settings):
    r = problem.look(np.zeros(30)).gradient
    gap = 3.0 * np.abs(r).max()
    return Others(**{"sizes": np.full(30, 3.0), "room": 30, "gap": gap, "goal": 1e-8, "most_looks": 20} | settings)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("settings", SETTINGS)
def test_other_atoms_join_until_the_gap_over_all_features_is_small(settings, dtype, order):
    problem, atoms = make(dtype=dtype, order=order, **settings), some_atoms()
    part = problem.look(np.zeros(30)).dense_part()
    found, x, n_looks, is_close = part.minimise(atoms, np.zeros(4), 1e-9, 50, others(problem))
    assert is_close and n_looks > 0 and np.unique(found.index).size == len(found) == x.size
    assert np.abs(x).sum() <= 1.0 + 1e-12 and problem.gap(spread(found, x)) <= 1.01e-8


def test_atoms_that_had_weight_stay_first_and_those_that_lost_it_leave():
    problem, atoms, x = make(), some_atoms(), np.array([0.2, 0.3, 0.0, 0.0])
    part = problem.look(spread(atoms, x)).dense_part()
    w = cg.minimize(problem, tol=1e-12).w
    useless = stack([Atom(j, 3.0) for j in np.flatnonzero(w == 0.0)[:4]])
    found, z, _, _ = part.minimise(useless, x, 1e-9, 50, others(problem))
    np.testing.assert_array_equal(found.index[:2], useless.index[:2])
    assert not z[:2].any() and not np.isin(useless.index[2:], found.index[z != 0.0]).any()
    np.testing.assert_allclose(spread(found, z), w, atol=1e-4)


@pytest.mark.parametrize("limit", [{"room": 4}, {"most_looks": 0}])
def test_where_no_other_atom_may_join_it_is_exact_over_the_first_ones(limit):
    problem, atoms = make(), some_atoms()
    part = problem.look(np.zeros(30)).dense_part()
    found, x, n_looks, is_close = part.minimise(atoms, np.zeros(4), 1e-9, 50, others(problem, **limit))
    assert is_close and n_looks == (1 if "room" in limit else 0)
    np.testing.assert_array_equal(found.index, atoms.index)
    assert gap_over(problem, atoms, x) <= 1.01e-9


def test_features_have_sizes_of_their_own():
    """Over a weighted ball the best features are others than over a plain one."""
    weights = np.linspace(0.5, 2.0, 30)
    problem = make()
    weighted = cg.Problem(
        problem.matrix.X, problem.samples.y, problem.loss, cg.constraints.WeightedL1Ball(3.0, weights)
    )
    start = AtomStack([7], [3.0 / weights[7]])
    part = weighted.look(np.zeros(30)).dense_part()
    found, x, _, is_close = part.minimise(start, np.zeros(1), 1e-9, 50, others(problem, sizes=3.0 / weights))
    assert is_close and weighted.gap(spread(found, x)) <= 1.01e-8
    np.testing.assert_allclose(np.abs(found.value), 3.0 / weights[found.index])


def test_it_leaves_the_given_weights_alone():
    problem, atoms, x = make(), some_atoms(), np.array([0.2, 0.3, 0.0, -0.1])
    _, z, _, _ = problem.look(spread(atoms, x)).dense_part().minimise(atoms, x, 1e-9, 50)
    np.testing.assert_array_equal(x, [0.2, 0.3, 0.0, -0.1])
    assert not np.array_equal(x, z)


def test_a_goal_below_rounding_ends_early():
    problem, atoms = make(), some_atoms()
    _, x, _, is_close = problem.look(np.zeros(30)).dense_part().minimise(atoms, np.zeros(4), 0.0, 10_000)
    assert not is_close and gap_over(problem, atoms, x) <= 1e-12


def test_equal_columns():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((60, 30))
    X[:, 2] = X[:, 7]
    problem = cg.Problem(X, np.sign(X[:, 0] + X[:, 7]), cg.losses.Logistic(), cg.constraints.L1Ball(3.0))
    atoms = some_atoms()
    _, x, _, is_close = problem.look(np.zeros(30)).dense_part().minimise(atoms, np.zeros(4), 1e-9, 50)
    assert is_close and gap_over(problem, atoms, x) <= 1.01e-9
