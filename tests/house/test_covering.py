"""Covering arrays hold every pair that they promise, and not many cases more than that takes."""

import itertools

import pytest
from covering import every_choice, pairwise, product_by_pairs

PRODUCTS = [(3,), (4, 1), (3, 5), (3, 3, 3), (5, 11, 40), (14, 11, 20), (2, 2, 2, 2, 2), (4, 10, 2, 2, 2)]


def chosen(cases):
    return [case for case, is_needed in zip(cases, pairwise(cases), strict=True) if is_needed]


def pairs(cases):
    return {(i, j, case[i], case[j]) for case in cases for i, j in itertools.combinations(range(len(case)), 2)}


@pytest.mark.parametrize("sizes", PRODUCTS, ids=str)
def test_every_pair_of_a_product_occurs(sizes):
    cases = list(itertools.product(*map(range, sizes)))
    few = chosen(cases)
    assert pairs(few) == pairs(cases)
    fewest = sorted(sizes)[-1] * (sorted(sizes)[-2] if len(sizes) > 1 else 1)
    assert fewest <= len(few) <= max(1.3 * fewest, fewest + 4)
    assert chosen(cases) == few


def test_cases_that_do_not_exist_are_not_asked_for():
    cases = [case for case in itertools.product("abc", range(4), range(5)) if case[0] != "a" or case[1] == 3]
    few = chosen(cases)
    assert set(few) < set(cases)
    assert pairs(few) == pairs(cases)


def test_choices_take_turns():
    cases = list(itertools.product(range(5), range(11), range(40)))
    counts = [sum(case[0] == solver for case in chosen(cases)) for solver in range(5)]
    assert max(counts) <= 1.5 * min(counts)


def test_choices_may_be_anything():
    lists = [[1], [2], [3]]
    assert 9 <= sum(pairwise(itertools.product(lists, [True, 1, "1"], [None, float]))) <= 10
    assert pairwise([]) == []


def test_the_other_cases_are_campaigns():
    mark = product_by_pairs("a,b,c", range(3), range(3), range(3), only=lambda a, b, c: (a, b) != (0, 0))
    cases = mark.args[1]
    assert [case.values for case in cases] == list(itertools.product(range(3), repeat=3))
    everywhere = [case.values for case in cases if not case.marks]
    assert pairs(everywhere) == {pair for pair in pairs(case.values for case in cases) if pair != (0, 1, 0, 0)}
    assert 9 <= len(everywhere) <= 13
    assert all(mark.name == "campaign" for case in cases for mark in case.marks)


def test_every_choice_occurs_once():
    cases = every_choice("a,b", "xyz", [1, 2]).args[1]
    assert len(cases) == 6
    assert [case.values for case in cases if not case.marks] == [("x", 1), ("y", 2), ("z", 1)]
