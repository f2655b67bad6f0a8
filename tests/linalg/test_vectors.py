"""Vectors of kernels: a scale, a tree and an array against plain NumPy, and how rounding behaves in them."""

import numba
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import condgrad as cg
from condgrad.compiled import kernel
from condgrad.constraints import Atom
from condgrad.linalg import scaled as scales
from condgrad.linalg.arrays import ArraySlices, ArrayVector
from condgrad.linalg.matrix import Matrix
from condgrad.linalg.max_tree import AbsScore, GroupScore, MaxTree, NegativeScore, WeightedScore, max_tree
from condgrad.linalg.scaled import Scaled, scaled
from condgrad.linalg.vectors import DenseVector
from condgrad.problems.active_atoms import active_atoms
from condgrad.problems.parabola import Parabola

D = 11
WEIGHTS = np.linspace(0.5, 2.0, D)
GROUPS = np.array([0, 1, 1, 2, 0, 3, 3, 3, 1, 4, 0])
GROUP_SCORE = GroupScore(GROUPS, 5)
MEMBERS = np.argsort(GROUPS, kind="stable")
OFFSETS = np.concatenate(([0], np.cumsum(np.bincount(GROUPS))))


def trees(values):
    """The tree of every score, with the question that its oracle asks and the answer by NumPy."""
    return {
        "abs": (max_tree(values.copy(), AbsScore()), lambda v: v.argmax_abs(), lambda v: np.abs(v).argmax()),
        "min": (max_tree(values.copy(), NegativeScore()), lambda v: v.argmin(), lambda v: v.argmin()),
        "weighted": (
            max_tree(values.copy(), WeightedScore(WEIGHTS)),
            lambda v: v.argmax_weighted(WEIGHTS),
            lambda v: (np.abs(v) / WEIGHTS).argmax(),
        ),
        "group": (
            max_tree(values.copy(), GROUP_SCORE),
            lambda v: v.best_group(MEMBERS, OFFSETS),
            lambda v: np.bincount(GROUPS, v**2).argmax(),
        ),
    }


ENTRIES = st.lists(st.integers(-8, 8), min_size=D, max_size=D).map(lambda v: np.array(v, dtype=float) / 4)
CHANGES = st.lists(st.tuples(st.integers(0, D - 1), st.integers(-8, 8)), max_size=25)


@given(ENTRIES, CHANGES)
def test_tree_finds_what_a_scan_finds(values, changes):
    """After every single addition, ties included: numbers are small fractions, so sums and squares are exact."""
    for name, (tree, ask, answer) in trees(values).items():
        v = values.copy()
        assert ask(tree) == answer(v)
        for j, quarter in changes:
            tree.add_at(j, quarter / 4)
            v[j] += quarter / 4
            assert ask(tree) == answer(v), name
            assert tree.at(j) == v[j]
        assert tree.to_array().tolist() == v.tolist()


@given(ENTRIES, CHANGES)
def test_dense_vector_finds_what_numpy_finds(values, changes):
    vector = DenseVector(values.copy())
    for j, quarter in changes:
        vector.add_at(j, quarter / 4)
    v = vector.to_array()
    assert vector.argmax_abs() == np.abs(v).argmax()
    assert vector.argmin() == v.argmin()
    squares = np.bincount(GROUPS, v**2)
    assert squares[vector.best_group(MEMBERS, OFFSETS)] == squares.max()


@pytest.mark.parametrize("d", [1, 2, 3, 8, 9, 255, 256, 257, 1000])
def test_sizes_of_every_kind(d):
    """Powers of two, one more, one less; a tree of a single leaf."""
    rng = np.random.default_rng(d)
    values = rng.standard_normal(d)
    tree, dense = max_tree(values.copy(), AbsScore()), DenseVector(values.copy())
    lowest = max_tree(values.copy(), NegativeScore())
    for _ in range(60):
        j, delta = int(rng.integers(d)), rng.standard_normal()
        for vector in (tree, dense, lowest):
            vector.add_at(j, delta)
        v = dense.values
        assert tree.argmax_abs() == dense.argmax_abs() == np.abs(v).argmax()
        assert lowest.argmin() == dense.argmin() == v.argmin()
    assert tree.size() == d


def test_tree_of_zeros_and_of_positive_values():
    """Leaves beyond the last entry must never win, whatever the sign of the scores."""
    assert max_tree(np.zeros(5), AbsScore()).argmax_abs() == 0
    assert max_tree(np.zeros(5), NegativeScore()).argmin() == 0
    tree = max_tree(np.full(5, 3.0), NegativeScore())
    assert tree.argmin() == 0
    tree.add_at(0, 1.0)
    assert tree.argmin() == 1
    for j in range(5):
        tree.add_at(j, 100.0 + j)
    assert tree.argmin() == 0  # 104 twice: the first


