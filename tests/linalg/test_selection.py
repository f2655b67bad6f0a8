"""The largest of many scores: whichever way they are found, they are the same."""

import numpy as np
import pytest

from condgrad.linalg import selection
from condgrad.linalg.selection import largest


@pytest.mark.parametrize(("size", "count"), [(5, 9), (40, 40), (50, 7), (20_000, 300), (20_000, 15_000), (200_000, 20)])
def test_the_largest_scores_come_first_and_ties_in_the_order_of_their_places(size, count):
    rng = np.random.default_rng(0)
    for scores in (rng.standard_normal(size), rng.integers(0, 5, size).astype(float), np.zeros(size)):
        found, best = largest(scores, count), np.sort(scores)[::-1][:count]
        assert found.size == min(size, count) == np.unique(found).size
        np.testing.assert_array_equal(scores[found], best)
        np.testing.assert_array_equal(found, found[np.lexsort((found, -scores[found]))])


@pytest.mark.parametrize("size", [0, 7, 400, 200_000])
def test_no_places_are_wanted(size):
    assert largest(np.random.default_rng(1).standard_normal(size), 0).size == 0


def test_a_sample_that_suggests_a_wrong_limit_leaves_nothing_out(monkeypatch):
    """Where every score in the sample is large, too few are above the limit: then all are looked at."""
    scores = np.arange(20_000.0)
    scores[:: scores.size // selection._SAMPLE + 1] += 1e6
    many, few = largest(scores, 5000), largest(scores, 400)
    monkeypatch.setattr(selection, "_SAMPLED", 10**9)
    np.testing.assert_array_equal(many, largest(scores, 5000))
    np.testing.assert_array_equal(few, largest(scores, 400))
