"""The contract of problems: every kind keeps it, a user's own is served, and what breaks it is found."""

import copy

import numpy as np
import pytest
import scipy.sparse

import condgrad as cg
from condgrad import constraints, losses
from condgrad.problems.base import BaseProblem, Feature
from condgrad.problems.look import Look
from condgrad.solvers.base import Solver, missing
from condgrad.testing import check_problem

RNG = np.random.default_rng(5)
N, D = 24, 6
X = RNG.standard_normal((N, D)) * (RNG.random((N, D)) < 0.8)
P = X @ RNG.uniform(-1.0, 1.0, D) + 0.2 * RNG.standard_normal(N)
SIGNS = np.where(np.median(P) < P, 1.0, -1.0)
WEIGHT = RNG.uniform(0.5, 2.0, N)
OUTPUTS = np.column_stack([P, -P, X[:, 0]]) + 0.1 * np.random.default_rng(6).standard_normal((N, 3))


class Distances:
    """f_i(w) = ||w - c_i||^2 / 2."""

    is_convex = True

    def value(self, i, w):
        return 0.5 * np.sum((w - X[i]) ** 2)

    def gradient(self, i, w):
        return w - X[i]

    def hessian_product(self, i, w, v):
        return v


class LeastSquares(BaseProblem):
    """A user's own problem, given by its looks alone."""

    is_convex = True

    def __init__(self, A, b, constraint):
        self.A, self.b, self.constraint = A, b, constraint
        self.n_samples, self.n_features = A.shape
        self.n_looks = 0

    def look(self, w):
        self.n_looks += 1
        residual = self.A @ w - self.b
        gradient = self.A.T @ residual / self.n_samples
        sizes = 0.0, np.abs(self.A).T @ np.abs(residual) / self.n_samples
        return Look(self.certified(w, 0.5 * residual @ residual / self.n_samples, gradient, sizes=sizes))

    def fingerprint(self):
        return "least squares"


class WithCurvature(LeastSquares):
    """The same with its curvature: then corrective serves it too."""

    offers = LeastSquares.offers | {Feature.CURVATURE}
    is_quadratic = True

    def look(self, w):
        return _CurvedLook(self, super().look(w).evaluation)


class _CurvedLook(Look):
    def __init__(self, problem, evaluation):
        super().__init__(evaluation)
        self.problem = problem

    def curvature(self, atoms, known=None, n_rows=np.inf):
        vertices = atoms if isinstance(atoms, list) else [atoms.vertex(k) for k in range(len(atoms))]
        Q = self.problem.A @ np.array([v.to_dense(self.problem.n_features) for v in vertices]).T
        H = Q.T @ Q / self.problem.n_samples
        if known is not None:
            H[: known.shape[0], : known.shape[0]] = known
        return H


PROBLEMS = {
    "dense": lambda: cg.Problem(X, P, losses.Squared(), constraints.L1Ball(1.5)),
    "csr, weights": lambda: cg.Problem(
        scipy.sparse.csr_matrix(X), SIGNS, losses.Logistic(), constraints.Simplex(2.0), sample_weight=WEIGHT
    ),
    "csc, intercept": lambda: cg.Problem(
        scipy.sparse.csc_matrix(X), P, losses.Huber(0.5), constraints.L2Ball(1.0), intercept=True
    ),
    "l2": lambda: cg.Problem(X, SIGNS, losses.Logistic(), constraints.L1Ball(2.0), l2=0.3, intercept=True),
    "l2, sparse": lambda: cg.Problem(
        scipy.sparse.csr_matrix(X),
        P,
        losses.Squared(),
        constraints.KSparsePolytope(2, 1.0),
        l2=0.1,
        sample_weight=WEIGHT,
    ),
    "not convex": lambda: cg.Problem(X, P, losses.Welsch(), constraints.L1Ball(1.0)),
    "terms": lambda: cg.GeneralProblem(Distances(), constraints.L1Ball(1.0), n_samples=N, n_features=D),
    "softmax": lambda: cg.SoftmaxProblem(X, RNG.permutation(np.arange(N) % 3), constraints.L1Ball(3.0), intercept=True),
    "outputs": lambda: cg.MultiOutputProblem(X, OUTPUTS, losses.Squared(), constraints.L1Ball(2.0), intercept=True),
    "outputs, nuclear": lambda: cg.MultiOutputProblem(
        scipy.sparse.csr_matrix(X), OUTPUTS, losses.Huber(0.5), constraints.NuclearBall(1.5, shape=(3, D))
    ),
    "outputs, groups": lambda: cg.MultiOutputProblem(
        np.asfortranarray(X),
        OUTPUTS,
        losses.PseudoHuber(0.5),
        constraints.GroupBall(np.tile(np.arange(D), 3), 1.0),
        sample_weight=WEIGHT,
        intercept=True,
    ),
    "outputs, not convex": lambda: cg.MultiOutputProblem(X, OUTPUTS, losses.Welsch(), constraints.L1Ball(1.0)),
    "cox": lambda: cg.CoxProblem(
        scipy.sparse.csr_matrix(X), np.column_stack([P, SIGNS > 0]), constraints.L1Ball(1.0), ties="efron", offset=P / 9
    ),
    "own": lambda: LeastSquares(X, P, constraints.L1Ball(1.5)),
    "own, curved": lambda: WithCurvature(X, P, constraints.L1Ball(1.5)),
}