def test_every_node_is_the_best_below_it():
    rng = np.random.default_rng(0)
    for tree, _, _ in trees(rng.standard_normal(D)).values():
        for _ in range(200):
            tree.add_at(int(rng.integers(D)), rng.standard_normal())
        nodes, half = tree.tree, tree.tree.size // 2
        for k in range(1, half):
            assert nodes[k] == max(nodes[2 * k], nodes[2 * k + 1])
        fresh = max_tree(tree.values.copy(), tree.score)
        np.testing.assert_allclose(nodes[half:], fresh.tree[half:], rtol=1e-12)


def test_group_scores_survive_cancellation():
    """Running sums of squares: after many changes they are right to rounding of the largest one met."""
    rng = np.random.default_rng(1)
    tree = max_tree(10.0 * rng.standard_normal(D), GROUP_SCORE)
    for _ in range(20_000):
        j = int(rng.integers(D))
        tree.add_at(j, -0.01 * tree.at(j))
    exact = np.bincount(GROUPS, tree.values**2)
    half = tree.tree.size // 2
    np.testing.assert_allclose(tree.tree[half : half + 5], exact, rtol=0, atol=1e-12)
    assert (tree.tree[half : half + 5] >= 0.0).all()
    tree.set_to(tree.to_array())  # what a refresh does
    np.testing.assert_allclose(tree.tree[half : half + 5], exact, rtol=1e-14)


# The same answers from every vector ------------------------------------------------------------------------------


def every_vector(values):
    tree = max_tree(values.copy(), AbsScore())
    return {
        "dense": DenseVector(values.copy()),
        "tree": tree,
        "scaled": scaled(DenseVector(values.copy())),
        "scaled tree": scaled(max_tree(values.copy(), AbsScore())),
        "array": ArrayVector(values.copy()),
    }


@pytest.mark.parametrize("kind", ["dense", "tree", "scaled", "scaled tree", "array"])
def test_operations_are_those_of_a_vector(kind):
    rng = np.random.default_rng(2)
    v = rng.standard_normal(D)
    vector = every_vector(v)[kind]
    X = rng.standard_normal((4, D))
    rows = Matrix(X).rows
    rows = ArraySlices(rows) if kind == "array" else rows
    for _ in range(50):
        j, delta, factor, other = (
            int(rng.integers(D)),
            rng.standard_normal(),
            rng.uniform(0.0, 1.2),
            rng.standard_normal(D),
        )
        vector.add_at(j, delta)
        v[j] += delta
        vector.shrink(factor)
        v = factor * v
        vector.add_array(0.3, other)
        v = v + 0.3 * other
        np.testing.assert_allclose(vector.to_array(), v, rtol=1e-13, atol=1e-13)
        assert vector.at(j) == pytest.approx(v[j], abs=1e-13)
        assert vector.inner(other) == pytest.approx(v @ other, abs=1e-12)
        assert vector.dot_slice(rows, 2) == pytest.approx(v @ X[2], abs=1e-12)
        assert vector.argmax_abs() == np.abs(v).argmax()
    assert vector.size() == D
    vector.set_to(np.arange(D, dtype=float))
    assert vector.to_array().tolist() == list(range(D))
    assert vector.argmax_abs() == D - 1
    copy = vector.to_array()
    copy[:] = 0.0
    assert vector.at(3) == 3.0  # an array of its own


def test_array_vector_answers_every_oracle():
    rng = np.random.default_rng(3)
    v = rng.standard_normal(D)
    vector, dense = ArrayVector(v.copy()), DenseVector(v.copy())
    assert vector.argmin() == dense.argmin()
    assert vector.argmax_weighted(WEIGHTS) == dense.argmax_weighted(WEIGHTS)
    assert vector.best_group(MEMBERS, OFFSETS) == dense.best_group(MEMBERS, OFFSETS)


@pytest.mark.parametrize("store", [np.ascontiguousarray, np.asfortranarray, sp.csr_array, sp.csc_array])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_array_slices_are_the_slices_in_double_precision(store, dtype):
    rng = np.random.default_rng(4)
    X = (rng.standard_normal((5, D)) * (rng.random((5, D)) < 0.6)).astype(dtype)
    slices, exact = ArraySlices(Matrix(store(X)).rows), X.astype(np.float64)
    v = rng.standard_normal(D)
    for k in range(5):
        assert slices.dot_slice(k, v) == pytest.approx(exact[k] @ v, abs=1e-14)
        for j in range(D):
            assert slices.entry(k, j) == exact[k, j]
            assert Atom(j, 1.7).dot_row_of(slices, k) == 1.7 * exact[k, j]
        out = ArrayVector(v.copy())
        slices.add_slice(k, np.float64(0.7), out)
        np.testing.assert_allclose(out.to_array(), v + 0.7 * exact[k], rtol=0, atol=1e-15)


