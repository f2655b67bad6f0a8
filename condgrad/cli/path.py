"""Solve a problem for a whole path of radii and certify every point.

By default the Lasso: (1/2n) ||y - Xw||^2 over ||w||_1 <= radius, for many radii; with --loss and
--set any other. With --alphas the problems with these penalties of the l1 norm. Every point is
reported with radius, multiplier (for the l1 ball the penalty of the same solution) and gap. DATA
may be a folder of `condgrad convert --columns`, for data that are larger than memory. See
docs/paths.md.
"""

from __future__ import annotations

import argparse
import math
from typing import TYPE_CHECKING, Any

from condgrad.cli import _options as options
from condgrad.cli._features import add_features, sets_of_options
from condgrad.cli._files import Outputs, drawn
from condgrad.cli._outputs import note, print_table, progress_of, show
from condgrad.cli.cv import parse_numbers
from condgrad.cli.fit import exit_code

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axes import Axes

    from condgrad.run.trace import Progress

EPILOG = """\
The file holds the coefficients as scipy.sparse.load_npz reads them, one column per point, and
the arrays radius, alpha, gap, relative_gap, rounding, objective, n_nonzero and intercept beside
them.

examples:
  condgrad path train.svm --out path.npz --plot path.png
  condgrad path train.csv --target y --radii 0.5,1,2 --intercept --standardize --json
  condgrad path train.svm --loss logistic --n-radii 20
  condgrad path train.svm --loss logistic --set nonnegative-l1 --alphas 0.1,0.01,0.001
  condgrad convert --columns large.svm large && condgrad path large --loss logistic

exit codes: 0 every point is certified, 1 some point is not, 2 bad input, 130 interrupted
"""
_COLUMNS = ("radius", "alpha", "gap", "relative_gap", "rounding", "objective", "n_nonzero", "intercept")
_SHOWN = 12  # number of points in the printed table


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    options.add_data(parser, has_weights=True)
    problem = options.add_problem(parser, has_radius=False, loss="squared")
    options.add_scales(problem)
    add_features(problem)
    grid = parser.add_argument_group("path")
    grid.add_argument("--n-radii", type=int, default=100, metavar="N", help="number of points (default: 100)")
    grid.add_argument("--eps", type=float, default=1e-2, help="smallest penalty over the largest (default: 0.01)")
    grid.add_argument("--radii", metavar="R,R,...", help="radii to solve for instead")
    grid.add_argument("--alphas", metavar="A,A,...", help="penalties of the l1 norm to solve for instead")
    grid.add_argument("--tol", type=float, default=1e-6, help="gap over the objective at w = 0 (default: 1e-6)")
    grid.add_argument(
        "--l2", type=float, default=0.0, metavar="C", help="add (C/2) ||w||^2, the elastic net; Lasso only"
    )
    grid.add_argument(
        "--engine", choices=("exact", "randomized"), default="exact", help="for the Lasso (default: exact)"
    )
    grid.add_argument("--max-time", type=float, metavar="S", help="seconds at most; the points solved so far are kept")
    grid.add_argument("--intercept", action="store_true", help="add an intercept")
    grid.add_argument("--seed", type=int, default=0, help="seed of the randomized engine (default: 0)")
    options.add_outputs(parser, "file of the path (.npz)", "the coefficients along the path")


