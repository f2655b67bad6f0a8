"""Quadratic programs with many tied entries: the same minimisers as without groups, and systems that are solved."""

import numpy as np
import pytest
import scipy.sparse

from condgrad.linalg.polyhedron import Polyhedron
from condgrad.linalg.quadratic_program import QuadraticProgram
from condgrad.linalg.ties import TiedSystem, Ties

D = 150


def chain(d):
    return np.eye(d)[:-1] - np.eye(d)[1:]


def tree(rng, d, offset):
    """Return ties of a random tree, scaled and with either sign, and sides that need not be 0."""
    A = np.zeros((d - 1, d))
    for j in range(1, d):
        A[j - 1, [int(rng.integers(j)), j]] = rng.choice([-1.0, 1.0]) * rng.uniform(0.5, 2.0) * np.array([1.0, -1.0])
    return A, offset * rng.uniform(0.0, 0.1, d - 1)


def program(rng, A, below, ties, low=-3.0, high=3.0, fixed=0, equations=0):
    d = A.shape[1]
    X = rng.standard_normal((2 * d, d))
    bounds = np.full(d, low), np.full(d, high)
    for each in bounds:
        each[:fixed] = 0.0
    above = np.full(A.shape[0], -np.inf)
    above[:equations] = below[:equations]
    g = 2.0 * X.T @ rng.standard_normal(2 * d) + np.linspace(1.0, -1.0, d)
    return QuadraticProgram(g, X.T @ X, np.zeros(d), Polyhedron(*bounds, A, above, below), ties=ties)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kind", ["chain", "tree", "offsets", "other rows", "fixed", "repeated", "equations"])
def test_groups_change_no_minimiser(kind, seed):
    rng = np.random.default_rng(seed)
    A, below = (chain(D), np.zeros(D - 1)) if kind in ("chain", "fixed") else tree(rng, D, float(kind == "offsets"))
    if kind == "repeated":
        A, below = np.vstack([A, 2.0 * A[:40]]), np.append(below, 2.0 * below[:40])
    if kind == "other rows":
        A, below = np.vstack([rng.standard_normal((3, D)), A]), np.append([0.1, 0.2, 0.3], below)
    settings = {"fixed": 20 * (kind == "fixed"), "equations": 100 * (kind == "equations")}
    sparse = scipy.sparse.csr_array(A)
    ties = Ties.among(A)
    assert ties is not None
    ours = program(np.random.default_rng(seed), sparse, below, ties, **settings).minimise()
    plain = program(np.random.default_rng(seed), A, below, None, **settings).minimise()
    assert ours.is_exact and plain.is_exact
    np.testing.assert_allclose(ours.x, plain.x, atol=1e-9)
    assert ours.face.rows.any()


def test_systems_of_groups_solve_their_equations():
    rng = np.random.default_rng(0)
    A, _ = tree(rng, D, 0.0)
    A = scipy.sparse.csr_array(np.vstack([A, rng.standard_normal((2, D))]))
    X = rng.standard_normal((2 * D, D))
    rows = np.append(rng.permutation(D - 1)[:100], [D - 1, D])
    groups = Ties(A).on(np.arange(D), rows)
    assert groups.n_groups == D - 100
    p, q = rng.standard_normal(D), rng.standard_normal(rows.size)
    H = X.T @ X
    x, y = TiedSystem(H.copy(), A, rows, groups).solve(p, q)
    np.testing.assert_allclose(H @ x + A[rows].T @ y, p, atol=1e-9)
    np.testing.assert_allclose(A[rows] @ x, q, atol=1e-11)


def test_few_ties_cycles_and_other_rows_make_no_groups():
    assert Ties.among(chain(20)) is None
    assert Ties.among(np.random.default_rng(0).standard_normal((200, 5))) is None
    ring = np.vstack([chain(100), np.eye(100)[99:] - np.eye(100)[:1]])
    ties = Ties.among(ring)
    assert ties.on(np.arange(100), np.arange(100)) is None  # the last one depends on the others
    assert ties.on(np.arange(100), np.arange(99)).n_groups == 1
    assert ties.on(np.arange(50), np.arange(99)) is None  # most have an end that is fixed