REPEATED = {"csr, weights", "l2, sparse", "outputs, groups", "outputs, not convex"}  # others show what these would


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.campaign] if name in REPEATED else []) for name in PROBLEMS]
)
def test_problems_keep_the_contract(name):
    check_problem(PROBLEMS[name]())


@pytest.mark.parametrize("solver", ["fw", "lazy", "away", "pairwise", "bpcg", "corrective"])
def test_a_problem_of_ones_own_has_the_same_answer(solver):
    own = WithCurvature(X, P, constraints.L1Ball(1.5))
    expected = cg.minimize(cg.Problem(X, P, losses.Squared(), constraints.L1Ball(1.5)), tol=1e-10)
    result = cg.minimize(own, solver, tol=1e-2 if solver in ("fw", "lazy") else 1e-9)
    assert result.status is cg.Status.CONVERGED
    assert result.objective - result.gap <= expected.objective + 1e-9
    assert expected.objective <= result.objective + 1e-9


def test_what_a_problem_does_not_offer_is_refused_in_one_sentence():
    own = LeastSquares(X, P, constraints.L1Ball(1.5))
    with pytest.raises(
        TypeError,
        match=r"^Corrective requires the curvature of F on vertices, which this LeastSquares "
        r"does not offer; use one of 'fw', 'lazy', 'away', 'pairwise', 'bpcg', 'boosted'\.$",
    ):
        cg.minimize(own, "corrective")  # fmt: skip
    assert cg.minimize(own, tol=1e-6).status is cg.Status.CONVERGED  # "auto" takes one that fits


def test_every_solver_is_one_and_says_what_it_requires():
    for name, kind in cg.solvers.REGISTERED.items():
        assert isinstance(kind(), Solver), name
        assert kind.requires <= frozenset(Feature) and Feature.LOOK in kind.requires, name
    whole = cg.Problem(X, P, losses.Squared(), constraints.L1Ball(1.5))
    assert [name for name, kind in cg.solvers.REGISTERED.items() if missing(kind, whole)] == ["low-rank"]


@pytest.mark.parametrize("solver", ["corrective", "pairwise", "away", "bpcg"])
@pytest.mark.parametrize("intercept", [False, True])
def test_a_penalty_is_that_of_appended_rows(solver, intercept):
    """l2 ||w||^2 / 2 is the squared loss of rows sqrt(l2 m) e_j with the target 0, of weight 1 / m each."""
    ball, l2 = constraints.L1Ball(1.2), 0.4
    penalised = cg.Problem(X, P, losses.Squared(), ball, sample_weight=WEIGHT, intercept=intercept, l2=l2)
    share = WEIGHT / WEIGHT.sum()
    centred, target = (X - share @ X, P - share @ P) if intercept else (X, P)
    rows = np.vstack([centred, np.sqrt(l2 * N) * np.eye(D)])
    weight = np.append(share, np.full(D, 1.0 / N))
    appended = cg.Problem(rows, np.append(target, np.zeros(D)), losses.Squared(), ball, sample_weight=weight)
    result = cg.minimize(penalised, solver, tol=1e-11)
    expected = cg.minimize(appended, tol=1e-12)
    assert result.status is cg.Status.CONVERGED
    assert result.objective == pytest.approx(weight.sum() * expected.objective, abs=1e-10)
    np.testing.assert_allclose(result.w, expected.w, atol=1e-5)
    with pytest.raises(TypeError, match="do not support an l2 penalty; l2=0 leaves it out"):
        cg.minimize(penalised, "sfw")


