"""Every registered loss is what it claims to be, and check_loss finds those that are not."""

import itertools
import math
import os
from typing import NamedTuple

import numpy as np
import pytest
from numpy.polynomial import Polynomial

from condgrad import losses
from condgrad.compiled import where
from condgrad.losses import by_name, loss
from condgrad.testing.losses import METHODS, check_loss

CLASSES = losses.CLASSES
BINARY = ["logistic", "smoothed-hinge", "squared-hinge"]
NON_CONVEX = ["sigmoid-squared", "welsch"]
NUMBER = itertools.count()
compiled_only = pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="nothing is compiled")


def instances():
    """Every loss with its defaults, and with each parameter ten times smaller and larger where it may be."""
    for cls in CLASSES:
        yield cls()
        for field in set(cls._fields) - {"placeholder"}:
            for factor in (0.1, 10.0):
                try:
                    yield cls()._replace(**{field: factor * getattr(cls(), field)})
                except ValueError:  # q = 5 is no quantile
                    continue


INSTANCES = sorted(instances(), key=repr)


@pytest.mark.parametrize("one", INSTANCES, ids=repr)
def test_is_what_it_claims(one):
    check_loss(one)


@pytest.mark.parametrize("one", INSTANCES, ids=repr)
def test_nan_and_float32_stay(one):
    assert all(np.isnan(getattr(one, method)(math.nan, 1.0)) for method in METHODS[:2])
    p, y = np.linspace(-3.0, 3.0, 7, dtype=np.float32), np.ones(7, dtype=np.float32)
    for method in METHODS:
        exact = getattr(one, method)(p.astype(float), y.astype(float))
        np.testing.assert_allclose(getattr(one, method)(p, y), exact, rtol=1e-4, atol=1e-5)


# Values written by hand: check_loss compares a loss with itself only.
@pytest.mark.parametrize(
    ("one", "p", "y", "value"),
    [
        (losses.Squared(), 1.0, 4.0, 4.5),
        (losses.Logistic(), 2.0, -1.0, math.log(1.0 + math.exp(2.0))),
        (losses.Huber(delta=2.0), 1.0, 0.0, 0.5),
        (losses.Huber(delta=2.0), -5.0, 0.0, 8.0),
        (losses.SquaredHinge(), 0.5, 1.0, 0.125),
        (losses.SquaredHinge(), 2.0, 1.0, 0.0),
        (losses.SmoothedHinge(width=0.5), 0.75, 1.0, 0.0625),
        (losses.SmoothedHinge(width=0.5), 3.0, -1.0, 3.75),
        (losses.PseudoHuber(delta=2.0), 3.0, 0.0, 4.0 * (math.sqrt(1.0 + 2.25) - 1.0)),
        (losses.Poisson(), 2.0, 3.0, math.exp(2.0) - 6.0),
        (losses.Poisson(), 32.0, 0.0, 5.0 * math.exp(30.0)),
        (losses.Gamma(), 2.0, 3.0, 3.0 * math.exp(-2.0) + 2.0),
        (losses.Gamma(), -32.0, 1.0, 5.0 * math.exp(30.0) - 32.0),
        (losses.Tweedie(1.2), 2.0, 3.0, math.exp(1.6) / 0.8 + 3.0 * math.exp(-0.4) / 0.2),
        (losses.Tweedie(1.5), 64.0, 0.0, 10.0 * math.exp(30.0)),
        (losses.NegativeBinomial(0.5), 2.0, 3.0, 5.0 * math.log(1.0 + 0.5 * math.exp(2.0)) - 6.0),
        (losses.NegativeBinomial(0.5), -2.0, 3.0, 5.0 * math.log(1.0 + 0.5 * math.exp(-2.0)) + 6.0),
        (losses.Binomial(), 2.0, 0.3, math.log(1.0 + math.exp(2.0)) - 0.6),
        (losses.Binomial(), -2.0, 0.3, math.log(1.0 + math.exp(-2.0)) + 0.6),
        (losses.Pinball(q=0.9, width=1.0), 0.0, 5.0, 4.5 - 0.405),
        (losses.Pinball(q=0.9, width=1.0), 5.0, 0.0, 0.5 - 0.005),
        (losses.Pinball(q=0.9, width=2.0), 1.0, 2.0, 0.25),
        (losses.SigmoidSquared(), 1.5, 1.0, (1.0 - 1.0 / (1.0 + math.exp(-1.5))) ** 2),
        (losses.SigmoidSquared(), 1.5, 0.0, (1.0 / (1.0 + math.exp(-1.5))) ** 2),
        (losses.Expectile(q=0.8), 1.0, 4.0, 7.2),
        (losses.Expectile(q=0.8), 4.0, 1.0, 1.8),
        (losses.Welsch(scale=2.0), 3.0, 2.0, 2.0 * (1.0 - math.exp(-0.25))),
    ],
    ids=str,
)
def test_value_by_hand(one, p, y, value):
    assert one.value(p, y) == pytest.approx(value, rel=1e-14)