def run(args: argparse.Namespace) -> int:
    """Solve, write, report."""
    outputs = Outputs(args)
    import numpy as np

    import condgrad as cg
    from condgrad.cli._data import encode_targets, read_columns, read_data
    from condgrad.cli._scales import Scales
    from condgrad.run.sealed_file import pack

    radii, alphas = parse_numbers(args.radii, "--radii", has_zero=True), parse_numbers(args.alphas, "--alphas")
    loss, (make_set, has_radius) = options.loss_of(args.loss), options.set_maker(args.set)
    if not has_radius:
        raise ValueError(f"the set {args.set} has no radius to vary.")
    is_lasso = args.loss == "squared" and args.set == "l1"
    _check_lasso_only(args, is_lasso)
    data = read_columns(args) or read_data(args, labels=loss.classes is not None)
    y, _ = encode_targets(data.y, loss)
    note(args, str(data))
    sets = sets_of_options(args, data, make_set)
    points = radii if alphas is None else alphas
    n_points = args.n_radii if points is None else points.size
    settings = {"n_radii": args.n_radii, "eps": args.eps, "tol": args.tol, "radii": radii, "alphas": alphas,
                "fit_intercept": args.intercept, "sample_weight": data.weight, "random_state": args.seed,
                "max_time": args.max_time}  # fmt: skip
    with progress_of(args, n_points) as show_progress:

        def report(progress: Progress) -> None:
            step, how = progress.step, f"objective {progress.objective:.6g}  gap {progress.gap:.3g}"
            is_line = step % math.ceil(n_points / 10) == 0 or step == n_points
            show_progress(step, f"point {step} of {n_points}  {how}  nonzero {progress.n_nonzero}", is_line)

        settings["callback"] = None if args.quiet else report
        if is_lasso:
            if sets is not None:
                settings["feature_weight"], settings["lower"], settings["upper"] = sets.allowance
                settings["rows"] = None if sets.rows is None else sets.rows._asdict()  # X itself has no names
            lasso = {"l2": args.l2, "engine": args.engine, "standardize": args.standardize}
            _, coefs, info = cg.lasso_path(data.X, y, **settings, **lasso)
        else:
            X, scales = data.X, Scales(args, data.X, data.weight)
            _, coefs, info = cg.radius_path(scales.scaled(X), y, loss=loss, constraint=sets or make_set, **settings)
            coefs = scales.coefficients(coefs)
    columns: dict[str, np.ndarray] = {name: getattr(info, name) for name in _COLUMNS}
    header = {"version": cg.__version__, "status": info.status.name, "feature_names": data.feature_names}
    sparse = {"format": np.bytes_(coefs.format), "shape": np.array(coefs.shape), "data": coefs.data,
              "indices": coefs.indices, "indptr": coefs.indptr}  # fmt: skip
    outputs.write("out", lambda: [pack("path", 1, header, columns | sparse)])
    outputs.write("plot", lambda: drawn(_draw(info.radius, coefs, data.feature_names), args.plot))
    if not args.json:
        _print(columns)
    numbers = {"status": info.status.name, "message": str(info.status), "passes": info.passes,
               "n_reads": info.n_reads, "seconds": float(info.seconds.sum()), **columns, "out": args.out,
               "plot": args.plot}  # fmt: skip
    rows = {"status": f"{info.status.name}: {info.status}", "points": f"{info.radius.size}, relative gaps up to "
            f"{info.relative_gap.max(initial=0.0):.2g}", "work": f"{info.passes:.3g} passes over the columns, "
            f"{info.seconds.sum():.3g} s"}  # fmt: skip
    if info.n_reads > 0.0:
        rows["work"] += f", {info.n_reads:.3g} reads of X from disk"
    rows |= {key: value for key, value in (("out", args.out), ("plot", args.plot)) if value}
    show(args, rows, numbers)
    return outputs.end(exit_code(info.status))


def _draw(radii: np.ndarray, coefs: Any, names: tuple[str, ...] | None) -> Axes:
    """Plot the coefficients along the path."""
    from condgrad.paths.plotting import plot_coefficient_path

    return plot_coefficient_path(radii, coefs, names=names)


def _check_lasso_only(args: argparse.Namespace, is_lasso: bool) -> None:
    """Raise if an option for the Lasso is given with another problem."""
    given = {"--l2": args.l2 != 0.0, "--engine": args.engine != "exact"}
    for option, is_given in given.items():
        if is_given and not is_lasso:
            raise ValueError(
                f"{option} is for the Lasso (--loss squared --set l1); got --loss {args.loss} --set {args.set}."
            )


def _print(columns: dict[str, np.ndarray]) -> None:
    """Print some of the points, evenly spread and with both ends."""
    import numpy as np

    n = columns["radius"].size
    places = np.unique(np.linspace(0, max(n - 1, 0), min(n, _SHOWN)).round().astype(int)).tolist()
    names = ("radius", "alpha", "objective", "relative_gap", "n_nonzero")
    print_table(["point", *names], [(str(k), *(f"{columns[name][k]:.5g}" for name in names)) for k in places])
