"""Bracket: a safeguarded Newton search finds roots where plain Newton steps do not."""

import numpy as np
import pytest

from condgrad.compiled import kernel
from condgrad.linalg.roots import Bracket

FUNCTIONS = {  # increasing functions with their derivatives and roots
    "line": (lambda x: 2.0 * x - 6.0, lambda x: 2.0, 3.0),
    "flat tails": (lambda x: np.tanh(x - 5.0), lambda x: 1.0 / np.cosh(x - 5.0) ** 2, 5.0),
    "steep": (lambda x: np.cbrt(x - 1.0), lambda x: np.abs(x - 1.0) ** (-2 / 3) / 3.0 if x != 1.0 else 0.0, 1.0),
    "exponential": (lambda x: np.expm1(x + 40.0), lambda x: np.exp(x + 40.0), -40.0),
    "jump": (lambda x: np.sign(x - 0.3), lambda x: 0.0, 0.3),
}


def search(f, slope, x, bracket, n_steps=200):
    """Newton steps within a bracket, from x, with a reach that grows while a side is open."""
    reach = 1.0
    for _ in range(n_steps):
        bracket, x = bracket.after(x, f(x), slope(x), x - reach, x + reach)
        reach *= 4.0
    return bracket, x


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("start", [-30.0, 0.0, 0.1, 17.0])
def test_finds_the_root_from_anywhere(name, start):
    f, slope, root = FUNCTIONS[name]
    bracket, x = search(f, slope, start, Bracket(-np.inf, np.inf))
    assert x == pytest.approx(root, abs=1e-9)
    assert bracket.low - 1e-12 <= root <= bracket.high + 1e-12


def test_the_next_point_is_inside():
    rng = np.random.default_rng(0)
    for _ in range(1000):
        low, high = np.sort(rng.standard_normal(2))
        x = rng.uniform(low, high)
        value, slope = rng.standard_normal(2) * 10.0 ** rng.integers(-8, 8, 2)
        bracket, new = Bracket(low, high).after(x, value, slope, -np.inf, np.inf)
        assert bracket == ((x, high) if value < 0.0 else (low, x))
        assert bracket.low < new < bracket.high
        _, new = Bracket(-np.inf, np.inf).after(x, value, slope, x - 1.0, x + 2.0)
        assert x - 1.0 <= new <= x + 2.0
        assert (new - x) * value <= 0.0


def test_keeps_away_from_the_ends():
    assert Bracket(1.0, 3.0).inside(1.01, 0.1) == pytest.approx(1.2)
    assert Bracket(1.0, 3.0).inside(2.99, 0.1) == pytest.approx(2.8)
    assert Bracket(1.0, 3.0).inside(2.3, 0.1) == 2.3


def test_kernels_search_as_python_does():
    @kernel
    def cube_root(c, x):
        bracket = Bracket(-np.inf, np.inf)
        for k in range(60):
            bracket, x = bracket.after(x, x**3 - c, 3.0 * x**2, x - 4.0**k, x + 4.0**k)
        return bracket, x

    bracket, x = cube_root(27.0, 0.0)
    assert x == pytest.approx(3.0, rel=1e-15)
    assert isinstance(bracket, Bracket)