def test_constants_of_logistic_are_those_of_the_paper():
    assert losses.Logistic().smoothness() == 1 / 4
    assert losses.Logistic().curvature_smoothness() == pytest.approx(1 / (6 * math.sqrt(3)), rel=1e-15)


def test_constants_of_squared_are_those_of_the_paper():
    assert (losses.Squared().smoothness(), losses.Squared().curvature_smoothness()) == (1.0, 0.0)


def test_constants_of_sigmoid_squared_are_exact_and_below_those_of_the_paper():
    one = losses.SigmoidSquared()
    s = Polynomial([0.0, 1.0])
    first = (s * s).deriv() * s * (1 - s)  # y = 0: f = s^2 and ds/dp = s (1 - s)
    second = first.deriv() * s * (1 - s)
    third = second.deriv() * s * (1 - s)
    for constant, derivative in ((one.smoothness(), second), (one.curvature_smoothness(), third)):
        roots = derivative.deriv().roots()
        inside = roots[(abs(roots.imag) < 1e-9) & (roots.real >= 0) & (roots.real <= 1)].real
        assert constant == pytest.approx(abs(derivative(inside)).max(), rel=1e-12)
    assert one.smoothness() < 1 / 8 + 1 / (3 * math.sqrt(3))
    assert one.curvature_smoothness() < 1 / (4 * math.sqrt(3)) + 1 / 12


def test_bound_behind_the_paper_s_second_constant_is_wrong():
    h = 1e-3  # sigmoid' is the second derivative of the logistic loss
    left, middle, right = losses.Logistic().second_derivative(np.array([-h, 0.0, h]), 1.0)
    third = (left - 2 * middle + right) / h**2
    assert third == pytest.approx(-1 / 8, rel=1e-5)
    assert abs(third) > 1 / 24


def test_exact_constants_of_the_robust_losses():
    u = np.linspace(-5.0, 5.0, 2_000_001)
    welsch, pseudo_huber = losses.Welsch(scale=0.5), losses.PseudoHuber(delta=0.5)
    third = abs((4 * u**3 - 6 * u) * np.exp(-(u**2))).max() / 0.5
    assert welsch.curvature_smoothness() == pytest.approx(third, rel=1e-9)
    third = abs(3 * u * (1 + u**2) ** -2.5).max() / 0.5
    assert pseudo_huber.curvature_smoothness() == pytest.approx(third, rel=1e-9)


def test_poisson_has_local_constants_only():
    one = losses.Poisson()
    assert one.smoothness() == one.curvature_smoothness() == math.inf
    assert one.smoothness_on(2.0) == math.exp(2.0)
    assert one.smoothness_on(1e8) == one.second_derivative(1e8, 0.0) == math.exp(30.0)


