"""check_loss: checks the derivatives of a loss, its constants, its values at large predictions, its compiled form."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from condgrad.compiled import is_compiled, kernel
from condgrad.losses import Loss
from condgrad.losses._protocol import LINKS

METHODS = ("value", "derivative", "second_derivative")
P_MAX = 1e8
# Targets to try; a loss is checked on all targets that its check_targets accepts.
TARGETS = {
    "-1 and 1": (-1.0, 1.0),
    "0 and 1": (0.0, 1.0),
    "probabilities": (0.1, 0.5, 0.9),
    "counts": (0.0, 1.0, 2.0, 7.0),
    "positive numbers": (0.3, 1.0, 12.5),
    "real numbers": (-12.5, -1.0, 0.0, 0.3, 4.0),
}
EPS = float(np.finfo(float).eps)


def check_loss(loss: Any, y: ArrayLike | None = None) -> None:
    """Check a loss; raise AssertionError, with one sentence that says why, if it is wrong.

    For each target and for predictions over abs(p) <= 1e8 it is checked that

    * ``value``, ``derivative`` and ``second_derivative`` are finite, elementwise and raise no warnings;
    * ``derivative`` is the slope of ``value``, and ``second_derivative`` that of ``derivative``: over each of many
      intervals the mean slope lies between the smallest and the largest (by the mean value theorem, so that a jump
      of the second derivative is allowed); intervals where it does not are halved until they are short, then they fail;
    * no value is below ``least_value``;
    * a loss with ``is_convex`` is convex, and one with ``is_quadratic`` has a constant second derivative;
    * no difference quotient exceeds ``smoothness`` (L), ``smoothness_on`` or ``curvature_smoothness`` (L-hat); a
      constant that is too large passes;
    * compiled code gives the same numbers;
    * ``classes`` are the targets that ``check_targets`` accepts, if these are two, and ``link`` is a known link.

    Parameters
    ----------
    loss : Loss
        An instance of a class marked ``@loss``.
    y : array-like, optional
        Targets to try. By default those classes, probabilities, counts and real numbers that ``check_targets``
        accepts.

    Examples
    --------
    >>> from condgrad.losses import Huber
    >>> check_loss(Huber(delta=2.0))
    """
    _require(
        not isinstance(loss, type) and isinstance(loss, Loss) and is_compiled(loss),
        f"check_loss needs an instance of a class marked @loss; got {loss!r}.",
    )
    _check_prediction(loss)
    for target in _targets(loss, y):
        p = _grid(target)
        _check_numbers(loss, p, target)
        _check_slopes(loss, p, target)
        _check_least_value(loss, p, target)
        _check_shape(loss, p, target)
        _check_constants(loss, p, target)
        _check_scalars(loss, p[::25], target)


def _require(condition: object, sentence: str) -> None:
    if not condition:
        raise AssertionError(sentence)


def _targets(loss: Loss, y: ArrayLike | None) -> np.ndarray:
    if y is not None:
        return np.unique(np.asarray(y, dtype=float))
    accepted = [values for values in TARGETS.values() if _accepts(loss, np.array(values))]
    _require(
        accepted,
        f"check_targets of {loss!r} refuses all that check_loss tries ({', '.join(TARGETS)}): "
        "fix it, or give targets as y.",
    )
    return np.unique(np.concatenate(accepted))


def _accepts(loss: Loss, y: np.ndarray) -> bool:
    try:
        loss.check_targets(y)
    except ValueError:
        return False
    return True


def _check_prediction(loss: Loss) -> None:
    """Check that ``link`` and ``classes`` of the loss fit its targets."""
    _require(loss.link in LINKS, f"link of {loss!r} must be one of {', '.join(LINKS)}; got {loss.link!r}.")
    takes_numbers = any(_accepts(loss, np.array(numbers)) for numbers in ([0.5, math.pi], [0.1, 0.5]))
    for classes in (loss.classes,) if loss.classes is not None else ((-1.0, 1.0), (0.0, 1.0)):
        is_for_them = _accepts(loss, np.array(classes)) and not takes_numbers
        _require(
            is_for_them == (loss.classes is not None),
            f"check_targets of {loss!r} must accept two classes and nothing else exactly if classes names them; "
            f"got classes = {loss.classes}.",
        )


def _grid(y: float) -> np.ndarray:
    """Return predictions over abs(p) <= 1e8: even near 0, geometric around 0 and around ``y``."""
    spread = np.geomspace(1e-3, P_MAX, 330)
    p = np.concatenate([spread, y + spread, [0.0], -spread, y - spread, [y], np.linspace(-40.0, 40.0, 3201)])
    p = np.unique(np.clip(p, -P_MAX, P_MAX))
    # Points that nearly coincide would turn rounding errors into slopes.
    return p[np.append(True, np.diff(p) > 1e-5 * (1.0 + abs(p[1:])))]


def _call(loss: Loss, method: str, y: float) -> Callable[[np.ndarray], np.ndarray]:
    return lambda p: getattr(loss, method)(p, np.full_like(p, y))


def _check_numbers(loss: Loss, p: np.ndarray, y: float) -> None:
    """Check that results are finite, elementwise and without warnings."""
    for method in METHODS:
        with np.errstate(all="ignore"):
            out = _call(loss, method, y)(p)
        _require(
            np.shape(out) == p.shape,
            f"{method} of {loss!r} must work elementwise: for {p.size} predictions it returned shape {np.shape(out)}.",
        )
        wrong = np.flatnonzero(~np.isfinite(out))
        if wrong.size:
            k = wrong[0]
            raise AssertionError(f"{method} of {loss!r} is {out[k]} at p = {p[k]:g}, y = {y:g}.")
        try:
            with np.errstate(over="raise", divide="raise", invalid="raise"):
                _call(loss, method, y)(p)
        except FloatingPointError as error:
            raise AssertionError(
                f"{method} of {loss!r} warns for arrays with abs(p) up to {P_MAX:g} and y = {y:g} ({error}): "
                "clip the arguments of functions that overflow, as Logistic does."
            ) from error


def _check_slopes(loss: Loss, p: np.ndarray, y: float) -> None:
    """Check that each method is the slope of the one before, over intervals that cover the grid, and short ones."""
    short = np.random.default_rng(0).choice(p[:-1], 500, replace=False)
    low = np.concatenate([p[:-1], short])
    high = np.concatenate([p[1:], short + 1e-5 * (1.0 + abs(short))])
    for method, slope in itertools.pairwise(METHODS):
        wrong = _disagreement(_call(loss, method, y), _call(loss, slope, y), low, high)
        if wrong is not None:
            place, mean, given = wrong
            raise AssertionError(
                f"{slope} of {loss!r} is not the slope of {method} near p = {place:g}, y = {y:g}: "
                f"finite differences give {mean:g}, {slope} gives {given:g}."
            )


def _disagreement(
    f: Callable[[np.ndarray], np.ndarray], slope: Callable[[np.ndarray], np.ndarray], low: np.ndarray, high: np.ndarray
) -> tuple[float, ...] | None:
    """Return (place, mean slope of f, slope) for a short interval whose mean slope is not in the range of slopes."""
    while low.size:
        slopes = slope(low + (high - low) * np.linspace(0.0, 1.0, 9)[:, None])
        smallest, largest = slopes.min(axis=0), slopes.max(axis=0)
        mean = (f(high) - f(low)) / (high - low)
        error = 1e-8 * (abs(smallest) + abs(largest)) + _rounding(f, low, high)
        bad = (mean < smallest - error) | (mean > largest + error)
        final = np.flatnonzero(bad & (high - low < 1e-5 * (1.0 + abs(low))))
        if final.size:
            k = final[0]
            return low[k], mean[k], slopes[4, k]
        low, high = low[bad], high[bad]
        middle = 0.5 * (low + high)
        low, high = np.concatenate([low, middle]), np.concatenate([middle, high])
    return None


def _rounding(f: Callable[[np.ndarray], np.ndarray], a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return a bound of the rounding error of the difference quotient of f over [a, b]."""
    return 64.0 * EPS * (1.0 + abs(f(a)) + abs(f(b))) / abs(b - a)


