"""F on some atoms alone, through a copy of their columns."""

import numpy as np
import pytest

import condgrad as cg
from condgrad.constraints.vertices import Atom
from condgrad.problems.active_set import stack

LOSSES = [cg.losses.Logistic(), cg.losses.PseudoHuber(0.5), cg.losses.Squared()]


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


SETTINGS = [
    {},
    {"intercept": True},
    {"l2": 0.2},
    {"offset": np.linspace(-1.0, 1.0, 60)},
    {"sample_weight": np.arange(60.0), "intercept": True},
]


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("loss", LOSSES)
def test_it_finds_the_minimum_over_the_atoms(loss, settings):
    problem, atoms = make(loss, **settings), some_atoms()
    part = problem.look(np.zeros(30)).dense_part(atoms)
    x, gap = part.minimise(np.zeros(4), 1e-9, 50)
    assert gap <= 1e-9 and np.abs(x).sum() <= 1.0 + 1e-12
    assert gap_over(problem, atoms, x) == pytest.approx(gap, abs=1e-12)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_gap_is_that_of_the_problem(dtype, order):
    problem, atoms, x = make(dtype=dtype, order=order), some_atoms(), np.array([0.2, 0.3, 0.0, -0.1])
    z, gap = problem.look(spread(atoms, x)).dense_part(atoms).minimise(x, 0.0, 0)
    np.testing.assert_array_equal(z, x)
    assert gap == pytest.approx(gap_over(problem, atoms, x), abs=1e-13)


def test_it_leaves_the_given_weights_alone():
    problem, atoms, x = make(), some_atoms(), np.array([0.2, 0.3, 0.0, -0.1])
    z, _ = problem.look(spread(atoms, x)).dense_part(atoms).minimise(x, 1e-9, 50)
    np.testing.assert_array_equal(x, [0.2, 0.3, 0.0, -0.1])
    assert not np.array_equal(x, z)


def test_a_goal_below_rounding_ends_early():
    problem, atoms = make(), some_atoms()
    x, gap = problem.look(np.zeros(30)).dense_part(atoms).minimise(np.zeros(4), 0.0, 10_000)
    assert gap <= 1e-12 and gap_over(problem, atoms, x) <= 1e-12


def test_equal_columns():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((60, 30))
    X[:, 2] = X[:, 7]
    problem = cg.Problem(X, np.sign(X[:, 0] + X[:, 7]), cg.losses.Logistic(), cg.constraints.L1Ball(3.0))
    atoms = some_atoms()
    x, gap = problem.look(np.zeros(30)).dense_part(atoms).minimise(np.zeros(4), 1e-9, 50)
    assert gap <= 1e-9 and gap_over(problem, atoms, x) <= 1.01e-9