# The scale -------------------------------------------------------------------------------------------------------


def test_shrinking_to_zero_forgets():
    vector = scaled(DenseVector(np.array([1.0, -2.0])))
    vector.shrink(0.0)
    assert vector.to_array().tolist() == [0.0, 0.0]
    vector.add_at(1, 5.0)
    assert vector.to_array().tolist() == [0.0, 5.0]


@pytest.mark.parametrize("factor", [1e-30, 0.5, 1.0 - 1e-12, 1.5, 1e30])
def test_scale_stays_within_the_floats(factor):
    """Shrinking and growing for ever: the scale is multiplied in before it leaves the range of floats."""
    vector = scaled(DenseVector(np.array([3.0, 0.0])))
    for _ in range(3000):
        vector.shrink(factor)
        value = vector.at(0)
        vector.add_at(0, 1.0 - value)
        vector.add_at(1, 1.0 - vector.at(1))
        assert scales._SMALLEST <= vector.scale[0] <= 1.0 / scales._SMALLEST
        assert vector.scale[0] * vector.scale[1] == pytest.approx(1.0, abs=1e-15)
        np.testing.assert_allclose(vector.to_array(), 1.0, rtol=0, atol=1e-12 * max(1.0, factor))


def test_shrinking_is_constant_time(monkeypatch):
    """The stored entries are touched once in hundreds of halvings."""
    count = []
    plain = DenseVector.shrink
    monkeypatch.setattr(DenseVector, "shrink", lambda self, factor: count.append(1) or plain(self, factor))
    vector = scaled(DenseVector(np.ones(3)))
    for _ in range(3000):
        vector.shrink(0.5)
    assert len(count) == 3000 // 333  # 2^-333 is just below 1e-100


@kernel
def _blend_both(lazy, plain, index, value, gamma):
    for k in range(index.shape[0]):
        s = Atom(index[k], value[k])
        s.blend_into(lazy, gamma[k])
        s.blend_into(plain, gamma[k])


@pytest.mark.parametrize("steps", ["open loop", "constant", "away"])
def test_scaled_iterate_is_the_explicit_one_after_two_million_steps(steps):
    """w <- (1 - gamma) w + gamma s, with the scale and without it."""
    rng = np.random.default_rng(5)
    count = 2_000 if numba.config.DISABLE_JIT else 2_000_000
    t = np.arange(1, count + 1)
    gamma = {"open loop": 2.0 / (t + 2.0), "constant": np.full(count, 1e-3), "away": np.where(t % 2, -1e-3, 2e-3)}[
        steps
    ]
    index, value = rng.integers(D, size=count), np.where(rng.random(count) < 0.5, -2.0, 2.0)
    lazy, plain = scaled(DenseVector(np.full(D, 0.1))), DenseVector(np.full(D, 0.1))
    _blend_both(lazy, plain, index, value, gamma)
    np.testing.assert_allclose(lazy.to_array(), plain.to_array(), rtol=0, atol=1e-11)
    assert np.abs(plain.to_array()).max() > 1e-4


@kernel
def _add_both(tree, plain, index, delta, factor):
    for k in range(index.shape[0]):
        tree.shrink(factor)
        plain.shrink(factor)
        tree.add_at(index[k], delta[k])
        plain.add_at(index[k], delta[k])
        if tree.argmax_abs() != plain.argmax_abs():
            return k
    return -1


def test_scaled_tree_agrees_with_a_scan_for_ever():
    """Momentum's estimate: shrunk at every step, by which the scale runs out of range every 2000 steps or so."""
    rng = np.random.default_rng(6)
    tree, plain = scaled(max_tree(np.zeros(D), AbsScore())), DenseVector(np.zeros(D))
    count = 3_000 if numba.config.DISABLE_JIT else 300_000
    index, delta = rng.integers(D, size=count), rng.standard_normal(count)
    assert _add_both(tree, plain, index, delta, 0.9) == -1
    assert isinstance(tree, Scaled)
    assert isinstance(tree.vector, MaxTree)
    np.testing.assert_allclose(tree.to_array(), plain.to_array(), rtol=0, atol=1e-13)


# Atoms -----------------------------------------------------------------------------------------------------------


def weights_of(atoms):
    return {(int(atoms.index[k]), float(atoms.value[k])): float(atoms.weights[k]) for k in range(atoms.size())}


def check_places(atoms):
    held = {int(atoms.id_of(atoms.atom(k))): k for k in range(atoms.size())}
    assert len(held) == atoms.size()
    for number, place in enumerate(atoms.place):
        assert place == held.get(number, -1)


