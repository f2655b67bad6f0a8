"""How long "auto" takes for every set, beside the l1 ball on the same data.

    python benchmarks/auto_sweep.py [--quick] [--only SET ...] [--loss LOSS ...] [--shape SHAPE ...] [--solver NAME]

Every loss is minimised over every set on data of four shapes by ``minimize(problem)``, to a gap of 1e-4 relative to
the first one. The radius of a ball is half of what the coefficients need from which the data were simulated, so that
the set cuts the optimum off. A line shows the seconds of the best of three runs (processor time of one thread), the
passes over the data, the solver, and the ratio to the l1 ball on the same data and loss in the same process. Ratios
above 5 are marked, with the reason where one is known, and listed at the end. --quick runs the two smallest shapes and
two losses, in about a minute.

Nearly all of the marked ones are on dense data of 2,000 x 500. Over the l1 ball tens of features are in play there, and
the whole run takes 1 to 3 ms. Where all features are in play, their curvature alone, a matrix of 500 x 500, takes 2 to
5 times as long (the title of each table tells; half of it in single precision, in which models begin), and more than
one is needed if the loss is not quadratic. Vertices as atoms would need no such matrix, and where few are enough, they
are used; but most of these sets need a hundred or more. For a quadratic loss on 100,000 x 100 data, "auto" takes the
curvature of all features (2 to 3 passes in all) also where few vertices would do, as for hypersimplices and
permutahedra: on other data hypersimplices need dozens of vertices, spanning trees and hulls hundreds, and nothing tells
in advance.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from results import Report, add_option

import condgrad as cg
from condgrad import constraints
from condgrad.problems.active_set import AtomStack

THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
TOL = 1e-4
SLOW = 5.0
SECONDS = 8.0  # limit of one run

LOSSES: dict[str, Callable[[], Any]] = {
    "squared": cg.losses.Squared,
    "logistic": cg.losses.Logistic,
    "pseudo-huber": lambda: cg.losses.PseudoHuber(1.0),
    "poisson": cg.losses.Poisson,
}

# name: (samples, features, density; 1: dense)
SHAPES = {
    "100000x100": (100_000, 100, 1.0),
    "20000x100 CSR": (20_000, 100, 0.1),
    "2000x500": (2_000, 500, 1.0),
    "500x5000": (500, 5_000, 1.0),
}
QUICK = ("20000x100 CSR", "2000x500")

# What is known about sets that stay slow.
REASONS = {
    "graph-total-variation": "every call of the oracle is a linear program",
    "polytope": "all features are in play: their curvature, and factors of it for quadratic programs",
    "linearly-constrained": "all features are in play: their curvature, and factors of it for quadratic programs",
    "linf": "all features are in play: their curvature, and factors of it for quadratic programs",
    "box": "all features are in play: their curvature, and factors of it for quadratic programs",
    "spanning-tree": "a model needs hundreds of vertices with many entries",
    "matroid-base": "a model needs hundreds of calls of an oracle in ordinary Python",
    "convex-hull": "a model needs hundreds of vertices, and each call of the oracle reads all points",
    "minkowski-sum": "a model needs about a hundred vertices with many entries",
    "sparse-group": "hundreds of features are in play, and slow early steps take their curvature in double precision",
    "l2": "with fewer samples than features models are made of vertices, and Poisson's loss needs hundreds of them",
}
ALL_FEATURES = "all features are in play, and their curvature costs many passes"


class Case(NamedTuple):
    """A set for d features, made for the coefficients w of the simulated data."""

    make: Callable[[np.ndarray], Any]
    is_wide: bool = False  # whether to run it with thousands of features


def _groups(w: np.ndarray) -> np.ndarray:
    return np.arange(w.size) // 5


def _matrix(w: np.ndarray) -> tuple[int, int]:
    """Return the most square shape of a matrix with the entries of w."""
    rows = next(k for k in range(int(math.sqrt(w.size)), 0, -1) if w.size % k == 0)
    return rows, w.size // rows


def _of_radius(make: Callable[[float], Any]) -> Callable[[np.ndarray], Any]:
    """Return a maker of the set for half the radius that w needs; ``make`` takes a radius."""

    def made(w: np.ndarray) -> Any:
        low, high = 1e-6, 1e6
        for _ in range(60):
            middle = math.sqrt(low * high)
            low, high = (low, middle) if make(middle).contains(w, 0.0) else (middle, high)
        return make(high / 2.0)

    return made


def _ball(make: Callable[[np.ndarray, float], Any], is_wide: bool = False) -> Case:
    return Case(lambda w: _of_radius(lambda radius: make(w, radius))(w), is_wide)


def _chain(d: int) -> np.ndarray:
    """Return the edges of a directed acyclic graph with d edges: two arcs from each node to the next ones."""
    edges = [(i, j) for i in range(d) for j in (i + 1, i + 2)][:d]
    return np.array(edges)


SETS = {
    "l1": _ball(lambda w, r: constraints.L1Ball(r), True),
    "limited-l1": Case(
        lambda w: constraints.LimitedL1Ball(
            float(np.abs(w[3:]).sum()) / 2.0, 1.0 * (np.arange(w.size) > 2), -5.0, float(np.abs(w).max()) / 2.0
        ),
        True,
    ),
    "weighted-l1": _ball(lambda w, r: constraints.WeightedL1Ball(r, np.linspace(0.5, 2.0, w.size)), True),
    "nonnegative-l1": Case(lambda w: constraints.NonnegativeL1Ball(float(np.abs(w).sum()) / 2.0), True),
    "simplex": Case(lambda w: constraints.Simplex(float(np.abs(w).sum()) / 2.0), True),
    "l2": _ball(lambda w, r: constraints.L2Ball(r), True),
    "linf": _ball(lambda w, r: constraints.LinfBall(r)),
    "box": Case(lambda w: constraints.Box(-0.25 * np.abs(w).max(), 0.5 * np.abs(w).max())),
    "lp": _ball(lambda w, r: constraints.LpBall(1.5, r)),
    "k-sparse": _ball(lambda w, r: constraints.KSparsePolytope(min(20, w.size // 5), r), True),
    "hypersimplex": Case(lambda w: constraints.Hypersimplex(10, float(np.abs(w).sum()) / 20.0), True),
    "knapsack": Case(
        lambda w: constraints.Knapsack(
            np.linspace(0.5, 2.0, w.size), float(np.abs(w).sum()) / 2.0, float(np.abs(w).max())
        )
    ),
    "group": _ball(lambda w, r: constraints.GroupBall(_groups(w), r), True),
    "ordered-weighted-l1": _ball(
        lambda w, r: constraints.OrderedWeightedL1Ball(r, np.linspace(2.0, 0.5, w.size)), True
    ),
    "k-support": Case(lambda w: constraints.KSupportBall(min(20, w.size // 5), float(np.linalg.norm(w)) / 2.0), True),
    "sparse-group": _ball(lambda w, r: constraints.SparseGroupBall(_groups(w), r, 0.5), True),
    "latent-group": Case(
        lambda w: constraints.LatentGroupBall(
            [list(range(k, min(k + 6, w.size))) for k in range(0, w.size, 4)], float(np.linalg.norm(w))
        )
    ),
    "fused": _ball(lambda w, r: constraints.FusedBall(r, 0.5)),
    "total-variation": Case(
        lambda w: constraints.TotalVariationBall(float(np.abs(np.diff(w)).sum()) / 2.0, float(np.abs(w).max()))
    ),
    "graph-total-variation": Case(
        lambda w: constraints.GraphTotalVariationBall(
            np.column_stack([np.arange(w.size - 1), np.arange(1, w.size)]),
            float(np.abs(np.diff(w)).sum()) / 2.0,
            float(np.abs(w).max()),
        )
    ),
    "isotonic": Case(lambda w: constraints.IsotonicBox(-0.5 * float(np.abs(w).max()), 0.5 * float(np.abs(w).max()))),
    "ellipsoid": Case(lambda w: constraints.Ellipsoid(np.diag(np.linspace(1.0, 10.0, w.size)) / float(w @ w))),
    "permutahedron": Case(lambda w: constraints.Permutahedron(0.5 * w)),
    "birkhoff": Case(lambda w: constraints.Birkhoff(math.isqrt(w.size))),
    "flow": Case(lambda w: constraints.FlowPolytope(_chain(w.size), 0, int(_chain(w.size).max()))),
    "spanning-tree": Case(lambda w: constraints.SpanningTreePolytope(_chain(w.size))),
    "matroid-base": Case(
        lambda w: constraints.MatroidBasePolytope(
            w.size, constraints.partition_matroid(_groups(w), np.ones(_groups(w).max() + 1, dtype=int))
        )
    ),
    "convex-hull": Case(
        lambda w: constraints.ConvexHull(np.random.default_rng(5).standard_normal((2 * w.size, w.size)))
    ),
    "polytope": Case(
        lambda w: constraints.Polytope(
            np.random.default_rng(5).standard_normal((5, w.size)), np.ones(5), bounds=(-0.2, 0.2)
        )
    ),
    "linearly-constrained": Case(
        lambda w: constraints.LinearlyConstrained(
            constraints.L1Ball(float(np.abs(w).sum()) / 2.0), A_eq=np.ones((1, w.size)), b_eq=[0.0]
        )
    ),
    "product": _ball(
        lambda w, r: constraints.Product(
            [constraints.L1Ball(r), constraints.L2Ball(r)], [w.size // 2, w.size - w.size // 2]
        )
    ),
    "minkowski-sum": Case(
        lambda w: constraints.MinkowskiSum(
            [constraints.L1Ball(float(np.abs(w).sum()) / 4.0), constraints.LinfBall(0.02)]
        )
    ),
    "convex-hull-of-union": Case(
        lambda w: constraints.ConvexHullOfUnion(
            [constraints.L1Ball(float(np.abs(w).sum()) / 2.0), constraints.LinfBall(float(np.abs(w).mean()))]
        )
    ),
    "linear-image": Case(
        lambda w: constraints.LinearImage(
            np.tril(np.ones((w.size, w.size))), constraints.L1Ball(float(np.abs(np.diff(w)).sum()) / 2.0)
        )
    ),
    "nuclear": _ball(lambda w, r: constraints.NuclearBall(r, _matrix(w))),
    "weighted-nuclear": _ball(
        lambda w, r: constraints.WeightedNuclearBall(
            r, np.linspace(0.5, 2.0, _matrix(w)[0]), np.linspace(0.5, 2.0, _matrix(w)[1])
        )
    ),
    "spectraplex": Case(lambda w: constraints.Spectraplex(math.isqrt(w.size))),
    "psd-trace": Case(lambda w: constraints.PSDTraceBall(math.isqrt(w.size), 1.0)),
    "fantope": Case(lambda w: constraints.Fantope(math.isqrt(w.size), 3)),
}


def simulate(shape: str) -> tuple[Any, np.ndarray, np.ndarray]:
    """Return X, the coefficients, and the predictions: correlated columns, a tenth of the features in a few pieces."""
    n, d, density = SHAPES[shape]
    rng = np.random.default_rng(0)
    w = np.zeros(d)
    n_pieces = max(2, d // 100)
    for piece, start in enumerate(np.linspace(0, d, 2 * n_pieces + 1).astype(int)[1:-1:2]):
        w[start : start + 10] = (-1.0) ** piece * rng.uniform(0.2, 1.0)
    if density < 1.0:
        X: Any = scipy.sparse.random(n, d, density, "csr", random_state=rng, data_rvs=rng.standard_normal)
    else:
        X = rng.standard_normal((n, d))
        X[:, 1:] = 0.8 * X[:, 1:] + 0.6 * X[:, :-1]  # neighbours are correlated
    p = X @ w
    w *= 1.5 / p.std()
    return X, w, X @ w


def targets(loss: str, p: np.ndarray) -> np.ndarray:
    """Return targets of the kind that the loss requires."""
    rng = np.random.default_rng(1)
    if loss == "logistic":
        return np.where(rng.uniform(size=p.size) < 1.0 / (1.0 + np.exp(-p)), 1.0, -1.0)
    if loss == "poisson":
        return rng.poisson(np.exp(np.minimum(p, 3.0))).astype(float)
    return p + rng.standard_normal(p.size)


def measure(problem: Any, solver: str) -> tuple[float, Any]:
    """Return the processor seconds of the best of three runs, and the result; the first run compiles."""
    best = math.inf
    for run in range(3):
        start = time.process_time()
        result = cg.minimize(problem, solver, relative_tol=TOL, max_time=SECONDS, max_epochs=math.inf, random_state=0)
        best = min(best, time.process_time() - start)
        if run > 0 and best > SECONDS / 8:
            break
    return best, result


def curvature_told(X: Any, y: np.ndarray, loss: str, w: np.ndarray) -> str:
    """Return the processor seconds of the curvature on all features, the best of three, as a part of a title."""
    if w.size > 1000:
        return ""
    look = cg.Problem(X, y, LOSSES[loss](), constraints.L1Ball(1.0)).look(np.zeros(w.size))
    features, best = AtomStack(np.arange(w.size), np.ones(w.size)), math.inf
    for _ in range(3):
        start = time.process_time()
        look.curvature(features)
        best = min(best, time.process_time() - start)
    return f" (the curvature on all features: {best:.4f} s)"


def main() -> int:
    """Measure and print the table."""
    sys.stdout.reconfigure(line_buffering=True)
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", nargs="*", default=list(SETS), choices=SETS, metavar="SET")
    parser.add_argument("--loss", nargs="*", choices=LOSSES)
    parser.add_argument("--shape", nargs="*", choices=SHAPES)
    parser.add_argument("--solver", default="auto")
    add_option(parser)
    options = parser.parse_args()
    report = Report(__file__, 'How long does `solver="auto"` take for every set, beside the l1 ball on the same data?')
    chosen_losses = options.loss or (("squared", "logistic") if options.quick else tuple(LOSSES))
    chosen_shapes = options.shape or (QUICK if options.quick else tuple(SHAPES))
    slow = []
    for shape in chosen_shapes:
        X, w, p = simulate(shape)
        for loss in chosen_losses:
            y, unit = targets(loss, p), 0.0
            title = f"{shape}, {loss}"
            print(f"\n{title}{curvature_told(X, y, loss, w)}")
            rows: list[list[Any]] = []
            for name in dict.fromkeys(["l1", *options.only]):
                if w.size > 1000 and not SETS[name].is_wide:
                    continue
                try:
                    problem = cg.Problem(X, y, LOSSES[loss](), SETS[name].make(w))
                except ValueError as error:
                    print(f"  {name:24s} {error}")
                    continue
                seconds, result = measure(problem, options.solver)
                unit = seconds if name == "l1" else unit
                ratio = seconds / unit
                mark = (
                    ""
                    if ratio <= SLOW
                    else f"  <-- {REASONS.get(name, ALL_FEATURES if not SETS[name].is_wide else '')}"
                )
                is_done = result.status is cg.Status.CONVERGED
                state = "" if is_done else f"  {result.status.name}, gap {result.gap:.1e}"
                print(
                    f"  {name:24s} {seconds:9.4f} s {result.n_epochs:8.1f} passes  {result.solver.split('(')[0]:16s}"
                    f" {ratio:7.1f}{mark}{state}"
                )
                rows.append([name, seconds, result.n_epochs, result.solver.split("(")[0], ratio])
                if mark or state:
                    slow.append((shape, loss, name, ratio))
            report.table(title, ["set", "CPU seconds", "passes", "solver", "ratio to the l1 ball"], rows)
    print(f"\n{len(slow)} above {SLOW:g} times the l1 ball, or not converged:")
    for line in slow:
        print("  {}, {}, {}: {:.1f}".format(*line))
    report.write(options.json)
    return 0


if __name__ == "__main__":
    if any(os.environ.get(name) != "1" for name in THREADS):  # these are read when numpy and numba are imported
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | dict.fromkeys(THREADS, "1"))
    sys.exit(main())
