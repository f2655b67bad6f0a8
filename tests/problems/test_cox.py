"""CoxProblem: against the definition, other solvers, and the same sums in decimals of fifty digits."""

import pickle
from decimal import Decimal

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse
from partial_likelihood import exact, negative_log_likelihood

import condgrad as cg
from condgrad import constraints
from condgrad.constraints import Atom, L1Ball, L2Ball
from condgrad.problems.cox import likelihood
from condgrad.testing import check_problem

RNG = np.random.default_rng(0)
N, D = 80, 6
X = RNG.standard_normal((N, D))
X[np.abs(X) < 0.3] = 0.0
TIME = np.ceil(4.0 * RNG.exponential(np.exp(-X @ np.array([1.0, -0.5, 0.0, 0.5, 0.0, 0.0]))) + 0.01)
EVENT = RNG.random(N) < 0.7
Y = np.column_stack([TIME, EVENT])
STRATA = RNG.choice(["Bern", "Lyon", "Turin"], N)
WEIGHT = RNG.uniform(0.2, 3.0, N)
OFFSET = RNG.standard_normal(N)
TIES = ("breslow", "efron")
SETTINGS = {
    "plain": {},
    "strata": {"strata": STRATA},
    "weights": {"weight": WEIGHT},
    "all": {"strata": STRATA, "weight": WEIGHT, "offset": OFFSET},
}
FORMS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "csr": scipy.sparse.csr_matrix,
    "csc": scipy.sparse.csc_array,
}


def problem_of(constraint=None, X=X, Y=Y, ties="breslow", **settings):
    given = {"sample_weight" if name == "weight" else name: value for name, value in settings.items()}
    return cg.CoxProblem(X, Y, constraint or L1Ball(1.5), ties=ties, **given)


@pytest.mark.parametrize("ties", TIES)
@pytest.mark.parametrize("name", SETTINGS)
def test_it_is_the_partial_likelihood(ties, name):
    problem, w = problem_of(ties=ties, **SETTINGS[name]), np.linspace(-1.0, 0.7, D)
    expected = negative_log_likelihood(w, X, TIME, EVENT, ties, **SETTINGS[name])
    assert problem.objective(w) == pytest.approx(expected, rel=1e-13)
    check_problem(problem)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dense_and_sparse_data_of_both_precisions_agree(form, dtype):
    given, w = X.astype(dtype), np.linspace(-1.0, 0.7, D)
    settings = {"ties": "efron", **SETTINGS["all"]}
    one, other = problem_of(X=given, **settings), problem_of(X=FORMS[form](given), **settings)
    mine, its = one.look(w), other.look(w)
    assert its.objective == pytest.approx(mine.objective, rel=1e-13)
    np.testing.assert_allclose(its.gradient, mine.gradient, atol=1e-14)
    atoms = [Atom(0, 1.5), Atom(3, -1.5), Atom(4, 1.5)]
    np.testing.assert_allclose(its.curvature(atoms), mine.curvature(atoms), atol=1e-13)
    assert cg.minimize(other, tol=1e-10).objective == pytest.approx(cg.minimize(one, tol=1e-10).objective, abs=1e-9)


@pytest.mark.parametrize("ties", TIES)
def test_certificates_hold_in_exact_arithmetic(ties):
    rng = np.random.default_rng(1)
    for scale in (1e-3, 1.0, 30.0, 1e4):  # the largest: predictions far beyond the range of exponentials
        for settings in ({}, {"strata": rng.integers(0, 3, 25), "weight": rng.choice([1e-6, 1.0, 1e4], 25),
                              "offset": scale * rng.standard_normal(25)}):  # fmt: skip
            Z = scale * rng.standard_normal((25, 4)) * (rng.random((25, 4)) < 0.8)
            time, event = rng.integers(1, 9, 25).astype(float), rng.random(25) < 0.7
            problem = problem_of(L1Ball(2.0), Z, np.column_stack([time, event]), ties, **settings)
            for w in (np.zeros(4), np.array([1.0, -0.7, 0.0, 0.3]), cg.minimize(problem, tol=0.0, max_epochs=30).w):
                found = problem.evaluate(w)
                objective, r = exact(w, Z, time, event, ties, **settings)
                along = sum(Decimal(x) * r_j for x, r_j in zip(w.tolist(), r, strict=True))
                gap = float(along + 2 * max(map(abs, r)))
                assert abs(gap - found.gap) <= found.rounding
                slack = found.objective - found.gap - found.rounding - found.lower_bound
                assert abs(float(objective) - found.objective) <= slack
                assert found.rounding <= 1e-8 * max(1.0, scale)