def test_no_pass_is_made_for_a_record_alone():
    """While corrective sees a part of the samples, a record would take a pass over all of them: none is made."""
    n = 40_000
    rng = np.random.default_rng(0)
    data = rng.standard_normal((n, 5))
    problem = cg.Problem(data, np.sign(data[:, 0] + rng.standard_normal(n)), losses.Logistic(), constraints.L1Ball(2.0))
    sizes, look = [], cg.Problem.look

    def counted(self, w):
        sizes.append(self.n_samples)
        return look(self, w)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cg.Problem, "look", counted)
        result = cg.minimize(problem, "corrective", tol=1e-8, evaluate_every=1e-9)
    assert sizes[0] < n and sizes[-1] == n
    assert sizes.count(n) == len(result.trace)  # a record for each full pass, and a full pass for each record
    assert result.trace.step[0] > 0
    relative = cg.minimize(problem, "corrective", tol=0.0, relative_tol=1e-3)
    assert relative.trace.step[0] == 0  # relative to the gap at the start, which has to be known
    assert relative.gap <= 1e-3 * relative.trace.gap[0]


def test_own_objective_and_gradient_share_a_look():
    own = LeastSquares(X, P, constraints.L1Ball(1.5))
    w = np.zeros(D)
    own.objective(w), own.gradient(w), own.objective(w)
    assert own.n_looks == 1


# check_problem itself ---------------------------------------------------------------------------------------------


class Broken(WithCurvature):
    """A problem that breaks the contract in one way."""

    def __init__(self, fault):
        super().__init__(X, P, constraints.L1Ball(1.5))
        self.fault = fault
        if fault == "offers more":
            self.offers = self.offers | {Feature.PREDICTIONS}

    def look(self, w):
        found = super().look(w)
        evaluation = found.evaluation
        if self.fault == "gradient":
            evaluation = evaluation._replace(r=1.01 * evaluation.r)
        if self.fault == "gap":
            evaluation = evaluation._replace(gap=0.5 * evaluation.gap)
        if self.fault == "negative gap":
            evaluation = evaluation._replace(gap=-1e-9)
        if self.fault == "bound":
            evaluation = evaluation._replace(lower_bound=evaluation.objective + 1.0)
        if self.fault == "uncertified":
            evaluation = evaluation._replace(rounding=np.inf)
        if self.fault == "random":
            evaluation = evaluation._replace(objective=evaluation.objective * (1.0 + 1e-12 * self.n_looks))
        if self.fault == "writes":
            w += 1e-9
        look = _CurvedLook(self, evaluation)
        if self.fault == "curvature":
            look.curvature = lambda atoms, known=None, n_rows=np.inf: 1.1 * found.curvature(atoms, known, n_rows)
        if self.fault == "forgets known":
            look.curvature = lambda atoms, known=None, n_rows=np.inf: found.curvature(atoms)
        return look

    def part(self, n_rows):
        if self.fault == "part is the whole" and n_rows < self.n_samples:
            return self
        if self.fault == "no whole part":
            return None
        return super().part(n_rows)

    def fingerprint(self):
        return str(id(self)) if self.fault == "fingerprint" else "broken"

    def point(self, w):
        point = super().point(w)
        if self.fault == "point":
            move = point.move
            point.move = lambda line, gamma, **more: move(line, 0.9 * gamma, **more)
            point._objective = lambda: self.objective(w)
        return point


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        ("gradient", "the gradient is not that of the objective|the gap should be"),
        ("gap", "the gap should be"),
        ("negative gap", "a gap is never negative"),
        ("bound", "must bound F from below, but a point of the set has"),
        ("uncertified", "must bound its rounding"),
        ("random", "return different numbers"),
        ("writes", "has changed w"),
        ("curvature", "is not that of the gradient"),
        ("forgets known", "must leave known entries unchanged"),
        ("part is the whole", "should be smaller"),
        ("no whole part", "must be the problem itself"),
        ("fingerprint", "differs for a copy"),
        ("point", "after a move the objective of the point"),
        ("offers more", "fails on this problem"),
    ],
)
def test_check_problem_finds(fault, sentence):
    with pytest.raises(AssertionError, match=sentence):
        check_problem(Broken(fault))


def test_check_problem_names_what_it_is_for():
    with pytest.raises(AssertionError, match="a problem must be a BaseProblem; got int"):
        check_problem(3)
    entries = cg.CompletionProblem([0, 1], [0, 1], [1.0, 2.0], losses.Squared(), constraints.NuclearBall(1.0))
    with pytest.raises(AssertionError, match="is for problems that offer LOOK and VERTICES"):
        check_problem(entries)


def test_a_copy_is_another_object_with_the_same_fingerprint():
    problem = PROBLEMS["dense"]()
    assert problem.fingerprint() == copy.deepcopy(problem).fingerprint()
    assert problem.fingerprint() != problem.over(constraints.L1Ball(2.0)).fingerprint()
    assert LeastSquares.__mro__[1].fingerprint(LeastSquares(X, P, constraints.L1Ball(1.0))) != (
        LeastSquares.__mro__[1].fingerprint(LeastSquares(X, 2.0 * P, constraints.L1Ball(1.0)))
    )