def _check_least_value(loss: Loss, p: np.ndarray, y: float) -> None:
    """Check that ``least_value`` is a lower bound."""
    least, values = float(loss.least_value(np.array([y]))[0]), _call(loss, "value", y)(p)
    k = values.argmin()
    _require(
        values[k] >= least - 64.0 * EPS * (1.0 + abs(least)),
        f"value of {loss!r} is {values[k]:g} at p = {p[k]:g}, y = {y:g}, but least_value is {least:g}: "
        "return a lower bound there, or -inf.",
    )


def _check_shape(loss: Loss, p: np.ndarray, y: float) -> None:
    """Check convexity by curvature and by chords, and quadratics by a constant curvature."""
    value, curvature = _call(loss, "value", y), _call(loss, "second_derivative", y)(p)
    if loss.is_quadratic:
        _require(
            np.ptp(curvature) <= 1e-12 * abs(curvature).max(),
            f"second_derivative of {loss!r} is not constant (y = {y:g}): set is_quadratic = False.",
        )
    if not loss.is_convex:
        return
    k = curvature.argmin()
    _require(
        curvature[k] >= -64.0 * EPS * abs(curvature).max(),
        f"second_derivative of {loss!r} is {curvature[k]:g} at p = {p[k]:g}, y = {y:g}: set is_convex = False.",
    )
    a, b = _random_pairs(p)
    above = value(0.5 * (a + b)) - 0.5 * (value(a) + value(b))
    k = (above - _rounding(value, a, b) * abs(b - a)).argmax()
    _require(
        above[k] <= _rounding(value, a, b)[k] * abs(b - a)[k],
        f"value of {loss!r} is above its chord from p = {a[k]:g} to {b[k]:g}, y = {y:g}: set is_convex = False.",
    )


