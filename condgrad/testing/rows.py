"""check_rows: checks that a storage of samples fulfils the contract of Rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import scipy.sparse

from condgrad import losses
from condgrad.constraints import REGISTERED
from condgrad.linalg.convert import Checked, as_weights
from condgrad.linalg.matrix import Matrix
from condgrad.problems.active_set import AtomStack
from condgrad.problems.linear import Problem
from condgrad.problems.offset import as_offset
from condgrad.problems.rows.base import Rows
from condgrad.problems.samples import Samples
from condgrad.run.minimize import minimize

_SAME = 1e-12  # relative difference of one number computed in two orders of summation
_ESTIMATE = 0.2  # relative error of a curvature that is estimated from many rows
_MOST_READS = {1e-4: 6.0, 1e-6: 9.0}  # by relative gap, for 3,000 samples: with 600, draws took 5 to 12, and 7 to 18

_BALL = REGISTERED.find("l1")(2.0)

MakeRows = Callable[[Checked, Samples, bool], Rows]  # (X, samples, has_intercept) -> rows


def check_rows(
    make: MakeRows, *, data: Sequence[Checked] | None = None, n_samples: int = 3000, random_state: int = 0
) -> None:
    """Check a kind of rows; raise AssertionError, in a sentence, if it breaks the contract of :class:`Rows`.

    Dense and sparse data are made for it, and every loss. It is checked that

    * a look at random points, with weights, with and without offsets and an intercept, is that of the same data in
      memory;
    * the certificate of a look with a guessed intercept holds: its lower bound is not above the optimum;
    * the curvature, if it is estimated from drawn rows, is that of all samples on average;
    * subsamples lie in memory, have about the requested size, and their weights sum to one;
    * a run to relative gaps of 1e-4 and 1e-6 ends certified within a few reads, at the optimum of the data in memory;
    * ``along_shift`` of the coefficients of some features is that of all coefficients;
    * ``definition`` identifies the data, and ``with_targets`` changes the targets alone.

    Parameters
    ----------
    make : callable
        ``make(X, samples, has_intercept)`` stores an array or CSR matrix and returns its rows.
    data : sequence of arrays and CSR matrices, optional
        What ``make`` can store, if it cannot store every array and CSR matrix; the first one is checked with offsets.
    n_samples, random_state : int
        The size of the data that are made, and their seed. With fewer than 3,000, a storage that makes its steps on a
        sample needs more reads than are allowed, if the sample is a draw that is unlike all rows.

    Examples
    --------
    >>> from condgrad.linalg.matrix import Matrix
    >>> from condgrad.problems.rows.memory import MemoryRows
    >>> check_rows(lambda X, samples, has_intercept: MemoryRows(Matrix(X), samples), n_samples=300)
    """
    rng, of_offsets = np.random.default_rng(random_state), np.random.default_rng([random_state, 1])
    if data is None:
        dense = rng.standard_normal((n_samples, 12))
        data = (dense, dense.astype(np.float32), _sparse(rng, n_samples))
    for k, X in enumerate(data):
        n_samples = X.shape[0]
        for name, loss in losses.REGISTERED.items():
            samples = _samples(loss(), X, rng)
            _check_looks(make, X, samples, f"with the loss {name!r}", rng)
            if k == 0:
                offset = as_offset(of_offsets.uniform(-1.0, 1.0, n_samples), n_samples)
                about = f"with the loss {name!r}, offsets"
                _check_looks(make, X, samples._replace(offset=offset), about, of_offsets)
        logistic = _samples(losses.by_name("logistic"), X, rng)
        _check_parts(make(X, logistic, False), n_samples)
        _check_shift(make(X, logistic, True))
        _check_curvature(make(X, logistic, False), X, rng)
        _check_definition(make, X, logistic)
        for has_intercept in (False, True):
            _check_runs(make(X, logistic, has_intercept), X, logistic, has_intercept)


def _sparse(rng: np.random.Generator, n_samples: int) -> Checked:
    return scipy.sparse.random(n_samples, 40, density=0.1, format="csr", random_state=rng)


def _samples(loss: losses.Loss, X: Checked, rng: np.random.Generator) -> Samples:
    """Return targets that suit the loss, and random weights."""
    n, d = X.shape
    p = Matrix(X).dot(rng.standard_normal((d,))) + 0.3
    y = rng.poisson(np.exp(np.clip(p, -3.0, 2.0))).astype(float)
    if loss.classes is not None:
        y = np.where(p + rng.logistic(size=n) > 0.0, loss.classes[1], loss.classes[0])
    y = next(choice for choice in (y, y + 0.5, np.minimum(y, 4.0) / 4.0) if _is_taken(loss, choice))
    return Samples(loss, y, as_weights(rng.uniform(0.5, 2.0, n), n))


def _is_taken(loss: losses.Loss, y: np.ndarray) -> bool:
    try:
        loss.check_targets(y)
    except ValueError:
        return False
    return True


def _in_memory(X: Checked, samples: Samples, has_intercept: bool) -> Problem:
    offset = samples.offset.to_array()
    return Problem(
        X, samples.y, samples.loss, _BALL, sample_weight=samples.weight, offset=offset, intercept=has_intercept
    )


def _check_looks(make: MakeRows, X: Checked, samples: Samples, about: str, rng: np.random.Generator) -> None:
    for has_intercept in (False, True) if samples.loss.is_convex else (False,):
        known = _in_memory(X, samples, has_intercept)
        problem = Problem.of_rows(make(X, samples, has_intercept), _BALL, intercept=has_intercept)
        w = rng.standard_normal(X.shape[1])
        w *= 1.5 / np.abs(w).sum()
        look, expected = problem.look(w), known.look(w)
        scale = max(1.0, abs(expected.objective), float(np.abs(expected.gradient).max()))
        where = f"{about} and {'an' if has_intercept else 'no'} intercept"
        _require(abs(look.objective - expected.objective) <= _SAME * scale, f"objectives differ {where}.")
        error = float(np.abs(look.gradient - expected.gradient).max())
        _require(error <= _SAME * scale, f"gradients differ by {error:.3g} {where}.")
        _require(abs(look.gap - expected.gap) <= 4.0 * _SAME * scale, f"gaps differ {where}.")
        if has_intercept:
            guessed = problem.look_with(w, expected.evaluation.offset + 0.01)
            low, high = guessed.evaluation.lower_bound, expected.objective
            _require(low <= high + _SAME * scale, f"a guessed intercept gives a false lower bound {where}.")
            _require(guessed.gap < np.inf, f"a guessed intercept has no gap {where}.")


def _check_parts(rows: Rows, n_samples: int) -> None:
    n_rows = n_samples // 10
    part = rows.head(n_rows)
    _require(part is not None and part.is_in_memory, "a subsample is not in memory, or not where passes are as cheap.")
    assert part is not None
    _require(n_rows // 2 <= part.n_samples <= 2 * n_rows + 20, f"head({n_rows}) has {part.n_samples} samples.")
    _require(abs(part.samples.weight.sum() - 1.0) <= 1e-9, "the weights of a subsample do not sum to one.")
    _require(rows.head(10 * n_samples) is rows, "head of more samples than there are must be the rows themselves.")


def _check_shift(rows: Rows) -> None:
    w = np.zeros(rows.n_features)
    features = np.arange(0, w.size, 2)
    w[features] = 1.0 + features
    whole, of_some = rows.along_shift(w), rows.along_shift(w[features], features)
    _require(abs(whole - of_some) <= _SAME * (1.0 + abs(whole)), "along_shift of some features is not that of all.")


def _check_curvature(rows: Rows, X: Checked, rng: np.random.Generator) -> None:
    problem = Problem.of_rows(rows, _BALL)
    w = rng.standard_normal(X.shape[1])
    w *= 1.5 / np.abs(w).sum()
    atoms = AtomStack(np.arange(8), np.ones(8))
    expected = _in_memory(X, rows.samples, False).look(w).curvature(atoms)
    error = float(np.abs(problem.look(w).curvature(atoms) - expected).max() / np.abs(expected).max())
    _require(error <= _ESTIMATE, f"the curvature is wrong by {error:.1%}.")


def _check_definition(make: MakeRows, X: Checked, samples: Samples) -> None:
    first, again = (Problem.of_rows(make(X, samples, False), _BALL) for _ in range(2))
    _require(first.fingerprint() == again.fingerprint(), "the same data have two fingerprints.")
    other = first.with_targets(-samples.y)
    _require(first.fingerprint() != other.fingerprint(), "other targets do not change the fingerprint.")
    w = np.full(X.shape[1], 1.0 / X.shape[1])
    expected = _in_memory(X, samples._replace(y=-samples.y), False).objective(w)
    _require(abs(other.objective(w) - expected) <= _SAME * max(1.0, expected), "with_targets changes more than y.")


def _check_runs(rows: Rows, X: Checked, samples: Samples, has_intercept: bool) -> None:
    best = minimize(_in_memory(X, samples, has_intercept), tol=0.0, relative_tol=1e-8)
    problem = Problem.of_rows(rows, _BALL, intercept=has_intercept)
    problem.reach  # noqa: B018  the columns are measured once, by a read if no manifest knows them
    for relative_tol, most in _MOST_READS.items():
        result = minimize(problem, tol=0.0, relative_tol=relative_tol)
        _require(result.status.name == "CONVERGED", f"a run to {relative_tol:g} ended with {result.status.name}.")
        _require(
            result.objective - best.objective <= result.gap + result.rounding + 1e-14,
            f"the certificate of a run to {relative_tol:g} is false.",
        )
        _require(
            result.n_reads <= most, f"a run to {relative_tol:g} took {result.n_reads:g} reads instead of {most:g}."
        )


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise AssertionError(message)
