"""Randomized Frank-Wolfe: the oracle chooses from a random sample of the atoms."""

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
_DRAWN, _IS_OVER = range(2)  # places in the memory of SmallStepRule; a checkpoint stores the numbers in this order
_NONE = 1e-9  # step sizes below this are rounding: the best vertex of the sample is the last one again


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
    """The rule that ends a run when a step changes no entry of w by more than ``tol``; tol = 0 turns it off.

    A step without a move counts only if ``patience`` times the number of atoms were drawn since the last move.
    ``memory`` contains the number of atoms drawn since then, and 1 once the run is over.
    """

    tol: float
    patience: float
    memory: np.ndarray

    def update(self, w, active, s, gamma, n_drawn, n_atoms):
        """Record the step from w towards s that will be made next."""
        self.memory[_DRAWN] = 0.0 if gamma > _NONE else self.memory[_DRAWN] + n_drawn
        counts = gamma > _NONE or self.memory[_DRAWN] >= self.patience * n_atoms
        if self.tol > 0.0 and counts and self.is_small(w, active, s, gamma):
            self.memory[_IS_OVER] = 1.0

    def is_over(self):
        """Return whether a step was small enough to end the run."""
        return self.memory[_IS_OVER] > 0.0

    def is_small(self, w, active, s, gamma):
        """Return whether max_j |gamma (s_j - w_j)| <= tol.

        On the l1 ball and the simplex the largest change is always at the features of s, as the changes of all others
        together are not larger. For other sets the other features are compared too, but only if those of s changed by
        at most tol.
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

    A step draws kappa of the p atoms, computes the gradient on these only, and goes to the minimiser of F towards the
    best of their vertices. Over the l1 ball, the non-negative and the weighted l1 ball and the simplex an atom is a
    feature; over the group ball it is a group: the subsampling oracle of Kerdreux, Pedregosa & d'Aspremont (2018).

    For the squared loss (any quadratic loss, with or without an intercept) a step costs the stored entries of the
    sampled columns, plus O(1): the residuals and w are stored as multiples of vectors, and recurrences give the line
    search and the objective. (A step of length 1 writes all of w and the residuals; only the first few steps are that
    long.) For other losses a step also costs one derivative for each sample that w touches, and a few in the line
    search: all n for dense data or with an intercept, which is little if the sampled columns have more stored entries.
    CSR data and dense data in C order are copied once, column by column.

    The sampled gap <grad F(w), w - s> is never above the gap and can be far below it. ``Progress.gap_estimate`` is
    computed from it and only decides when a certificate is computed; ``Result.gap`` and every recorded ``gap`` come
    from full passes, as for every solver. Drawing p atoms counts as one epoch.

    Proposition 2 states E[F(w_k)] - F* <= 4 C_f / (k + 2) for every kappa. Its proof replaces
    <u, restricted grad F> by <u, grad F> in (25), where u depends on the sample; with small samples the statement does
    not hold (X = I and kappa = 1: most steps find no better vertex). The sample contains the best vertex of all with
    probability kappa / p, and a step never increases F, so that by (31) the bound holds with (kappa / p) k instead of
    k, if F(w_0) - F* <= 2 C_f: :func:`condgrad.theory.randomized_bound`.

    An l2 term (the elastic net) needs no other solver: append the rows sqrt(c) I with targets 0 to X, which adds
    one stored entry to each column; the certificate is then that of the elastic net.

    Parameters
    ----------
    sample_size : int, float in (0, 1), or a rule of :mod:`condgrad.sample_sizes`
        Atoms per step, or their share of p. The default is 194 by theorem 1: one of the best 2% with probability 0.98;
        ``HitRelevant`` is (12) and (13), ``Shrinking`` draws fewer as w gets more atoms.
    sampling : {"batch", "blocks", "epoch", "replacement", "cyclic"}
        See :class:`condgrad.solvers.stochastic.sampling.Sampler`: by default without replacement, as lemma 1 assumes;
        "blocks" draws contiguous atoms, which is better for memory.
    step_size : ExactLineSearch (default, the paper's), ShortStep, OpenLoop or NonConvex
    step_tol : float
        Stop (``Status.SMALL_STEP``) when a step changes no coefficient by more than this, the rule of the paper's
        experiments; 0 turns the rule off. This is no certificate: check ``Result.gap``.
    patience : float
        If no sampled vertex decreases F, w does not change. Taken literally, the rule then ends the run at once:
        ``patience=0``. By default such steps count only after 3 p atoms have been drawn without a move; the probability
        that a helpful atom was never among them is below e^-3. The numbers of iterations in the paper's tables, about
        three for each radius, are those of the literal rule (benchmarks/frandi2016).
    gradient : {"auto", "residuals", "covariates"}
        How the squared loss computes its gradient: by products of columns with the residuals, (7), or by cached
        products of all columns with the active ones, which cost a pass for each new active feature and O(p) per step.
        "auto" starts with residuals and switches once the cache would have saved time, which happens for large
        samples and long runs. If the cache would exceed 128 MiB, it switches back to residuals.

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
        """Raise if a parameter is wrong."""
        StepSolver.check(self)
        resolve(self.sample_size, 2**53)
        if self.sampling == "importance":
            raise ValueError(
                "sampling of Randomized cannot be 'importance': atoms are drawn with equal probabilities; use 'batch'."
            )
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
        """Return kernel-safe replacements for settings that numba cannot type."""
        return {"sample_size": 0, "sampling": 0, "gradient": 0, "step_size": self.step_size.on_lines(space.problem)}

    def start(self, space):
        """Return w0 with the values of F there, one feature at a time."""
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
        """Return whether ``step_tol`` ends the run."""
        return arrays.stopping.is_over()

    def resynchronise(self, space, arrays):
        """Recompute predictions and running sums."""
        arrays.f.synchronise(space.problem, arrays.w.to_array())