def test_smoothed_losses_approach_the_originals():
    p, y = np.linspace(-3.0, 3.0, 61), 1.0
    hinge, pinball = np.maximum(0.0, 1.0 - y * p), np.maximum(0.2 * (y - p), -0.8 * (y - p))
    assert np.all(abs(hinge - losses.SmoothedHinge(width=1e-3).value(p, y)) <= 0.5e-3 + 1e-15)
    assert np.all(abs(pinball - losses.Pinball(q=0.2, width=1e-3).value(p, y)) <= 0.32e-3 + 1e-15)


def test_names():
    assert sorted(losses.__all__) == losses.__all__
    assert losses.REGISTERED["pseudo-huber"] is losses.PseudoHuber
    for name, cls in losses.REGISTERED.items():
        assert by_name(name) == cls() and isinstance(by_name(name), losses.Loss)
    assert by_name("pinball", q=0.1) == losses.Pinball(q=0.1)


@pytest.mark.parametrize(
    ("name", "hint"), [("hubber", "'huber'?"), ("Squared_Hinge", "'squared-hinge'?"), ("x", None), (3, None)]
)
def test_an_unknown_name_lists_the_known(name, hint):
    known = "known: binomial, expectile, gamma, huber, "
    with pytest.raises(ValueError, match=f"there is no loss named {name!r}; {known}") as caught:
        by_name(name)
    assert str(caught.value).endswith(hint or ", welsch.")


@pytest.mark.parametrize("value", [0.0, -1.0, math.inf, math.nan])
@pytest.mark.parametrize(
    ("name", "field"),
    [
        *(("huber", "delta"), ("pseudo-huber", "delta"), ("smoothed-hinge", "width"), ("pinball", "width")),
        *(("welsch", "scale"), ("pinball", "q"), ("expectile", "q")),
    ],
)
def test_wrong_parameters(name, field, value):
    rule = "between 0 and 1, both excluded" if field == "q" else "positive and finite"
    with pytest.raises(ValueError, match=f"{field} of .* must be {rule}; got {value!r}. Use {field}="):
        by_name(name, **{field: value})


@pytest.mark.parametrize(
    ("name", "y", "sentence"),
    [
        *((name, [0, 1], r"must be -1 or 1 .* got values {0, 1}. Use 2 \* y - 1.") for name in BINARY),
        *((name, [1, 2], r"must be -1 or 1 .* Use np.where\(y == 2, 1, -1\).") for name in BINARY),
        ("sigmoid-squared", [-1, 1], r"must be 0 or 1 .* got values {-1, 1}. Use \(y \+ 1\) / 2."),
        ("sigmoid-squared", [1, 2], r"must be 0 or 1 .* Use np.where\(y == 2, 1, 0\)."),
        ("sigmoid-squared", [0, 1, 2], r"must be 0 or 1 .* got values {0, 1, 2}.$"),
        ("poisson", [3, -1], r"must be finite and non-negative for Poisson; got the value -1. Use counts"),
        ("poisson", [3, math.nan], r".* got the value nan"),
        ("poisson", [3, math.inf], r".* got the value inf"),
    ],
)
def test_wrong_targets(name, y, sentence):
    with pytest.raises(ValueError, match=f"^y {sentence}"):
        by_name(name).check_targets(np.array(y, dtype=float))


@pytest.mark.parametrize(
    ("name", "y", "sentence"),
    [
        *(
            (name, [1, 1], r"needs both classes in y; got only \{1\}. Leave the intercept out: .*fit_intercept=False.")
            for name in BINARY
        ),
        ("poisson", [0, 0], "needs a positive target; got only zeros. Leave the intercept out: .*fit_intercept=False."),
        *((name, [0, 1], "is not convex, .* Leave the intercept out: intercept=False") for name in NON_CONVEX),
    ],
)
def test_no_finite_intercept(name, y, sentence):
    with pytest.raises(ValueError, match=sentence):
        by_name(name).check_intercept(np.array(y, dtype=float))


