"""Batches: who is drawn how often, by every method; seeds, sizes and the sentences for wrong ones."""

import copy
import itertools
import math

import numpy as np
import pytest
import scipy.sparse as sp

import condgrad as cg
from condgrad.linalg.settings import as_generator
from condgrad.solvers.stochastic import sampling
from condgrad.solvers.stochastic.sampling import (
    METHODS,
    Sampler,
    alias_table,
    check_method,
    resolve_batch_size,
)

N = 10
IMPORTANCE = np.array([0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 7.5])
# Chi-square quantiles by degrees of freedom: a right sampler passes with a chance of 1 - 1e-5. The seeds are fixed.
CHI_SQUARE = {5: 30.86, 9: 39.34, 44: 95.92, 99: 170.8}


def sampler(method, seed=0, n=N):
    return Sampler(n, method, np.random.default_rng(seed), IMPORTANCE if method == "importance" else None)


def batches(method, b, count, seed=0, n=N):
    drawn = sampler(method, seed, n).draw(np.full(count, b))
    return drawn.indices.reshape(count, b)


def chi_square(counts, chances):
    expected = counts.sum() * np.asarray(chances)
    return ((counts - expected) ** 2 / expected).sum()


# Who is drawn ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("b", [1, 3, 10])
@pytest.mark.parametrize("method", ["replacement", "batch", "epoch", "blocks"])
def test_every_sample_is_equally_likely(method, b):
    """Over many samplers, in the first batch and in later ones: those must not depend on what came before."""
    draws = np.array([batches(method, b, 4, seed) for seed in range(3000)])
    for k in range(4):
        for q in (0, b - 1):
            counts = np.bincount(draws[:, k, q], minlength=N)
            assert chi_square(counts, np.full(N, 1 / N)) < CHI_SQUARE[9]


@pytest.mark.parametrize("method", ["replacement", "batch"])
def test_batches_do_not_depend_on_each_other(method):
    """Pairs from consecutive batches: all 100 equally likely."""
    draws = batches(method, 2, 60_000)
    pairs = np.bincount(N * draws[:-1:2, 0] + draws[1::2, 1], minlength=100)
    assert chi_square(pairs, np.full(100, 0.01)) < CHI_SQUARE[99]


def test_batch_is_a_uniform_subset():
    draws = np.sort(batches("batch", 2, 45_000), axis=1)
    assert (draws[:, 0] < draws[:, 1]).all()  # distinct
    subsets = list(itertools.combinations(range(N), 2))
    counts = np.array([((draws[:, 0] == i) & (draws[:, 1] == j)).sum() for i, j in subsets])
    assert chi_square(counts, np.full(45, 1 / 45)) < CHI_SQUARE[44]


@pytest.mark.parametrize("b", [1, 4, 7, 10])
def test_batch_has_no_sample_twice(b):
    for batch in batches("batch", b, 500):
        assert len(set(batch.tolist())) == b


def test_replacement_has_some_sample_twice():
    assert any(len(set(batch.tolist())) < 7 for batch in batches("replacement", 7, 20))