def test_bounds_of_expected_events_cover_their_rounding():
    """In exact arithmetic for predictions that are exact: all that is left is the rounding of running sums."""
    rng = np.random.default_rng(0)
    y = np.column_stack([rng.permutation(300) + 1.0, np.ones(300)])
    sets = problem_of(X=rng.standard_normal((300, 2)), Y=y).sets
    for spread in (0.1, 20.0):
        p = spread * rng.standard_normal(300)
        sums = likelihood.sums_at(sets, p)
        found = likelihood.expected_events(sets, p, sums)
        allowed = likelihood.errors_of(sets, p, sums, likelihood.value_of(sets, p, sums)[1], 0.0).expected
        hazards = [Decimal(m) * Decimal(x).exp() for m, x in zip(sets.mass.tolist(), p.tolist(), strict=True)]
        worst = Decimal(0)
        for k in range(300):
            rate = sum(
                Decimal(u) / sum(hazards[:stop])
                for u, stop in zip(sets.weight.tolist(), sets.stop.tolist(), strict=True)
                if stop > k
            )
            worst = max(worst, abs(Decimal(float(found[k])) / (hazards[k] * rate) - 1))
        assert 0 < worst <= allowed < 1e-10


def test_far_predictions_neither_overflow_nor_vanish():
    """One sample has a risk of exp(3000) times that of the others, which have events after it."""
    Z = np.array([[3000.0], [1.0], [0.0], [-2000.0]])
    y = np.array([[1.0, 1], [2.0, 1], [3.0, 1], [4.0, 1]])
    problem, w = problem_of(L1Ball(1.0), Z, y), np.array([1.0])
    expected = (np.log1p(np.exp(-1.0)) + 0.0 + 0.0 + 0.0) / 4.0
    assert problem.objective(w) == pytest.approx(expected, rel=1e-12)
    assert np.isfinite(problem.gradient(w)).all()
    reverse = problem_of(L1Ball(1.0), Z, np.column_stack([y[::-1, 0], y[:, 1]]))
    assert reverse.objective(w) == pytest.approx((2999.0 + 3000.0 + 5000.0) / 4.0, rel=1e-12)


@pytest.mark.parametrize("ties", TIES)
def test_scipy_finds_the_same_optimum(ties):
    settings = SETTINGS["all"]
    problem = problem_of(ties=ties, **settings)
    result = cg.minimize(problem, tol=1e-10)

    def split(z):  # w = z[:D] - z[D:], whose l1 norm is the sum of z
        return negative_log_likelihood(z[:D] - z[D:], X, TIME, EVENT, ties, **settings)

    budget = {"type": "ineq", "fun": lambda z: 1.5 - z.sum()}
    found = scipy.optimize.minimize(
        split, np.full(2 * D, 0.1), bounds=[(0.0, None)] * (2 * D), constraints=[budget], method="SLSQP",
        options={"ftol": 1e-13, "maxiter": 500},
    )  # fmt: skip
    assert abs(found.fun - result.objective) <= 1e-6 * abs(result.objective)
    assert result.objective <= found.fun + 1e-10


@pytest.mark.parametrize("ties", TIES)
def test_clarabel_finds_the_same_optimum(ties):
    cvxpy = pytest.importorskip("cvxpy")
    pytest.importorskip("clarabel")
    from partial_likelihood import risk_sets

    w = cvxpy.Variable(D)
    p, terms = X @ w, []
    for risk, dead, _ in risk_sets(TIME, EVENT, STRATA):
        count = int(dead.sum())
        for k in range(count):
            keep = np.where(dead, 1.0 - (k / count if ties == "efron" else 0.0), 1.0)[risk]
            terms.append(cvxpy.log_sum_exp(p[np.flatnonzero(risk)] + np.log(keep)))
        terms.append(-cvxpy.sum(p[np.flatnonzero(dead)]))
    program = cvxpy.Problem(cvxpy.Minimize(sum(terms) / N), [cvxpy.norm1(w) <= 1.5])
    program.solve(solver="CLARABEL")
    result = cg.minimize(problem_of(ties=ties, strata=STRATA), tol=1e-10)
    assert abs(program.value - result.objective) <= 1e-6 * abs(result.objective)
    assert result.lower_bound <= program.value + 1e-7


