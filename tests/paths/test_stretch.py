"""Points as arrays: single points, parts, joined and in another order; what a path hands over to its watchers."""

import numpy as np
import pytest

import condgrad as cg
from condgrad.paths.points import Solved
from condgrad.paths.stretch import Stretch


def points(*supports):
    return [
        Solved(np.array(support, dtype=np.int64), 10.0 * k + np.array(support, dtype=float), *(k + 0.1 * np.arange(7)))
        for k, support in enumerate(supports)
    ]


def same(one, other):
    assert len(one) == len(other)
    for mine, its in zip(one, other, strict=True):
        for a, b in zip(mine, its, strict=True):
            np.testing.assert_array_equal(a, b)


def test_points_come_out_as_they_went_in():
    given = points([1, 4], [], [0, 2, 3], [])
    stretch = Stretch.of(Solved, given)
    same(stretch, given)
    same([stretch[-2], stretch[-1]], given[-2:])
    same(stretch[1:3], given[1:3])
    same(stretch[:0], [])
    np.testing.assert_array_equal(stretch.column("gap"), [point.gap for point in given])
    assert Stretch.of(Solved, stretch) is stretch
    with pytest.raises(IndexError):
        stretch[4]


def test_features_ascend():
    (point,) = points([5, 0, 3])
    found = Stretch.of(Solved, [*points([1]), point])[1]
    np.testing.assert_array_equal(found.features, [0, 3, 5])
    np.testing.assert_array_equal(found.w, point.w[[1, 2, 0]])


def test_joined_and_in_another_order():
    given = points([1, 4], [], [0, 2, 3], [2], [])
    stretches = [Stretch.of(Solved, given[:2]), Stretch.of(Solved, given[2:3]), Stretch.of(Solved, given[3:])]
    joined = Stretch.joined(stretches)
    same(joined, given)
    same(joined.taken(np.array([3, 0, 2, 4, 1])), [given[k] for k in (3, 0, 2, 4, 1)])


@pytest.mark.parametrize("by", ["radii", "alphas"])
def test_a_watched_path_is_the_path_that_nobody_watches(by):
    rng = np.random.default_rng(5)
    X = rng.standard_normal((60, 40))
    y = np.where(X[:, 0] - X[:, 1] + rng.standard_normal(60) > 0.0, 1.0, -1.0)
    targets = {by: rng.permutation(np.append(np.geomspace(0.01, 0.2, 30), [] if by == "alphas" else [0.0]))}
    seen = []
    radii, coefs, info = cg.radius_path(X, y, fit_intercept=True, **targets)
    watched = cg.radius_path(X, y, fit_intercept=True, callback=seen.append, **targets)
    np.testing.assert_array_equal(watched[0], radii)
    np.testing.assert_array_equal(watched[1].toarray(), coefs.toarray())
    np.testing.assert_array_equal(watched[2].gap, info.gap)
    assert coefs.has_sorted_indices
    np.testing.assert_array_equal(np.diff(coefs.indptr), info.n_nonzero)
    order = np.argsort(-targets[by] if by == "alphas" else targets[by])
    np.testing.assert_array_equal([each.objective for each in seen], info.objective[order])
    np.testing.assert_array_equal([each.step for each in seen], 1 + np.arange(order.size))
    for each, k in zip(seen, order, strict=True):
        np.testing.assert_array_equal(each.w, coefs[:, [k]].toarray()[:, 0])
    assert np.all(np.diff([each.seconds for each in seen]) >= 0.0)
    np.testing.assert_allclose(seen[-1].seconds, watched[2].seconds.sum())


def test_a_callback_that_ends_the_path_within_a_stretch():
    rng = np.random.default_rng(6)
    X, y = rng.standard_normal((50, 8)), np.where(rng.standard_normal(50) > 0.0, 1.0, -1.0)
    radii = np.linspace(0.5, 0.1, 9)
    found, coefs, info = cg.radius_path(X, y, radii=radii, callback=lambda progress: progress.step == 4)
    assert info.status is cg.Status.STOPPED
    np.testing.assert_array_equal(found, radii[-4:])  # the smallest ones, in the order in which they were given
    assert coefs.shape == (8, 4)
    np.testing.assert_allclose(np.abs(coefs.toarray()).sum(axis=0), found)
