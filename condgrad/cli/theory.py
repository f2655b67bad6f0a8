"""Report what the convergence theory predicts for data, loss and set.

Reports the diameters of the predictions over the set, kappa = D_1 / D_inf, and the number of
iterations after which the bounds for Frank-Wolfe and stochastic Frank-Wolfe are below the
tolerance. They hold for every problem with these constants; real runs need far fewer.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable

from condgrad.cli import _options as options
from condgrad.cli._outputs import note, show

EPILOG = """\
example:
  condgrad theory train.svm --loss logistic --set l1 --radius 5 --tol 1e-3

exit codes: 0 done, 2 bad input
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    options.add_data(parser)
    options.add_problem(parser)
    bounds = parser.add_argument_group("bounds")
    bounds.add_argument("--tol", type=float, default=1e-3, help="F(w) - F* to predict iterations for (default: 1e-3)")
    bounds.add_argument("--batch-size", type=int, default=1, metavar="B", help="samples of a stochastic step "
                        "(default: 1)")  # fmt: skip
    options.add_outputs(parser, None)


def run(args: argparse.Namespace) -> int:
    """Compute the constants and bounds, and report."""
    if not 0.0 < args.tol < math.inf:
        raise ValueError(f"--tol must be a positive number; got {args.tol}.")
    import condgrad as cg
    from condgrad.cli._data import encode_targets, read_data

    loss, constraint = options.loss_of(args.loss), options.set_maker(args.set)[0](args.radius)
    data = read_data(args, labels=loss.classes is not None)
    problem = cg.Problem(data.X, encode_targets(data.y, loss)[0], loss, constraint)
    note(args, str(data))
    D, n = problem.prediction_diameters(), problem.n_samples
    kappa = D.D_1 / D.D_inf if D.D_inf > 0.0 else None
    numbers: dict[str, object] = {
        "n_samples": n, "n_features": problem.n_features, "loss": repr(loss), "set": repr(constraint),
        "kappa": kappa, "kappa_over_n": None if kappa is None else kappa / n,
        "D_1": D.D_1, "D_2": D.D_2, "D_inf": D.D_inf, "is_exact": D.is_exact,
        "L": loss.smoothness(), "tol": args.tol, "batch_size": args.batch_size,
    }  # fmt: skip
    exactly = "exact" if D.is_exact else "upper bounds; D_inf is exact"
    rows = {
        "problem": f"{loss!r} over {constraint!r}",
        "kappa": "0 / 0: all predictions are equal" if kappa is None else f"{kappa:.6g} of n = {n}",
        "diameters": f"D_1 = {D.D_1:.6g}, D_2 = {D.D_2:.6g}, D_inf = {D.D_inf:.6g} ({exactly})",
        "smoothness": f"L = {loss.smoothness():.6g}",
    }
    if problem.is_convex:
        fw = _first(lambda t: cg.theory.frank_wolfe_bound(problem, t, unit="iterations", D=D), args.tol)
        sfw = _first(lambda t: cg.theory.sfw_bound(problem, t, batch_size=args.batch_size, D=D), args.tol)
        numbers |= {"fw_iterations": fw, "fw_epochs": fw}
        numbers |= {"sfw_iterations": sfw, "sfw_epochs": sfw * args.batch_size / n}
        rows["fw"] = f"F(w) - F* <= {args.tol:g} after at most {fw:.4g} iterations = {fw:.4g} epochs (equation 10)"
        rows["sfw"] = (
            f"E[F(w) - F*] <= {args.tol:g} after at most {sfw:.4g} iterations = {sfw * args.batch_size / n:.4g} epochs "
            "(theorem 1)"
        )
    else:
        rows["bounds"] = f"{type(loss).__name__} is not convex: the bounds of F(w) - F* do not hold."
    show(args, rows, numbers)
    return 0


def _first(bound: Callable[[float], float], tol: float) -> int:
    """Return the first t >= 1 with bound(t) <= tol, for a bound that falls from its largest value on."""
    high = 1
    while bound(high) > tol:
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        if bound(middle) > tol:
            low = middle
        else:
            high = middle
    return high
