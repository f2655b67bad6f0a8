"""Taylor-point updating Frank-Wolfe."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from condgrad.compiled import compiled
from condgrad.linalg.vectors import Vector
from condgrad.problems.base import Feature
from condgrad.problems.curvature import ImplicitCurvature, StoredCurvature
from condgrad.problems.finite_sum import Estimate
from condgrad.problems.taylor_points import TaylorPoints
from condgrad.solvers.step_sizes import EstimateRule, OpenLoop
from condgrad.solvers.stochastic.base import step_solver
from condgrad.solvers.stochastic.renewal_rules import DBD, Rule, check_rule

_FORMS = ("auto", "stored", "implicit")


@compiled
class TUFWArrays(NamedTuple):
    """w, the estimate r = q + H w with q and H, the Taylor points, and the product H s."""

    w: Vector
    r: Estimate
    q: Vector
    H: StoredCurvature | ImplicitCurvature
    points: TaylorPoints
    Hs: Vector


@step_solver
class TUFW(NamedTuple):
    r"""Taylor-point updating Frank-Wolfe, algorithm 2.1 of Xiong & Freund.

    Each sample's gradient is replaced by its Taylor expansion at a point b_i that is renewed from time to time:
    g = (1/n) sum_i [grad f_i(b_i) + hess f_i(b_i) (w - b_i)] = q + H w. Between renewals g is updated exactly after
    each step, in O(d) over the l1 ball and the simplex, where H s is a multiple of one column. For linear predictions
    three numbers per sample are stored instead of the points b_i, and a renewal costs nnz(x_i)^2. For the terms of a
    :class:`~condgrad.GeneralProblem` (section 5.2) a renewal costs two Hessians, that is 2 d Hessian products, and n d
    numbers are stored; a rule that renews all points at once needs one mean Hessian per renewal, and d numbers. The
    paper's letters: x for our w, w_i for our x_i, p for our d.

    Parameters
    ----------
    rule : a rule of :mod:`condgrad.rules`
        The choice of renewed Taylor points: DBD() (default), SBD(), Empty(), Full(), RandomBatch(b), Cyclic(b), or your
        own.
    step_size : OpenLoop (default, 2 / (k + 2)) or NonConvex(K)
    adaptive : bool
        Whether to shorten the step to the minimiser of the Taylor model along the segment, equation (5.1).
    form : {"auto", "stored", "implicit"}
        Whether H is stored as a d x d array, or used as the product X' diag(t) X. "auto" stores it if that costs less
        per step. For a general problem it is always stored.

    References
    ----------
    Xiong & Freund (2024), algorithm 2.1, proposition 2.1, sections 5.1 and 5.2.

    Examples
    --------
    >>> import condgrad as cg
    >>> problem = cg.Problem([[1.0], [1.0]], [1.0, 3.0], cg.losses.Squared(), cg.constraints.L1Ball(5.0))
    >>> result = cg.minimize(problem, cg.solvers.TUFW(adaptive=True), tol=1e-8)
    >>> bool(abs(result.w[0] - 2.0) < 1e-3)
    True
    """

    rule: Rule = DBD()
    step_size: EstimateRule = OpenLoop()
    adaptive: bool = False
    form: str = "auto"

    batches_grow = True
    requires = frozenset({Feature.LOOK, Feature.SAMPLES, Feature.SECOND_DERIVATIVES, Feature.VERTICES})

    @property
    def sampling(self):
        """The sampling method of the rule."""
        return self.rule.sampling

    def check(self):
        """Raise if a parameter is wrong."""
        check_rule(self.rule)
        if self.form not in _FORMS:
            raise ValueError(f"form must be one of {', '.join(_FORMS)}; got {self.form!r}.")
        if not isinstance(self.step_size, EstimateRule):
            raise TypeError(f"step_size must be a rule of condgrad.step_sizes; got {self.step_size!r}.")

    def first_batch_size(self, n):
        """Return 0: the rule decides."""
        return 0

    def in_numbers(self, space):
        """Return kernel-safe replacements (numbers and compiled rules) for settings that numba cannot type."""
        return {"rule": 0, "form": 0, "step_size": self.step_size.on_estimates(space.problem, 1)}

    def start(self, space):
        """Return w0; all Taylor points are set to it before the first step."""
        if space.problem.has_intercept:
            raise ValueError(
                "tufw does not support an intercept: its Taylor points are points w only. Use 'corrective' instead."
            )
        renews_all = getattr(self.rule, "renews_all", False)
        points, H = space.problem.taylor_points(space, self.form, renews_all)
        return TUFWArrays(
            w=space.iterate(shrinks=False), r=space.estimate(), q=space.vector(), H=H, points=points, Hs=space.vector()
        )

    def batch_sizes(self, space, t, count):
        """Return the rule's sizes for iterations k = t, ...; full renewals are made as passes and have size 0."""
        sizes = self.rule.sizes(np.maximum(1.0, t + np.arange(count)), space.n)
        if getattr(self.rule, "renews_all", False) and ((sizes > 0.0) & (sizes < space.n)).any():
            raise ValueError(
                f"{self.rule!r} has renews_all = True, but some of its sizes lie between 0 and n = {space.n}; "
                "set renews_all = False."
            )
        is_passed = (sizes >= space.n) | (t + np.arange(count) == 0)
        return np.where(is_passed, 0.0, sizes)

    def spent(self, state, sizes):
        """Return the number of gradients after each of the next steps: those that renewals evaluate."""
        return np.cumsum(state.sampler.whole(sizes)) * state.arrays.points.gradients_per_sample()

    def steps_before_pass(self, space, t):
        """Return the number of steps before all Taylor points are renewed at once; 0 at the start."""
        if t == 0:
            return 0
        ahead = 64
        is_full = self.rule.sizes(float(t) + np.arange(ahead), space.n) >= space.n
        return int(is_full.argmax()) if is_full.any() else ahead

    def full_pass(self, space, arrays, t):
        """Renew every Taylor point: r is the exact gradient."""
        arrays.points.renew_all(space, arrays)

    def step(self, F, arrays, rows, t):
        """Make lines 4 to 8 of algorithm 2.1, for k = t."""
        for z in range(rows.size()):
            arrays.points.renew(F, rows.at(z), arrays)  # 4-6: b_i <- w; (2.1) updates g = q + H w
        s = arrays.r.best_vertex(F)  # 7: s = LMO(g)
        arrays.Hs.shrink(0.0)
        arrays.H.add_product(s, 1.0, arrays.Hs)
        gamma = self.step_size.at(t, arrays.r)
        if self.adaptive:  # (5.1), with (s - w)'H(s - w) from H s and H w = g - q
            bend = s.inner(arrays.Hs) - 2.0 * (s.inner(arrays.r.vector) - s.inner(arrays.q))
            bend += arrays.w.inner(arrays.r.vector.values) - arrays.w.inner(arrays.q.values)
            if bend > 0.0:
                gamma = max(0.0, min(gamma, arrays.r.gap() / bend))
        s.blend_into(arrays.w, gamma)  # 8: w <- w + gamma (s - w)
        # Lines 5 and 6 of the next iteration, before it renews any point: g <- q + (1 - gamma) H w + gamma H s.
        arrays.r.vector.shrink(1.0 - gamma)
        arrays.r.vector.add_array(gamma, arrays.q.values)
        arrays.r.vector.add_array(gamma, arrays.Hs.values)
        arrays.r.synchronise(arrays.w.values)

    def resynchronise(self, space, arrays):
        """Recompute q, H and r from the Taylor points."""
        arrays.points.recompute(space, arrays)