def test_atoms_follow_random_moves():
    """Towards, away and between, with drops: the weights are those of a dictionary, the index of places is sound."""
    rng = np.random.default_rng(7)
    atoms = active_atoms([(0.5, Atom(0, 2.0)), (0.25, Atom(0, -2.0)), (0.125, Atom(3, 2.0)), (0.125, Atom(3, 2.0))], 5)
    expected = {(0, 2.0): 0.5, (0, -2.0): 0.25, (3, 2.0): 0.25}
    assert weights_of(atoms) == expected
    for _ in range(500):
        s = Atom(int(rng.integers(5)), float(rng.choice([-2.0, 2.0])))
        k = int(rng.integers(atoms.size()))
        v = (int(atoms.index[k]), float(atoms.value[k]))
        move, is_longest = rng.integers(3), rng.random() < 0.3
        if move == 0:
            gamma = 1.0 if is_longest and rng.random() < 0.1 else rng.uniform(0.0, 0.5)
            atoms.step_towards(s, gamma)
            expected = {} if gamma == 1.0 else {a: (1.0 - gamma) * c for a, c in expected.items()}
            expected[tuple(s)] = expected.get(tuple(s), 0.0) + gamma
        elif move == 1 and atoms.size() > 1:
            longest = expected[v] / (1.0 - expected[v])
            gamma = longest if is_longest else 0.5 * longest
            atoms.step_away(k, gamma, longest)
            expected = {a: (1.0 + gamma) * c for a, c in expected.items()}
            expected[v] -= gamma
            if is_longest:
                del expected[v]
        elif move == 2 and tuple(s) != v:
            gamma = expected[v] if is_longest else 0.5 * expected[v]
            atoms.step_between(k, s, gamma, float(atoms.weights[k]) if is_longest else 1.0)
            expected[v] -= gamma
            expected[tuple(s)] = expected.get(tuple(s), 0.0) + gamma
            if is_longest:
                del expected[v]
        check_places(atoms)
        found = weights_of(atoms)
        assert found.keys() == expected.keys()
        assert found == pytest.approx(expected, abs=1e-12)
        assert sum(found.values()) == pytest.approx(1.0, abs=1e-12)
    w = np.zeros(5)
    for (j, value), weight in expected.items():
        w[j] += weight * value
    np.testing.assert_allclose(atoms.combination(5), w, rtol=0, atol=1e-12)
    norms = np.linspace(1.0, 2.0, 5)
    reach = sum(weight * abs(value) * norms[j] for (j, value), weight in expected.items())
    assert atoms.reach(norms) == pytest.approx(reach, abs=1e-12)


def test_an_atom_gives_nothing_to_itself():
    atoms = active_atoms([(0.5, Atom(1, 2.0)), (0.5, Atom(2, -2.0))], 3)
    atoms.step_between(0, Atom(1, 2.0), 0.5, 0.5)
    assert weights_of(atoms) == {(1, 2.0): 0.5, (2, -2.0): 0.5}


def test_worst_atom():
    atoms = active_atoms([(0.5, Atom(1, 2.0)), (0.25, Atom(2, -2.0)), (0.25, Atom(0, 0.0))], 3)
    assert atoms.worst(DenseVector(np.array([9.0, 1.0, -3.0]))) == 1
    assert atoms.worst(DenseVector(np.array([9.0, -1.0, 3.0]))) == 2
    check_places(atoms)


def test_minimiser_of_a_parabola():
    assert Parabola(1.0, 2.0).minimiser(0.5) == 0.5
    assert Parabola(1.0, 2.0).minimiser(0.4) == 0.4
    assert Parabola(0.1, 2.0).minimiser(0.5) == pytest.approx(0.05)
    assert Parabola(0.0, 2.0).minimiser(0.5) == 0.0
    assert Parabola(-1.0, 2.0).minimiser(0.5) == 0.0
    assert Parabola(1.0, 0.0).minimiser(0.5) == 0.5  # nothing bends along d


def test_starts_are_decomposed_into_atoms():
    for constraint, w0 in [
        (cg.constraints.L1Ball(2.0), [0.5, -0.25, 0.0]),
        (cg.constraints.Simplex(), [0.5, 0.25, 0.25]),
        (cg.constraints.NonnegativeL1Ball(2.0), [0.5, 0.0, 0.25]),
        (cg.constraints.WeightedL1Ball(2.0, [1.0, 2.0, 3.0]), [0.5, -0.1, 0.2]),
    ]:
        w0 = np.array(w0)
        problem = cg.Problem(np.eye(3), [1.0, -1.0, 1.0], cg.losses.Logistic(), constraint)
        run = cg.solvers.SFWPairwise().init(problem, w0, 0)
        np.testing.assert_allclose(run.arrays.atoms.combination(3), w0, rtol=0, atol=1e-15)
        check_places(run.arrays.atoms)
