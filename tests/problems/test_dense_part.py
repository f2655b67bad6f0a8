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


def spread(atoms, x, n_features=30):
    w = np.zeros(n_features)
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


def test_atoms_that_had_weight_stay_first_and_others_without_weight_leave():
    problem = make()
    w = cg.minimize(problem, tol=1e-12).w
    used, useless = np.flatnonzero(w), np.flatnonzero(w == 0.0)
    # The first two lose their weight at once, and the last one never gets any; two that are needed are missing.
    atoms = stack([Atom(int(j), 3.0) for j in (*useless[:2], *used[:-2], useless[2])])
    x = np.zeros(len(atoms))
    x[:2] = 0.2, -0.3
    part = problem.look(spread(atoms, x)).dense_part()
    found, z, n_looks, is_close = part.minimise(atoms, x, 1e-9, 50, others(problem))
    assert is_close and n_looks > 0 and useless[2] not in found.index
    np.testing.assert_array_equal(found.index[:2], useless[:2])
    assert not z[:2].any()
    np.testing.assert_allclose(spread(found, z), w, atol=1e-4)


def many_features(ball, **settings):
    """Return a look at zero, and the sizes of the features in the ball."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 400))
    problem = cg.Problem(X, np.sign(X @ rng.standard_normal(400)), cg.losses.Logistic(), ball, **settings)
    features, values = ball.best_atoms(np.ones(400), 400)
    return problem.look(np.zeros(400)), np.abs(values)[np.argsort(features)]


def test_looks_end_at_the_goal():
    look, size = many_features(cg.constraints.L1Ball(10.0))
    counts = []
    for goal in (1e-1, 1e-8):
        rest = Others(size, 128, look.gap, goal, 20)
        found, x, n_looks, _ = look.dense_part().minimise(stack([Atom(3, 10.0)]), np.zeros(1), 1e-9, 50, rest)
        assert look.problem.gap(spread(found, x, 400)) <= goal
        counts.append(n_looks)
    assert counts[0] < counts[1] < 20


@pytest.mark.parametrize("limit", [{"room": 4}, {"most_looks": 0}])
def test_where_no_other_atom_may_join_it_is_exact_over_the_first_ones(limit):
    problem, atoms = make(), some_atoms()
    part = problem.look(np.zeros(30)).dense_part()
    found, x, n_looks, is_close = part.minimise(atoms, np.zeros(4), 1e-9, 50, others(problem, **limit))
    assert is_close and n_looks == (1 if "room" in limit else 0)
    np.testing.assert_array_equal(found.index, atoms.index)
    assert gap_over(problem, atoms, x) <= 1.01e-9


@pytest.mark.parametrize("l2", [0.0, 0.2])
def test_features_have_sizes_and_penalties_of_their_own(l2):
    """Over a weighted ball; most of the first atoms leave, and those that stay take their penalty along."""
    look, size = many_features(cg.constraints.WeightedL1Ball(10.0, np.linspace(0.2, 5.0, 400)), l2=l2)
    start = AtomStack(range(380, 400), size[380:])
    rest = Others(size, 400, look.gap, 1e-8, 20)
    found, x, n_looks, is_close = look.dense_part().minimise(start, np.zeros(20), 1e-9, 50, rest)
    assert is_close and n_looks > 1 and look.problem.gap(spread(found, x, 400)) <= 1.01e-8
    np.testing.assert_allclose(found.value, size[found.index])


def test_it_leaves_the_given_weights_alone():
    problem, atoms, x = make(), some_atoms(), np.array([0.2, 0.3, 0.0, -0.1])
    _, z, _, _ = problem.look(spread(atoms, x)).dense_part().minimise(atoms, x, 1e-9, 50)
    np.testing.assert_array_equal(x, [0.2, 0.3, 0.0, -0.1])
    assert not np.array_equal(x, z)


def test_a_goal_below_rounding_ends_early():
    problem, atoms = make(), some_atoms()
    _, x, _, is_close = problem.look(np.zeros(30)).dense_part().minimise(atoms, np.zeros(4), 0.0, 10_000)
    assert not is_close and gap_over(problem, atoms, x) <= 1e-12


def test_steps_are_shortened_where_f_would_grow():
    """Where a loss is almost straight, the whole way to the minimiser of its model leads from one side to the other."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 30))
    y = 10.0 * X[:, 7] + rng.standard_normal(60)
    problem = cg.Problem(X, y, cg.losses.PseudoHuber(0.1), cg.constraints.L1Ball(30.0))
    atoms, x = AtomStack(some_atoms().index, 10.0 * some_atoms().value), np.array([-0.5, 0.2, 0.2, 0.1])
    part = problem.look(spread(atoms, x)).dense_part()
    found = [part.minimise(atoms, x, 1e-9, max_rounds) for max_rounds in (0, 1, 2, 3, 5, 50)]
    values = [problem.objective(spread(atoms, z)) for _, z, _, _ in found]
    assert (np.diff(values) <= 1e-13).all() and values[1] < values[0] and found[-1][3]


def test_equal_columns():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((60, 30))
    X[:, 2] = X[:, 7]
    problem = cg.Problem(X, np.sign(X[:, 0] + X[:, 7]), cg.losses.Logistic(), cg.constraints.L1Ball(3.0))
    atoms = some_atoms()
    _, x, _, is_close = problem.look(np.zeros(30)).dense_part().minimise(atoms, np.zeros(4), 1e-9, 50)
    assert is_close and gap_over(problem, atoms, x) <= 1.01e-9