@pytest.mark.parametrize("b", [1, 3, 4, 10])
def test_epoch_sees_each_sample_once(b):
    """Whatever the batch size, and across the batch that an epoch ends in."""
    indices = sampler("epoch").draw(np.full(60, b)).indices
    epochs = indices[: len(indices) // N * N].reshape(-1, N)
    assert (np.sort(epochs, axis=1) == np.arange(N)).all()
    assert len({epoch.tobytes() for epoch in epochs}) == len(epochs)  # and in another order each time


def test_epoch_orders_are_uniform():
    draws = np.array([sampler("epoch", seed, 3).draw(np.full(3, 1)).indices for seed in range(6000)])
    counts = np.array([(draws == order).all(axis=1).sum() for order in itertools.permutations(range(3))])
    assert chi_square(counts, np.full(6, 1 / 6)) < CHI_SQUARE[5]


def test_blocks_are_contiguous_and_wrap():
    draws = batches("blocks", 4, 2000)
    assert ((draws[:, 1:] - draws[:, :-1]) % N == 1).all()
    assert (draws[:, -1] < draws[:, 0]).any()
    assert draws.min() == 0
    assert draws.max() == N - 1


def test_cyclic_goes_through_the_samples_in_order():
    whole = sampler("cyclic")
    indices = np.concatenate([whole.draw(np.array(sizes)).indices for sizes in ([3, 4], [5], [0, 13], [7])])
    assert indices.tolist() == [k % N for k in range(32)]


def test_fractional_sizes_are_kept_on_average():
    """2.3 samples a batch: 2 or 3, at random, the same however the steps are cut into blocks."""
    whole = sampler("batch").draw(np.full(20_000, 2.3))
    sizes = np.diff(whole.offsets)
    assert set(sizes.tolist()) == {2, 3}
    assert abs(sizes.mean() - 2.3) < 4.5 * math.sqrt(0.21 / 20_000)
    cut = sampler("batch")
    pieces = [cut.draw(np.full(count, 2.3)).indices for count in (1, 6, 93)]
    assert np.concatenate(pieces).tolist() == whole.indices[: whole.offsets[100]].tolist()


def test_importance_draws_in_proportion():
    counts = np.bincount(batches("importance", 5, 40_000).ravel(), minlength=N)
    assert chi_square(counts, IMPORTANCE / IMPORTANCE.sum()) < CHI_SQUARE[9]
    assert chi_square(counts, np.full(N, 0.1)) > 1000


@pytest.mark.parametrize("seed", range(5))
def test_alias_table_holds_the_chances_exactly(seed):
    """Summed over its places, the table gives every sample its chance: no draws needed."""
    rng = np.random.default_rng(seed)
    importance = rng.exponential(size=137) ** 3
    table = alias_table(importance)
    mass = np.zeros(137)
    for i in range(137):
        mass[i] += table.threshold[i] / 137
        mass[table.alias[i]] += (1.0 - table.threshold[i]) / 137
    np.testing.assert_allclose(mass, table.chances, rtol=0, atol=1e-15)
    floored = np.maximum(importance, 1e-3 * importance.mean())
    np.testing.assert_allclose(table.chances, floored / floored.sum(), rtol=1e-14)


def test_samples_without_importance_are_still_seen():
    table = alias_table(np.array([0.0, 1.0, 3.0]))
    assert table.chances[0] > 1e-4
    np.testing.assert_allclose(alias_table(np.zeros(4)).chances, 0.25)
    np.testing.assert_allclose(alias_table(np.array([2.0])).chances, 1.0)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array, sp.csc_array, sp.csr_matrix])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_importance_is_the_norm_of_the_row(kind, dtype):
    X = (np.arange(12.0).reshape(4, 3) * 1e20).astype(dtype)  # squares leave the range of float32
    weight = np.array([1.0, 2.0, 3.0, 2.0])
    problem = cg.Problem(kind(X), np.ones(4), cg.losses.Logistic(), cg.constraints.L1Ball(1.0), sample_weight=weight)
    expected = np.linalg.norm(X.astype(float), axis=1) * weight / 8.0
    np.testing.assert_allclose(problem.importance(), expected, rtol=1e-14)
    run = cg.solvers.SFW(sampling="importance").init(problem, None, 0)
    floored = np.maximum(expected, 1e-3 * expected.mean())
    np.testing.assert_allclose(run.sampler.chances.chances, floored / floored.sum(), rtol=1e-14)


def test_shares_undo_the_chances():
    """share = 1 / (size * chance): n/b for equal chances."""
    batch = sampler("batch").draw(np.array([4])).at(0)
    assert [batch.share(i) for i in range(N)] == pytest.approx([2.5] * N)
    batch = sampler("importance").draw(np.array([4])).at(0)
    assert [batch.share(i) for i in range(N)] == pytest.approx(list(IMPORTANCE.sum() / IMPORTANCE / 4))