@pytest.mark.parametrize("name", sorted(set(losses.REGISTERED) - set(NON_CONVEX)))
def test_a_finite_intercept(name):
    by_name(name).check_intercept(np.array([-1.0, 1.0]) if name in BINARY else np.array([0.0, 1.0]))


def broken(**changes):
    """Return a correct loss class, f = sqrt(1 + (p - y)^2), with some of its methods replaced."""

    class Broken(NamedTuple):
        def value(self, p, y):
            return np.sqrt(1.0 + (p - y) * (p - y))

        def derivative(self, p, y):
            return (p - y) / np.sqrt(1.0 + (p - y) * (p - y))

        def second_derivative(self, p, y):
            return (1.0 + (p - y) * (p - y)) ** -1.5

        def smoothness(self):
            return 1.0

    Broken.__name__ = f"Broken{next(NUMBER)}"  # numba tells namedtuple classes apart by their names only
    for name, change in changes.items():
        setattr(Broken, name, change)
    return loss(Broken)()


def test_the_loss_to_break_is_right():
    check_loss(broken())


def refuse(self, y):
    raise ValueError("no")


def accept_signs(self, y):
    if not np.isin(y, (-1.0, 1.0)).all():
        raise ValueError("y must be -1 or 1.")


def accept_all(self, y):
    pass


def test_a_loss_of_two_classes_needs_no_more_than_to_name_them():
    own = broken(classes=(0.0, 1.0), link="logit")
    check_loss(own)
    with pytest.raises(ValueError, match=r"y must be 0 or 1 for Broken\d+; got values {-1, 1}. Use \(y \+ 1\) / 2."):
        own.check_targets(np.array([1.0, -1.0]))
    with pytest.raises(ValueError, match=r"needs both classes in y; got only {1}"):
        own.check_intercept(np.ones(3))


def test_predictions_follow_the_link():
    p = np.array([-800.0, -40.0, 0.0, 1.0, 800.0])
    assert losses.Poisson().mean(p) == pytest.approx(np.exp(np.minimum(p, 700.0)), rel=1e-15)
    for cls in (losses.Logistic, losses.SigmoidSquared):
        expected = [0.0, np.exp(-40.0), 0.5, 1.0 / (1.0 + np.exp(-1.0)), 1.0]
        assert cls().probability(p) == pytest.approx(expected, rel=1e-14)
    for cls in (losses.Squared, losses.SquaredHinge, losses.Logistic):
        assert cls().mean(p) is p
    assert losses.SquaredHinge().probability(p) is None and losses.Squared().classes is None


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"derivative": lambda self, p, y: (y - p) / np.sqrt(1.0 + (p - y) ** 2)}, "derivative .* is not the slope"),
        ({"second_derivative": lambda self, p, y: (1.0 + (p - y) ** 2) ** -1.4}, "second_derivative .* not the slope"),
        ({"value": lambda self, p, y: np.sqrt(1 + (p - y) ** 2) + where(p > 2.0, 1e-3, 0.0)}, "not the slope of value"),
        ({"smoothness": lambda self: 0.9999}, r"smoothness\(\) .* is 0.9999, but derivative changes 1 times"),
        ({"smoothness": lambda self: math.nan}, "smoothness .* must be a number >= 0 or inf; got nan"),
        ({"smoothness_on": lambda self, p_max: 0.1 * p_max}, r"smoothness_on\(0.5\) .* is 0.05"),
        ({"curvature_smoothness": lambda self: 0.858}, r"curvature_smoothness\(\) .* is 0.858, but .* changes 0.8586"),
        ({"value": lambda self, p, y: np.log(np.cosh(p - y))}, "value of .* is inf at p = -"),
        ({"second_derivative": lambda self, p, y: 1 / (1 + np.exp(p - y))}, r"warns for arrays .* \(overflow"),
        ({"second_derivative": lambda self, p, y: 1.0}, r"elementwise: .* returned shape \(\)"),
        ({"is_quadratic": True}, "is not constant .*: set is_quadratic = False"),
        ({"link": "probit"}, "link of .* must be one of identity, log, logit; got 'probit'"),
        ({"check_targets": accept_signs}, r"accept two classes and nothing else exactly if .*; got classes = None"),
        ({"classes": (0.0, 1.0), "check_targets": accept_all}, r"exactly if .*; got classes = \(0.0, 1.0\)"),
        ({"check_targets": refuse}, "refuses all that check_loss tries .-1 and 1, 0 and 1, "),
    ],
)
def test_a_wrong_loss_is_caught(changes, sentence):
    with pytest.raises(AssertionError, match=sentence):
        check_loss(broken(**changes))