@pytest.mark.parametrize("solver", ["auto", "corrective", "fw", "lazy", "away", "pairwise", "bpcg", "boosted"])
@pytest.mark.parametrize("constraint", [L1Ball(1.5), constraints.Simplex(1.0), constraints.KSparsePolytope(2, 0.5)])
def test_every_solver_of_passes_serves_it(solver, constraint):
    problem = problem_of(constraint, ties="efron", strata=STRATA)
    best = cg.minimize(problem, tol=1e-9)
    result = cg.minimize(problem, solver, tol=1e-9 if solver in ("auto", "corrective") else 2e-3, max_epochs=2000)
    assert result.status is cg.Status.CONVERGED
    assert result.lower_bound <= best.objective <= result.objective + 1e-9


def test_solvers_of_single_samples_say_why_they_do_not():
    with pytest.raises(TypeError, match="a sample of a Cox model has no term of its own"):
        cg.minimize(problem_of(), "sfw")


@pytest.mark.parametrize("constraint", [L2Ball(0.5), constraints.Box(-0.2, 0.3), L1Ball(1.0)])
def test_short_steps_and_bounds_of_the_curvature_hold(constraint):
    problem = problem_of(constraint, ties="efron", **SETTINGS["all"])
    vertices = [problem.lmo(RNG.standard_normal(D)) for _ in range(3)]
    for w in (np.zeros(D), 0.1 * vertices[0].to_dense(D)):
        H = problem.look(w).curvature(vertices)
        for k, v in enumerate(vertices):
            dense = v.to_dense(D)
            assert H[k, k] <= problem.curvature_along(problem.scores(dense)) * (1.0 + 1e-12)
            assert H[k, k] <= problem.lipschitz() * (dense @ dense) * (1.0 + 1e-12)
    result = cg.minimize(problem, cg.solvers.FrankWolfe(cg.step_sizes.ShortStep()), tol=1e-2, max_epochs=5000)
    assert result.status is cg.Status.CONVERGED


@pytest.mark.parametrize("ties", TIES)
def test_a_curvature_from_some_samples_is_close_and_never_negative(ties):
    rng = np.random.default_rng(2)
    Z, n = rng.standard_normal((4000, 5)), 4000
    y = np.column_stack([np.ceil(rng.exponential(np.exp(-Z[:, 0])) * 50), rng.random(n) < 0.6])
    look = cg.CoxProblem(Z, y, L1Ball(1.0), ties=ties, strata=rng.integers(0, 3, n)).look(np.full(5, 0.1))
    atoms = [Atom(j, 1.0) for j in range(5)]
    whole, part = look.curvature(atoms), look.curvature(atoms, n_rows=800)
    assert np.abs(whole - part).max() <= 0.15 * np.abs(whole).max()
    assert np.linalg.eigvalsh(part).min() >= 0.0
    few = look.curvature(atoms, n_rows=3)
    assert np.linalg.eigvalsh(few).min() >= -1e-12


def test_blocks_of_samples_change_no_curvature(monkeypatch):
    from condgrad.problems.cox import curvature

    look, atoms = problem_of(ties="efron", **SETTINGS["all"]).look(np.full(D, 0.1)), [Atom(j, 1.0) for j in range(D)]
    whole = look.curvature(atoms)
    for entries in (D, 3 * D, 7 * D):
        monkeypatch.setattr(curvature, "_BLOCK_ENTRIES", entries)
        np.testing.assert_allclose(look.curvature(atoms), whole, atol=1e-14)


def test_samples_without_weight_and_repeated_samples():
    repeats = RNG.integers(0, 3, N)
    weighted = problem_of(weight=repeats.astype(float))
    left_out = repeats > 0
    w = np.linspace(-0.5, 0.5, D)
    alone = problem_of(X=X[left_out], Y=Y[left_out], weight=repeats[left_out].astype(float))
    assert weighted.objective(w) == pytest.approx(alone.objective(w), rel=1e-14)
    # With Breslow's rule a weight of 2 is the same as the sample twice, but for the logarithm's own scale.
    twice = problem_of(X=np.repeat(X, repeats, axis=0), Y=np.repeat(Y, repeats, axis=0))
    assert weighted.objective(w) == pytest.approx(twice.objective(w), rel=1e-13)
    np.testing.assert_allclose(weighted.gradient(w), twice.gradient(w), atol=1e-14)