# One stream ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_blocks_of_steps_cut_one_stream(method):
    """Sizes that vary, drawn at once and in pieces."""
    sizes = np.array([3, 1, 0, 10, 2, 2, 7, 0, 1, 5])
    whole = sampler(method).draw(sizes, with_uniforms=True)
    pieces = sampler(method)
    cut = [pieces.draw(part, with_uniforms=True) for part in (sizes[:1], sizes[1:4], sizes[4:4], sizes[4:])]
    assert np.concatenate([part.indices for part in cut]).tolist() == whole.indices.tolist()
    assert np.concatenate([part.uniforms for part in cut]).tolist() == whole.uniforms.tolist()
    found = [whole.at(k) for k in range(whole.size())]
    assert [batch.size() for batch in found] == sizes.tolist()
    assert [batch.at(q) for batch in found for q in range(batch.size())] == whole.indices.tolist()
    assert [batch.uniform for batch in found] == whole.uniforms.tolist()


def test_uniforms_do_not_disturb_the_indices():
    with_them, without = sampler("batch"), sampler("batch")
    for _ in range(3):
        a, b = with_them.draw(np.array([3, 3]), with_uniforms=True), without.draw(np.array([3, 3]))
        assert a.indices.tolist() == b.indices.tolist()
        assert b.uniforms.size == 0
        assert b.at(0).uniform == 0.0
        assert ((a.uniforms >= 0.0) & (a.uniforms < 1.0)).all()


@pytest.mark.parametrize("method", METHODS)
def test_state_restores_the_stream(method):
    first = sampler(method, seed=1)
    first.draw(np.array([3, 4]), with_uniforms=True)
    state = copy.deepcopy(first.state())
    expected = first.draw(np.array([5, 6]), with_uniforms=True)
    second = sampler(method, seed=2)
    second.restore(**state)
    found = second.draw(np.array([5, 6]), with_uniforms=True)
    assert found.indices.tolist() == expected.indices.tolist()
    assert found.uniforms.tolist() == expected.uniforms.tolist()


def test_largest_uniform_stays_inside():
    """u n rounds down for the largest u below 1: no index n."""
    u = np.full(1, np.nextafter(1.0, 0.0))
    for n in (1, 2, 3, 7, 10, 2**20, 10**6 + 3, 2**31 - 1, 2**40 + 1):
        indices = np.empty(1, dtype=np.int64)
        sampling._draw_independent(u, n, indices)
        assert indices[0] == n - 1


def test_seeds():
    generator = np.random.default_rng(3)
    assert as_generator(generator) is generator
    assert as_generator(3).random() == np.random.default_rng(3).random()
    assert as_generator(np.int64(3)).random() == np.random.default_rng(3).random()
    legacy = [as_generator(np.random.RandomState(3)).random() for _ in range(2)]
    assert legacy[0] == legacy[1]
    assert as_generator(None).random() != as_generator(None).random()


@pytest.mark.parametrize("seed", [-1, 1.5, "today", object()])
def test_bad_seeds_get_a_sentence(seed):
    with pytest.raises(ValueError, match="random_state must be a non-negative integer, a numpy Generator or None; got"):
        as_generator(seed)


# Sizes and names -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("batch_size", "n", "expected"),
    [
        (1, 10, 1), (10, 10, 10), (3.0, 10, 3), (np.int32(4), 10, 4), (0.5, 10, 5), (0.01, 250, 2), (0.001, 10, 1),
        (0.29, 100, 29), (0.999, 10, 9), (np.float64(0.3), 10, 3), (1.0, 10, 1),
    ],
)  # fmt: skip
def test_batch_size_is_a_number_or_a_fraction(batch_size, n, expected):
    found = resolve_batch_size(batch_size, n)
    assert found == expected
    assert type(found) is int


@pytest.mark.parametrize(
    "batch_size", [0, -1, 2.5, 0.0, -0.5, math.nan, math.inf, "all", None, True, np.bool_(True), [3]]
)
def test_bad_batch_sizes_get_a_sentence(batch_size):
    with pytest.raises(ValueError, match="batch_size must be a whole number of at least 1 or a fraction in"):
        resolve_batch_size(batch_size, 10)


def test_batches_beyond_the_data_get_a_sentence():
    with pytest.raises(ValueError, match="batch_size is 11, but there are only 10 samples; use at most 10"):
        resolve_batch_size(11, 10)


@pytest.mark.parametrize("method", ["random", "", None, 3, ("batch",), np.arange(2)])
def test_bad_methods_get_a_sentence(method):
    with pytest.raises(
        ValueError, match="sampling must be one of replacement, batch, epoch, blocks, cyclic, importance; got"
    ):
        check_method(method)
