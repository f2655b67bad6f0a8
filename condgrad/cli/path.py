"""Solve the Lasso for a whole path of radii and certify every point.

Minimises (1/2n) ||y - Xw||^2 over ||w||_1 <= radius, for many radii, or with --alphas the
penalised problems; see docs/paths.md. Every point is reported with radius, penalty and gap.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import time
from collections.abc import Callable, Iterator
from typing import Any

from condgrad.cli import _options as options
from condgrad.cli._outputs import check_outputs, check_plot, note, print_table, save_plot, show
from condgrad.cli.cv import parse_numbers
from condgrad.cli.fit import exit_code

EPILOG = """\
The file holds the coefficients as scipy.sparse.load_npz reads them, one column per point, and
the arrays radius, alpha, gap, relative_gap, objective, n_nonzero and intercept beside them.

examples:
  condgrad path train.svm --out path.npz --plot path.png
  condgrad path train.csv --target y --radii 0.5,1,2 --intercept --standardize --json

exit codes: 0 every point is certified, 1 one is not, 2 bad input, 130 interrupted
"""
_COLUMNS = ("radius", "alpha", "gap", "relative_gap", "objective", "n_nonzero", "intercept")
_SHOWN = 12  # points of the table


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    options.add_data(parser)
    grid = parser.add_argument_group("path")
    grid.add_argument("--n-radii", type=int, default=100, metavar="N", help="number of points (default: 100)")
    grid.add_argument("--eps", type=float, default=1e-2, help="smallest penalty over the largest (default: 0.01)")
    grid.add_argument("--radii", metavar="R,R,...", help="radii to solve for instead")
    grid.add_argument("--alphas", metavar="A,A,...", help="penalties to solve for instead")
    grid.add_argument("--tol", type=float, default=1e-6, help="gap over the objective at w = 0 (default: 1e-6)")
    grid.add_argument("--engine", choices=("exact", "randomized"), default="exact", help="(default: exact)")
    grid.add_argument("--intercept", action="store_true", help="add an intercept")
    grid.add_argument("--standardize", action="store_true", help="divide features by their standard deviations")
    grid.add_argument("--seed", type=int, default=0, help="seed of the randomized engine (default: 0)")
    options.add_outputs(parser, "file of the path (.npz)", "the coefficients along the path")


def run(args: argparse.Namespace) -> int:
    """Solve, write, report."""
    check_plot(args.plot)
    check_outputs(args.out, args.plot, force=args.force)
    import numpy as np

    import condgrad as cg
    from condgrad.cli._data import read_data
    from condgrad.sealed_file import pack, write_file

    radii, alphas = parse_numbers(args.radii, "--radii"), parse_numbers(args.alphas, "--alphas")
    data = read_data(args, labels=False)
    note(args, str(data))
    n_points = args.n_radii if radii is None and alphas is None else (radii if alphas is None else alphas).size
    with _points(args, n_points) as report:
        _, coefs, info = cg.lasso_path(
            data.X,
            data.y,
            n_radii=args.n_radii,
            eps=args.eps,
            tol=args.tol,
            radii=radii,
            alphas=alphas,
            engine=args.engine,
            fit_intercept=args.intercept,
            standardize=args.standardize,
            random_state=args.seed,
            callback=report,
        )
    columns: dict[str, Any] = {name: getattr(info, name) for name in _COLUMNS}
    if args.out is not None:
        header = {"version": cg.__version__, "status": info.status.name, "feature_names": data.feature_names}
        sparse = {"format": np.bytes_(coefs.format), "shape": np.array(coefs.shape), "data": coefs.data,
                  "indices": coefs.indices, "indptr": coefs.indptr}  # fmt: skip
        write_file(args.out, pack("path", 1, header, columns | sparse))
    if args.plot is not None:
        from condgrad.plotting import plot_coefficient_path

        save_plot(plot_coefficient_path(info.radius, coefs, names=data.feature_names), args.plot)
    if not args.json:
        _print(columns)
    numbers = {"status": info.status.name, "message": str(info.status), "passes": info.passes,
               "seconds": float(info.seconds.sum()), **columns, "out": args.out, "plot": args.plot}  # fmt: skip
    rows = {"status": f"{info.status.name}: {info.status}", "points": f"{info.radius.size}, relative gaps up to "
            f"{info.relative_gap.max(initial=0.0):.2g}", "work": f"{info.passes:.3g} passes over the columns, "
            f"{info.seconds.sum():.3g} s"}  # fmt: skip
    rows |= {key: value for key, value in (("out", args.out), ("plot", args.plot)) if value}
    show(args, rows, numbers)
    return exit_code(info.status)


@contextlib.contextmanager
def _points(args: argparse.Namespace, n_points: int) -> Iterator[Callable[[Any], None] | None]:
    """Yield a listener that tells how far the path is (ten times, or live on a terminal), None with --quiet."""
    if args.quiet:
        yield None
        return
    from condgrad.progress import line_writer

    with line_writer() as (write, is_live):
        began = time.perf_counter()

        def report(progress: Any) -> None:
            if is_live or progress.step % math.ceil(n_points / 10) == 0 or progress.step == n_points:
                passed = time.perf_counter() - began
                left = passed * (n_points / progress.step - 1.0)
                how = f"objective {progress.objective:.6g}  gap {progress.gap:.3g}  nonzero {progress.n_nonzero}"
                write(f"point {progress.step} of {n_points}  {how}  {passed:.1f} s  {left:.1f} s left")

        yield report


def _print(columns: dict[str, Any]) -> None:
    """Print some of the points, evenly spread and with both ends."""
    import numpy as np

    n = columns["radius"].size
    places = np.unique(np.linspace(0, max(n - 1, 0), min(n, _SHOWN)).round().astype(int)).tolist()
    names = ("radius", "alpha", "objective", "relative_gap", "n_nonzero")
    print_table(["point", *names], [(str(k), *(f"{columns[name][k]:.5g}" for name in names)) for k in places])
    print()
