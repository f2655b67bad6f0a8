"""Whatever comes in: a result that is finite, feasible and certified, or one clear sentence. Never anything else."""

import math

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from tables import BY_RADIUS, LOSSES, targets
from tables import FOUR_FORMS as FORMS

import condgrad as cg

SOLVERS = ["fw", "away", "pairwise", "bpcg"]
few = settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


def outcome(X, y, loss, make_constraint, solver, *, w0=None, **settings):
    """Solve, and check that the answer is one; or check that the refusal is one sentence, and return None."""
    try:
        problem = cg.Problem(X, y, loss, make_constraint(), **settings)
        result = cg.minimize(problem, solver, max_steps=30, w0=w0, tol=1e-9)
    except (ValueError, TypeError) as error:
        sentence = str(error)
        assert "\n" not in sentence, sentence
        assert sentence.endswith("."), sentence
        assert "Traceback" not in sentence
        assert len(sentence) < 700, sentence  # the largest integer tried has 400 digits
        return None
    assert np.isfinite(result.w).all()
    assert math.isfinite(result.objective)
    assert math.isfinite(result.gap)
    assert math.isfinite(result.intercept)
    assert result.gap == problem.gap(result.w)
    assert result.objective == pytest.approx(problem.objective(result.w), rel=1e-12, abs=0.0)
    scale = 1.0 + abs(result.w).sum()
    assert problem.constraint.violation(result.w) <= 1e-9 * scale
    # A negative gap is rounding: small beside the terms of <r, w - s>.
    r = problem.gradient(result.w)
    s = problem.lmo(r).to_dense(r.size)
    assert result.gap >= -1e-9 * (abs(r) @ (abs(result.w) + abs(s)) + 1e-300)
    # Beyond 1e12 a float has no room for an intercept that the loss could tell from its neighbours.
    p = problem.matrix.dot(result.w)
    if problem.is_convex and not (problem.has_intercept and abs(p).max() > 1e12):
        assert result.lower_bound <= result.objective + 1e-9 * abs(result.objective)
    return problem, result


magnitudes = st.sampled_from([0.0, 1e-300, 1e-155, 1e-60, 1e-8, 1.0, 1e8, 1e59, 1e60, 1e155, 1e300])
floats = st.floats(-3.0, 3.0, allow_subnormal=False)
anything = st.floats(allow_nan=True, allow_infinity=True)
shapes = st.tuples(st.integers(1, 6), st.integers(1, 5))


@st.composite
def problems(draw):
    n, d = draw(shapes)
    X = draw(hnp.arrays(float, (n, d), elements=floats, fill=st.just(0.0)))
    y = draw(hnp.arrays(float, n, elements=floats, fill=st.just(1.0)))
    return X, y


@st.composite
def quarters(draw):
    """Multiples of 1/4: rows that repeat, columns of zeros, but no column that is all but zero."""
    n, d = draw(shapes)
    X = draw(hnp.arrays(np.int64, (n, d), elements=st.integers(-8, 8), fill=st.just(0)))
    y = draw(hnp.arrays(np.int64, n, elements=st.integers(-8, 8), fill=st.just(4)))
    return X / 4.0, y / 4.0


@few
@given(
    problems(), magnitudes, magnitudes, magnitudes, st.sampled_from(sorted(LOSSES)), st.sampled_from(sorted(BY_RADIUS)),
    st.sampled_from(SOLVERS), st.sampled_from(sorted(FORMS)), st.booleans(), st.booleans(),
)  # fmt: skip
def test_every_magnitude(data, x_size, y_size, radius, loss, kind, solver, form, intercept, weighted):
    """All-zero X, one row, one column, constant y, sizes from 1e-300 to 1e300 of X, y and the set."""
    X, y = data
    with np.errstate(over="ignore"):
        X, y = X * x_size, y * y_size
    weight = np.arange(len(y)) % 3 + 1.0 if weighted else None
    found = outcome(
        FORMS[form](X),
        targets(LOSSES[loss], y),
        LOSSES[loss],
        lambda: BY_RADIUS[kind](radius),
        solver,
        intercept=intercept,
        sample_weight=weight,
    )
    is_tame = x_size <= 1e59 and y_size <= 1e59 and 0.0 < radius <= 1e59
    if is_tame and not intercept:
        assert found is not None, "a problem in range was refused"


@few
@given(
    hnp.arrays(float, shapes, elements=anything), st.lists(anything, min_size=1, max_size=6), anything,
    st.sampled_from(SOLVERS), st.sampled_from(sorted(FORMS)),
)  # fmt: skip
def test_any_numbers(X, y, radius, solver, form):
    """Nan, inf, subnormals and the largest floats anywhere, lengths that need not fit, any radius."""
    found = outcome(FORMS[form](X), y, cg.losses.Squared(), lambda: cg.constraints.L1Ball(radius), solver)
    is_wrong = not np.isfinite(X).all() or not np.isfinite(y).all() or len(y) != len(X) or not 0.0 < radius < math.inf
    if is_wrong:
        assert found is None


scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.complex_numbers(), st.text(max_size=3),
    st.just(10**400), st.just([1.0, [2.0]]), st.just({}),
)  # fmt: skip


@few
@given(
    st.one_of(
        scalars,
        st.lists(scalars, max_size=3),
        st.lists(st.lists(scalars, max_size=3), max_size=3),
        hnp.arrays(object, hnp.array_shapes(max_dims=3, max_side=3), elements=scalars),
        hnp.arrays(hnp.scalar_dtypes(), hnp.array_shapes(max_dims=3, max_side=3)),
    ),
    st.one_of(
        scalars,
        st.lists(scalars, max_size=3),
        hnp.arrays(hnp.scalar_dtypes(), hnp.array_shapes(max_dims=2, max_side=3)),
    ),
)
def test_any_object(X, y):
    """Strings, bytes, dates, complex numbers, objects, ragged lists, any number of dimensions, for X, y and weights."""
    ball = lambda: cg.constraints.L1Ball(1.0)  # noqa: E731
    outcome(X, y, cg.losses.Squared(), ball, "pairwise")
    outcome(np.eye(2), y, cg.losses.Squared(), ball, "pairwise")
    outcome(X, [1.0, 2.0], cg.losses.Squared(), ball, "pairwise")
    outcome(np.eye(2), [1.0, 2.0], cg.losses.Squared(), ball, "pairwise", sample_weight=y)
    outcome(np.eye(2), [1.0, 2.0], cg.losses.Squared(), ball, "pairwise", w0=y)


@few
@given(
    st.one_of(
        scalars,
        st.lists(scalars, max_size=3),
        hnp.arrays(hnp.scalar_dtypes(), hnp.array_shapes(max_dims=2, max_side=3)),
    )
)
def test_any_parameter(value):
    """Radii, bounds, orders, groups, widths: refused in one sentence, or good for a run."""
    for make in (
        cg.constraints.L1Ball, cg.constraints.Simplex, cg.constraints.L2Ball, cg.constraints.LinfBall,
        cg.constraints.NonnegativeL1Ball, lambda v: cg.constraints.Box(v, v), lambda v: cg.constraints.Box(0.0, v),
        lambda v: cg.constraints.LpBall(v, 1.0), lambda v: cg.constraints.KSparsePolytope(v, 1.0),
        lambda v: cg.constraints.Hypersimplex(v), lambda v: cg.constraints.GroupBall(v, 1.0),
        lambda v: cg.constraints.ConvexHull(v), lambda v: cg.constraints.WeightedL1Ball(1.0, v),
        lambda v: cg.constraints.Scale(cg.constraints.Simplex(), v),
        lambda v: cg.constraints.Shift(cg.constraints.Simplex(), v),
    ):  # fmt: skip
        outcome(np.eye(2), [1.0, 2.0], cg.losses.Squared(), lambda make=make: make(value), "fw")
    for make in (cg.losses.Huber, cg.losses.Pinball, cg.losses.PseudoHuber, cg.losses.SmoothedHinge, cg.losses.Welsch):
        try:
            loss = make(value)
        except (ValueError, TypeError) as error:
            assert "\n" not in str(error)
            continue
        outcome(np.eye(2), [1.0, -1.0], loss, lambda: cg.constraints.L1Ball(1.0), "fw")


@few
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), floats), max_size=12), st.sampled_from(["csr", "csc"]),
    st.randoms(use_true_random=False), st.sampled_from(SOLVERS),
)  # fmt: skip
def test_untidy_sparse_matrices(entries, form, random, solver):
    """Duplicates, unsorted indices, stored zeros, empty rows: the same answer as the dense matrix they stand for."""
    entries = list(entries)
    random.shuffle(entries)
    major = 0 if form == "csr" else 1
    entries.sort(key=lambda entry: entry[major])
    n_major = (4, 3)[major]
    counts = np.bincount([entry[major] for entry in entries], minlength=n_major)
    arrays = (
        np.array([entry[2] for entry in entries], dtype=float),
        np.array([entry[1 - major] for entry in entries], dtype=np.int32),
        np.concatenate([[0], np.cumsum(counts)]).astype(np.int32),
    )
    X = getattr(scipy.sparse, f"{form}_matrix")(arrays, shape=(4, 3))
    dense = np.zeros((4, 3))
    for i, j, value in entries:
        dense[i, j] += value
    y = np.array([1.0, -1.0, 2.0, 0.5])
    problem, result = outcome(X, y, cg.losses.Squared(), lambda: cg.constraints.L1Ball(1.0), solver)
    plain = cg.Problem(dense, y, cg.losses.Squared(), cg.constraints.L1Ball(1.0))
    assert problem.objective(result.w) == pytest.approx(plain.objective(result.w), rel=1e-12)
    assert problem.gap(result.w) == pytest.approx(plain.gap(result.w), rel=1e-9, abs=1e-12)