def test_times_count_by_their_order_only_and_large_means_cost_no_digits():
    w = np.linspace(-0.5, 0.5, D)
    one, shifted = problem_of(), problem_of(X=X + 1e7)
    other = problem_of(Y=np.column_stack([np.log(TIME) - 5.0, EVENT]))
    assert one.objective(w) == other.objective(w)
    assert shifted.objective(w) == pytest.approx(one.objective(w), rel=1e-7)  # X + 1e7 itself is rounded
    assert cg.minimize(shifted, tol=1e-9).status is cg.Status.CONVERGED


def test_structured_arrays_and_frames_tell_events_by_their_type():
    pandas = pytest.importorskip("pandas")
    w = np.linspace(-0.5, 0.5, D)
    expected = problem_of().objective(w)
    records = np.array(list(zip(EVENT, TIME, strict=True)), dtype=[("status", bool), ("days", float)])
    frame = pandas.DataFrame({"died": EVENT, "time": TIME})
    numbers = pandas.DataFrame({"time": TIME, "died": EVENT.astype(int)})
    for y in (records, frame, frame[["time", "died"]], numbers, Y.tolist()):
        assert problem_of(Y=y).objective(w) == expected


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"Y": TIME}, r"y must tell times and events: two columns .* got shape \(80,\)"),
        ({"Y": np.column_stack([EVENT, TIME])}, "got the event"),
        ({"Y": np.column_stack([TIME, EVENT, EVENT])}, r"got shape \(80, 3\)"),
        ({"Y": np.column_stack([TIME, np.zeros(N)])}, "y has no event"),
        ({"Y": [[1.0, 1.0], [2.0]] * 40}, "got rows of different lengths"),
        ({"Y": [["long", 1.0], ["short", 0.0]] * 40}, "y must be an array of numbers"),
        ({"Y": Y[:5]}, "X has 80 rows, y has 5"),
        ({"Y": np.where(TIME[:, None] > 2.0, np.nan, Y)}, "not finite"),
        ({"ties": "exact"}, "ties must be 'breslow' or 'efron'; got 'exact'"),
        ({"strata": STRATA[:3]}, r"strata must have one label per sample, shape \(80,\); got shape \(3,\)"),
        ({"strata": np.where(EVENT, np.nan, 1.0)}, "labels that are nan"),
        ({"weight": -WEIGHT}, "sample_weight must not be negative"),
        ({"weight": np.where(EVENT, 0.0, 1.0)}, "y has no event among the samples with weight"),
        ({"offset": OFFSET[:4]}, "offset must have one entry per sample"),
        ({"constraint": constraints.Box(np.zeros(3), np.ones(3))}, "3"),
    ],
)
def test_wrong_input_gets_a_sentence(changes, sentence):
    with pytest.raises(ValueError, match=sentence):
        problem_of(**changes)


def test_two_boolean_fields_are_not_guessed_at():
    records = np.zeros(N, dtype=[("died", bool), ("moved", bool)])
    with pytest.raises(ValueError, match=r"of the columns \['died', 'moved'\], 2 are boolean"):
        problem_of(Y=records)


def test_it_can_be_copied_and_checkpointed(tmp_path):
    problem = problem_of(ties="efron", strata=STRATA)
    again = pickle.loads(pickle.dumps(problem))
    assert again.fingerprint() == problem.fingerprint()
    assert problem.fingerprint() != problem_of(strata=STRATA).fingerprint()
    assert problem.with_targets(Y).fingerprint() == problem.fingerprint()
    with pytest.raises(ValueError, match="y has no event"):
        problem.with_targets(np.column_stack([TIME, np.zeros(N)]))
    assert f"ties='efron', n_samples=80, n_events={EVENT.sum()}, n_features=6" in repr(problem)
    part = problem.part(20)
    assert part.n_samples < N
    assert part.objective(np.zeros(D)) > 0.0
    path = tmp_path / "run"
    cg.minimize(problem, "pairwise", tol=0.0, max_steps=3, checkpoint=cg.Checkpoint(path))
    result = cg.minimize(problem, "pairwise", tol=1e-3, checkpoint=cg.Checkpoint(path))
    assert result.status is cg.Status.CONVERGED
