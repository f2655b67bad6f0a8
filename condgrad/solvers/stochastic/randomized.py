"""Randomized Frank-Wolfe: the oracle sees a random sample of the atoms."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from condgrad.compiled import compiled
from condgrad.linalg.convert import as_number
from condgrad.linalg.index_set import IndexSet
from condgrad.linalg.vectors import Vector
from condgrad.problems.base import Feature
from condgrad.problems.by_feature.quadratic import QuadraticByFeature
from condgrad.problems.by_feature.sampled import PartialGradient
from condgrad.problems.by_feature.smooth import SmoothByFeature
from condgrad.solvers.step_sizes import EstimateRule, ExactLineSearch, ShortStep
from condgrad.solvers.stochastic._columns import ColumnSolver, column_solver
from condgrad.solvers.stochastic.atom_counts import TopShare, resolve
from condgrad.solvers.stochastic.base import StepSolver

_GRADIENTS = ("auto", "residuals", "covariates")
_DRAWN, _IS_OVER = range(2)  # places in the memory of SmallStepRule; a checkpoint holds the numbers in this order
_NONE = 1e-9  # where the best vertex of a sample is the one that w has just moved towards, rounding leaves such a step


@compiled
class RandomizedArrays(NamedTuple):
    """w, the sampled part r of the gradient, F one feature at a time, the features of w, and the stopping rule."""

    w: Vector
    r: PartialGradient
    f: QuadraticByFeature | SmoothByFeature
    active: IndexSet
    stopping: SmallStepRule


@compiled
class SmallStepRule(NamedTuple):
    """The rule that ends a run when a step changes no entry of w by more than ``tol``; off where that is 0.

    Steps that go nowhere count once ``patience`` times all atoms have been drawn since the last move. ``memory`` holds
    how many were, and 1 once the run is over.
    """

    tol: float
    patience: float
    memory: np.ndarray

    def update(self, w, active, s, gamma, n_drawn, n_atoms):
        """Take note of the step from w towards s that is about to be made."""
        self.memory[_DRAWN] = 0.0 if gamma > _NONE else self.memory[_DRAWN] + n_drawn
        counts = gamma > _NONE or self.memory[_DRAWN] >= self.patience * n_atoms
        if self.tol > 0.0 and counts and self.is_small(w, active, s, gamma):
            self.memory[_IS_OVER] = 1.0

    def is_over(self):
        """Tell whether a step was small enough to end the run."""
        return self.memory[_IS_OVER] > 0.0

    def is_small(self, w, active, s, gamma):
        """Tell whether max_j |gamma (s_j - w_j)| <= tol.

        On the l1 ball and the simplex the largest change is always at the features of s, as all others together weigh
        no more. Elsewhere the other features are compared as well, but only where those of s have hardly changed.
        """
        for k in range(s.n_entries()):
            if gamma * abs(s.entry(k) - w.at(s.feature(k))) > self.tol:
                return False
        for k in range(active.size()):
            j = active.row(k)
            if gamma * abs(s.value_at(j) - w.at(j)) > self.tol:
                return False
        return True


@column_solver
class Randomized(NamedTuple):
    r"""Randomized Frank-Wolfe, algorithm 2 of Frandi et al. (2016): w moves to the best vertex of a random sample.

    A step draws kappa of the p atoms, computes the gradient on these alone, and goes to the minimiser of F towards the
    best of their vertices. Over the l1 ball, the non-negative and the weighted one and the simplex an atom is a
    feature, over the group ball a group: the subsampling oracle of Kerdreux, Pedregosa & d'Aspremont (2018).

    For the squared loss (any quadratic one, with or without an intercept) a step costs the stored entries of the
    sampled columns, plus O(1): the residuals and w are multiples of vectors, and the line search and the objective
    follow by recurrences. (A step that goes all the way to its vertex writes all of w and the residuals; after the
    first few there are none.) For other losses it costs, besides, one derivative for each sample that w touches, and
    a few in the line search: all n for dense data or with an intercept, which is little where the sampled columns
    store more. CSR data and dense data in C order are copied once, column by column.

    The sampled gap <grad F(w), w - s> is never above the gap and can be far below it. ``Progress.gap_estimate`` is
    made from it and only tells when to ask for a certificate; ``Result.gap`` and every recorded ``gap`` come from full
    passes, as ever. As many atoms as there are count as one epoch.

    Proposition 2 states E[F(w_k)] - F* <= 4 C_f / (k + 2) for every kappa. Its proof takes <u, grad F> for
    <u, restricted grad F> in (25), where u depends on the sample; with small samples the statement does not hold (X = I
    and kappa = 1: most steps find nothing new). The best vertex of all is in the sample with chance kappa / p, and a
    step never goes up, so that by (31) the bound holds with (kappa / p) k in the place of k, from
    F(w_0) - F* <= 2 C_f on: :func:`condgrad.theory.randomized_bound`.

    An l2 term (the elastic net) needs no solver of its own: append the rows sqrt(c) I with targets 0 to X, which adds
    one stored entry to a column, and the certificate is that of the elastic net.

    Parameters
    ----------
    sample_size : int, float in (0, 1), or a rule of :mod:`condgrad.sample_sizes`
        Atoms per step, or their share of p. The default is theorem 1's 194, one of the best 2% with chance 0.98;
        ``HitRelevant`` is (12) and (13), ``Shrinking`` takes fewer as w gets more atoms.
    sampling : {"batch", "blocks", "epoch", "replacement", "cyclic"}
        See :class:`condgrad.solvers.stochastic.sampling.Sampler`: by default without replacement, as lemma 1 assumes;
        "blocks" draws contiguous atoms, which is better for memory.
    step_size : ExactLineSearch (default, the paper's), ShortStep, OpenLoop or NonConvex
    step_tol : float
        Stop (``Status.SMALL_STEP``) when a step changes no coefficient by more than this, the rule of the paper's
        experiments; 0 leaves it out. This is no certificate: look at ``Result.gap``.
    patience : float
        Where no sampled vertex goes down, nothing changes. To the letter, the rule then ends the run at once:
        ``patience=0``. By default such steps count only once 3 p atoms have been drawn without effect, which an atom
        that would have helped escapes with a chance below e^-3. The iterations that the paper's tables print, about
        three for each radius, are those of the letter (benchmarks/frandi2016).
    gradient : {"auto", "residuals", "covariates"}
        How the squared loss computes its gradient: by products of columns with the residuals, (7), or by cached
        products of all columns with the active ones, which cost a pass for each new active feature and O(p) a step.
        "auto" begins with residuals and changes once the cache would have paid for itself, which it does for large
        samples and long runs. Where 128 MiB do not hold the cache, residuals come back.

    References
    ----------
    Frandi, Nanculef, Lodi, Sartori & Suykens (2016), algorithm 2 and sections 4.1, 4.2 and 4.5; Kerdreux, Pedregosa &
    d'Aspremont (2018).

    Examples
    --------
    >>> import condgrad as cg
    >>> X = [[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]]
    >>> problem = cg.Problem(X, [1.0, 2.0], cg.losses.Squared(), cg.constraints.L1Ball(1.0))
    >>> result = cg.minimize(problem, cg.solvers.Randomized(sample_size=2), tol=1e-3, random_state=0)
    >>> result.status.name, bool(result.gap <= 1e-3)
    ('CONVERGED', True)
    """

    sample_size: object = TopShare()
    sampling: str = "batch"
    step_size: EstimateRule = ExactLineSearch()
    step_tol: float = 0.0
    patience: float = 3.0
    gradient: str = "auto"

    requires = StepSolver.requires | {Feature.COLUMNS}

    def check(self):
        """Raise where a parameter is wrong."""
        StepSolver.check(self)
        resolve(self.sample_size, 2**53)
        if self.sampling == "importance":
            raise ValueError("sampling of Randomized cannot be 'importance': atoms are drawn with equal chances.")
        for name in ("step_tol", "patience"):
            as_number(getattr(self, name), f"{name} of Randomized", low=0.0, what="a number of at least 0")
        if not isinstance(self.gradient, str) or self.gradient not in _GRADIENTS:
            raise ValueError(f"gradient of Randomized must be one of {', '.join(_GRADIENTS)}; got {self.gradient!r}.")

    def init(self, problem, w0, random_state=None):
        """Return the state at ``w0``, or at the set's own start."""
        if self.gradient == "covariates" and not problem.loss.is_quadratic:
            raise ValueError(
                f"gradient='covariates' needs a loss whose derivative is linear; {problem.loss!r} is not. Use 'auto'."
            )
        if isinstance(self.step_size, ShortStep) and problem.has_intercept and problem.loss.smoothness() == np.inf:
            raise ValueError(
                f"ShortStep needs a bound of the curvature, and {problem.loss!r} with a free intercept has none. "
                "Use ExactLineSearch()."
            )
        return ColumnSolver.init(self, problem, w0, random_state)

    def in_numbers(self, space):
        """Return the settings that kernels cannot take as they are."""
        return {"sample_size": 0, "sampling": 0, "gradient": 0, "step_size": self.step_size.on_lines(space.problem)}

    def start(self, space):
        """Return w0 with what is known of F there."""
        may_pay = self.gradient == "auto" and space.products_of_a_step() > space.d
        f = space.by_feature(caches=may_pay or self.gradient == "covariates")
        if self.gradient == "covariates":
            f.use_covariates(space.problem)
        stopping = SmallStepRule(self.step_tol, self.patience, np.zeros(2))
        return RandomizedArrays(space.iterate(), space.partial_gradient(), f, space.active(), stopping)

    def step(self, columns, arrays, sample, t):
        """Make one step of algorithm 2; the comments give its lines."""
        f, w = arrays.f, arrays.w
        r = arrays.r.on(columns.blocks, sample)  # 1: the sampling set S
        f.differentiate(columns.X, r)  # 2: the gradient at the atoms of S, (7)
        s = columns.constraint.lmo(r)  # 2-3: the best vertex there, (9)
        inner = arrays.r.note(f.line.along(), s, sample.size() / columns.blocks.size())
        f.set_segment(columns.X, s, inner)
        gamma = self.step_size.at(t + 1, f.line)  # 4: lambda, (8); the paper counts from 1, t from 0
        arrays.stopping.update(w, arrays.active, s, gamma, sample.size(), columns.blocks.size())
        if gamma > 0.0:
            f.move(columns.X, s, gamma)  # 6: the residuals, (10)
            s.blend_into(w, gamma)  # 5: w <- (1 - gamma) w + gamma s
            if gamma == 1.0:
                arrays.active.clear()
            for k in range(s.n_entries()):
                arrays.active.add(s.feature(k))

    def is_done(self, arrays):
        """Tell whether ``step_tol`` ends the run."""
        return arrays.stopping.is_over()

    def resynchronise(self, space, arrays):
        """Compute predictions and running sums anew."""
        arrays.f.synchronise(space.problem, arrays.w.to_array())