DTYPES = ["f2", "f4", "f8", ">f4", ">f8", "?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", ">i4", "g"]


@few
@given(problems(), st.sampled_from(DTYPES), st.sampled_from(sorted(FORMS)), st.booleans(), st.sampled_from(SOLVERS))
def test_any_number_type(data, dtype, form, writeable, solver):
    X, y = data
    X = np.round(abs(X)).astype(dtype)
    if form in ("csr", "csc") and dtype in ("f2", ">f4", ">f8", ">i4"):
        return  # scipy has neither half precision nor foreign byte orders
    made = FORMS[form](X)
    if form in ("C", "F"):
        made.flags.writeable = writeable
    found = outcome(made, y, cg.losses.Squared(), lambda: cg.constraints.Simplex(1.0), solver)
    assert found is not None
    plain = cg.Problem(X.astype(float), y, cg.losses.Squared(), cg.constraints.Simplex(1.0))
    size = 1.0 + float(y @ y)  # a small objective is a sum of squares of differences, which have lost their digits
    assert found[0].objective(found[1].w) == pytest.approx(plain.objective(found[1].w), rel=1e-12, abs=1e-14 * size)


columns = st.one_of(
    st.lists(st.integers(-5, 5), min_size=3, max_size=3),
    st.lists(st.floats(-5, 5), min_size=3, max_size=3),
    st.lists(st.booleans(), min_size=3, max_size=3),
    st.lists(st.one_of(st.none(), st.integers(-5, 5)), min_size=3, max_size=3),
    st.lists(st.text(alphabet="ab", max_size=2), min_size=3, max_size=3),
    st.just(pd.to_datetime(["2020-01-01", "2020-01-02", "2020-01-03"]).tolist()),
)


@few
@given(st.lists(columns, min_size=1, max_size=3), st.sampled_from(["pandas", "polars"]))
def test_any_data_frame(values, package):
    frame = {f"x{k}": column for k, column in enumerate(values)}
    X = pd.DataFrame(frame) if package == "pandas" else pytest.importorskip("polars").DataFrame(frame)
    y = pd.Series([1.0, 2.0, 3.0]) if package == "pandas" else pytest.importorskip("polars").Series([1.0, 2.0, 3.0])
    found = outcome(X, y, cg.losses.Squared(), lambda: cg.constraints.L1Ball(1.0), "pairwise")
    has_numbers = all(isinstance(entry, bool | int | float) for column in values for entry in column)
    assert (found is not None) == has_numbers


@few
@given(
    hnp.arrays(float, 3, elements=st.floats(-2.0, 2.0)), st.sampled_from(SOLVERS), st.sampled_from(sorted(BY_RADIUS))
)
def test_any_start(w0, solver, kind):
    """Feasible: the run starts there. Infeasible: the sentence says by how much."""
    X, y = np.random.default_rng(0).standard_normal((6, 3)), np.arange(6.0)
    problem = cg.Problem(X, y, cg.losses.Squared(), BY_RADIUS[kind](1.0))
    violation = problem.constraint.violation(w0)
    if violation > 1e-6 * (1.0 + abs(w0).sum()):
        with pytest.raises(ValueError, match=r"^w0 lies outside .* by .*; scale or project it first\.$"):
            cg.minimize(problem, solver, w0=w0)
    elif violation <= 1e-9:
        found = outcome(X, y, cg.losses.Squared(), lambda: BY_RADIUS[kind](1.0), solver, w0=w0)
        start = found[1].trace.objective[0]
        assert start == pytest.approx(problem.objective(w0), rel=1e-6, abs=1e-9)


@few
@given(quarters(), st.sampled_from(SOLVERS), st.floats(0.01, 10.0), st.booleans())
def test_any_small_problem_converges(data, solver, radius, intercept):
    """Degenerate data in range: linear solvers get close, or stop where rounding stops them."""
    X, y = data
    problem = cg.Problem(X, y, cg.losses.Squared(), cg.constraints.L1Ball(radius), intercept=intercept)
    result = cg.minimize(problem, solver, tol=1e-7, max_epochs=3000 if solver != "fw" else 200)
    assert result.gap <= 1e-4 * (1.0 + result.trace.gap[0]) or solver == "fw"
    assert problem.constraint.violation(result.w) <= 1e-12 * radius