@pytest.mark.parametrize("cls", [losses.SigmoidSquared, losses.Welsch])
def test_a_false_claim_of_convexity_is_caught(cls, monkeypatch):
    monkeypatch.setattr(cls, "is_convex", True)
    with pytest.raises(AssertionError, match=r"second_derivative of .* is -.*: set is_convex = False"):
        check_loss(cls())


def test_the_plain_hinge_is_not_smooth():
    with pytest.raises(AssertionError, match=r"second_derivative of .* not the slope of derivative near p = "):
        check_loss(
            broken(
                value=lambda self, p, y: where(y * p < 1.0, 1.0 - y * p, 0.0),
                derivative=lambda self, p, y: where(y * p < 1.0, -y, 0.0 * y),
                second_derivative=lambda self, p, y: 0.0 * p,
                smoothness=lambda self: math.inf,
            ),
            y=[-1.0, 1.0],
        )


@compiled_only
def test_a_loss_that_does_not_compile_is_caught():
    def pythonic(self, p, y):
        return np.asarray([math.hypot(1.0, e) for e in np.atleast_1d(p - y)]).reshape(np.shape(p))[()]

    with pytest.raises(AssertionError, match=r"Broken\d+\(\) does not compile: "):
        check_loss(broken(value=pythonic))


def test_lower_bounds_are_those_of_the_formula():
    y = np.array([0.0, 0.5, 3.0, 1e15])
    p = np.log(np.maximum(y[:3], 1e-20))
    least = losses.Poisson().least_value(y)
    np.testing.assert_allclose(least[:3], np.exp(p) - y[:3] * p, atol=1e-12)
    assert least[3] <= losses.Poisson().value(np.array([30.0 + 1e15 / math.exp(30.0) - 1.0]), y[3:])[0]
    assert not losses.Logistic().least_value(y).any()


@compiled_only
def test_a_loss_that_differs_when_compiled_is_caught():
    factor = 1.0  # a kernel keeps the value that it was compiled with
    one = broken(
        value=lambda self, p, y: factor * (p - y),
        derivative=lambda self, p, y: factor + 0.0 * p,
        second_derivative=lambda self, p, y: 0.0 * p,
        least_value=lambda self, y: np.full(y.shape, -np.inf),
    )
    check_loss(one)
    factor = 2.0
    with pytest.raises(AssertionError, match=r"value of Broken\d+\(\) gives .* when compiled and .* for arrays"):
        check_loss(one)


def test_single_numbers_must_agree_with_arrays():
    def half_for_scalars(self, p, y):
        return (1.0 if np.ndim(p) else 0.5) * np.sqrt(1.0 + (p - y) * (p - y))

    with pytest.raises(AssertionError, match=r"value of Broken\d+\(\) gives .* for single numbers and .* for arrays"):
        check_loss(broken(value=half_for_scalars))


@pytest.mark.parametrize("wrong", [losses.Huber, (1.0,), "huber"])
def test_check_loss_needs_a_loss(wrong):
    with pytest.raises(AssertionError, match="needs an instance of a class marked @loss; got "):
        check_loss(wrong)