def _random_pairs(p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    a, b = rng.choice(p, 1000), rng.choice(p, 1000)
    return a[a != b], b[a != b]


def _check_constants(loss: Loss, p: np.ndarray, y: float) -> None:
    """Check that G, L, L-hat and the local L bound all difference quotients."""
    derivatives = {"lipschitz": "value", "smoothness": "derivative", "curvature_smoothness": "second_derivative"}
    for constant, method in derivatives.items():
        bound = getattr(loss, constant)()
        _require(bound >= 0.0, f"{constant} of {loss!r} must be a number >= 0 or inf; got {bound}.")
        _check_lipschitz(f"{constant}()", bound, loss, method, p, y)
    for p_max in (0.5, 5.0, 50.0):
        inside = np.linspace(-p_max, p_max, 401)
        _check_lipschitz(f"smoothness_on({p_max:g})", loss.smoothness_on(p_max), loss, "derivative", inside, y)


def _check_lipschitz(constant: str, bound: float, loss: Loss, method: str, p: np.ndarray, y: float) -> None:
    if bound == math.inf:
        return
    f = _call(loss, method, y)
    for a, b in (_random_pairs(p), _steepest_piece(f, p)):
        quotient = abs(f(b) - f(a)) / abs(b - a)
        k = (quotient - _rounding(f, a, b)).argmax()
        _require(
            quotient[k] <= bound * (1.0 + 1e-8) + _rounding(f, a, b)[k],
            f"{constant} of {loss!r} is {bound:g}, but {method} changes {quotient[k]:g} times as much as p "
            f"between {a[k]:.9g} and {b[k]:.9g}, y = {y:g}.",
        )


def _steepest_piece(f: Callable[[np.ndarray], np.ndarray], p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Refine the grid where f is steepest, and return the ends of the intervals there."""
    while True:
        a, b = p[:-1], p[1:]
        k = int((abs(f(b) - f(a)) / (b - a) - _rounding(f, a, b)).argmax())
        if b[k] - a[k] < 1e-4 * (1.0 + abs(a[k])):
            return a, b
        p = np.linspace(p[max(k - 1, 0)], p[min(k + 2, p.size - 1)], 61)


def _check_scalars(loss: Loss, p: np.ndarray, y: float) -> None:
    """Check that single numbers, interpreted and compiled, give the results of arrays."""
    found = [[float(getattr(loss, method)(float(one), float(y))) for one in p] for method in METHODS]
    _check_same(loss, p, y, np.array(found), "for single numbers")
    found = np.empty((len(METHODS), p.size))
    try:
        _fill(loss, p, float(y), found)
    except Exception as error:
        raise AssertionError(f"{loss!r} does not compile: {str(error).strip().splitlines()[0]}") from error
    _check_same(loss, p, y, found, "when compiled")


def _check_same(loss: Loss, p: np.ndarray, y: float, found: np.ndarray, kind: str) -> None:
    expected = np.array([_call(loss, method, y)(p) for method in METHODS])
    wrong = np.argwhere(~np.isclose(found, expected, rtol=1e-9, atol=1e-12))
    if wrong.size:
        m, k = wrong[0]
        raise AssertionError(
            f"{METHODS[m]} of {loss!r} gives {found[m, k]:g} {kind} and {expected[m, k]:g} for arrays, "
            f"at p = {p[k]:g}, y = {y:g}."
        )


@kernel
def _fill(loss, p, y, out):
    for q in range(p.size):
        out[0, q] = loss.value(p[q], y)
        out[1, q] = loss.derivative(p[q], y)
        out[2, q] = loss.second_derivative(p[q], y)
