"""elementary.py: as exact as the C library's functions to a few units in the last place, nan and inf included."""

import math

import numpy as np
import pytest

from condgrad.compiled import kernel
from condgrad.compiled.elementary import exp, log1p_of_fraction


@kernel
def exp_of_all(x, out):
    for i in range(x.shape[0]):
        out[i] = exp(x[i])


@kernel
def log1p_of_all(x, out):
    for i in range(x.shape[0]):
        out[i] = log1p_of_fraction(x[i])


def applied(function, x):
    out = np.empty_like(x)
    function(x, out)
    return out


@pytest.mark.parametrize("scale", [1e-8, 1.0, 30.0, 300.0])
def test_exp_is_exact_to_two_units_in_the_last_place(scale):
    x = np.clip(scale * np.random.default_rng(0).standard_normal(100_001), -700.0, 700.0)
    np.testing.assert_allclose(applied(exp_of_all, x), np.exp(x), rtol=4e-16 + 2e-16)


def test_exp_of_special_values():
    x = np.array([0.0, -0.0, math.nan, math.inf, -math.inf, 800.0, -800.0, 708.9, -707.9])
    found = applied(exp_of_all, x)
    np.testing.assert_allclose(found, [1.0, 1.0, math.nan, math.inf, 0.0, math.inf, 0.0, *np.exp(x[-2:])], rtol=5e-16)
    assert found[0] == found[1] == 1.0


def test_log1p_is_exact_to_two_units_in_the_last_place():
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.random(100_001), 10.0 ** -rng.uniform(0.0, 30.0, 1001), [0.0, 1.0, 0.4142135623730950]])
    np.testing.assert_allclose(applied(log1p_of_all, x), np.log1p(x), rtol=6e-16)
    assert applied(log1p_of_all, np.array([0.0]))[0] == 0.0
    assert np.isnan(applied(log1p_of_all, np.array([math.nan]))[0])
