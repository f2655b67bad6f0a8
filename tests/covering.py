"""How many cases a test runs: those in which every two choices meet, in place of all combinations.

Three solvers, ten losses and forty sets make 1,200 combinations, but 400 of them are enough for each loss to meet each
set, each solver each set and each solver each loss. Most faults show where two choices meet, hardly any where only
three do. So `make test` runs the cases of such an array, and `make test-all` all combinations.
"""

import itertools

import numpy as np
import pytest


def pairwise(cases):
    """Return which of the cases are enough for every pair of choices that occurs in them, as a list of booleans.

    A case is a tuple with one choice per place; a pair is two choices at two places. Greedy: the case with the most
    pairs that are still missing comes next, and among equals the one whose choices were taken least often so far.
    """
    cases = [tuple(case) for case in cases]
    if not cases:
        return []
    places = range(len(cases[0]))
    codes = np.array([_numbered([case[k] for case in cases]) for k in places]).T
    holders = {}  # pair -> the cases with it
    pairs = [[(i, j, row[i], row[j]) for i, j in itertools.combinations(places, 2)] for row in codes.tolist()]
    for number, found in enumerate(pairs):
        for pair in found:
            holders.setdefault(pair, []).append(number)
    if len(places) == 1:
        return [True] * len(cases)
    missing = np.full(len(cases), len(pairs[0]))
    uses = [np.zeros(codes[:, k].max() + 1) for k in places]
    chosen = np.zeros(len(cases), dtype=bool)
    while holders:
        load = sum(uses[k][codes[:, k]] * uses[k].size for k in places)  # relative to a fair share
        best = np.flatnonzero(missing == missing.max())
        number = int(best[load[best].argmin()])
        chosen[number] = True
        for k in places:
            uses[k][codes[number, k]] += 1.0
        for pair in pairs[number]:
            missing[holders.pop(pair, [])] -= 1
    return chosen.tolist()


def _numbered(choices):
    """Return a whole number for each choice; choices without a hash are equal to themselves alone."""
    seen, numbers = {}, []
    for choice in choices:
        try:
            key = (type(choice), choice, hash(choice))
        except TypeError:
            key = (id(choice),)
        numbers.append(seen.setdefault(key, len(seen)))
    return numbers


def every_pair(names, cases, ids=None, only=lambda *case: True):
    """Parametrize a test by all cases, and mark those that pairs of choices can do without as campaigns.

    Cases for which ``only`` is false are campaigns too: no pair counts as met in them.
    """
    cases = list(cases)
    taken = [case for case in cases if only(*case)]
    needed = iter(pairwise(taken))
    marked = [
        pytest.param(*case, marks=[] if only(*case) and next(needed) else [pytest.mark.campaign]) for case in cases
    ]
    return pytest.mark.parametrize(names, marked, ids=ids)


def product_by_pairs(names, *factors, ids=None, only=lambda *case: True):
    """Parametrize a test by the product of factors, see `every_pair`."""
    return every_pair(names, itertools.product(*factors), ids, only)


def every_choice(names, *factors, ids=None):
    """Parametrize a test by the product of factors; only cases in which each choice occurs once are no campaigns.

    For factors that do not act on each other but make a kernel of their own together, which takes seconds to compile.
    """
    marked, longest = [], max(map(len, factors))
    diagonal = {tuple(k % len(factor) for factor in factors) for k in range(longest)}
    for places in itertools.product(*(range(len(factor)) for factor in factors)):
        case = [factor[k] for factor, k in zip(factors, places, strict=True)]
        marked.append(pytest.param(*case, marks=[] if places in diagonal else [pytest.mark.campaign]))
    return pytest.mark.parametrize(names, marked, ids=ids)


def counted(few, many):
    """Parametrize a test by ``count``, of random cases that are all alike: few of them, and many as a campaign."""
    return pytest.mark.parametrize("count", [few, pytest.param(many, marks=pytest.mark.campaign)])
