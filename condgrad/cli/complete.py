"""Complete a matrix from some of its entries and certify it.

Minimises the mean loss of W[i, j] + biases of row i and column j at the entries over matrices W
with nuclear norm at most the radius, until the Frank-Wolfe gap is at most --tol times the loss of
the biases alone. For a convex loss no W in the ball is better by more than the gap.
"""

from __future__ import annotations

import argparse
import warnings
from typing import TYPE_CHECKING

from condgrad.cli import _options as options
from condgrad.cli._files import Outputs, drawn
from condgrad.cli._outputs import note, print_table
from condgrad.cli._saved_runs import SavedRun
from condgrad.cli._saved_runs import add_options as add_saving
from condgrad.cli.cv import parse_numbers
from condgrad.cli.fit import draw_run, exit_code, show_run, work_of

if TYPE_CHECKING:
    from condgrad.estimators import MatrixCompletion, MatrixCompletionCV
    from condgrad.models.completion import CompletionModel
    from condgrad.run.result import Result

EPILOG = """\
A line of DATA holds the id of a row, the id of a column and a number, with commas, tabs, ::,
semicolons or spaces between them; further fields are ignored. Ids are any text, and the model
stores them: `condgrad predict model.npz pairs.csv` takes them. .gz, .bz2 and .xz are unpacked.

Without --radius a tenth of the entries is held out, and the radius grows until they are predicted
worse; --cv K does so over K folds. A run with --out is saved regularly in FILE.checkpoint, and
the same command with --resume continues from there. Ctrl-C writes the certified result so far.
Both are for the fit itself: --resume repeats the choice of the radius, and Ctrl-C abandons it.

examples:
  condgrad complete ratings.csv --radius 5000 --loss huber --out model.npz
  condgrad complete ml-1m/ratings.dat --no-weighted --cv 5 --out model.npz --plot run.png
  condgrad complete u1.base --loss squared --test u1.test --json
  zcat log.csv.gz | condgrad complete - --columns user,film,stars --max-time 60 --out model.npz

exit codes: 0 converged, 1 a limit came first, 2 bad input, 130 interrupted
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("data", metavar="DATA", help="file with the entries, or - for standard input")
    options.add_entries(parser)
    problem = parser.add_argument_group("problem")
    problem.add_argument("--radius", type=float, metavar="R", help="bound of the norm (default: chosen)")
    problem.add_argument("--cv", type=int, metavar="K", help="choose the radius by K folds")
    problem.add_argument("--radii", metavar="R,R,...", help="radii to choose from with --cv (default: they grow by a "
                         "factor of sqrt(2))")  # fmt: skip
    problem.add_argument("--loss", default="huber", metavar="NAME[:KEY=VALUE,...]", help="loss, such as squared or "
                         "huber:delta=2 (default: huber)")  # fmt: skip
    problem.add_argument("--weighted", action=argparse.BooleanOptionalAction, default=True, help="weigh rows and "
                         "columns by how often they are observed, or use the plain nuclear norm")  # fmt: skip
    problem.add_argument("--no-biases", action="store_true", help="leave out the biases of rows and columns")
    problem.add_argument(
        "--bias-shrinkage",
        type=float,
        default=0.0,
        metavar="K",
        help="draw the biases towards 0, as K entries would, and fix them (default: 0)",
    )
    problem.add_argument("--range", metavar="LOW,HIGH", help="clip predictions to this range")
    solver = parser.add_argument_group("solver")
    solver.add_argument("--solver", default="auto", metavar="NAME[:KEY=VALUE,...]", help="solver (default: auto)")
    solver.add_argument("--tol", type=float, default=1e-3, help="stop at a gap of at most this times the loss of the "
                        "biases alone (default: 1e-3)")  # fmt: skip
    solver.add_argument("--max-steps", type=int, default=1000, metavar="N", help="steps of a fit at most "
                        "(default: 1000)")  # fmt: skip
    solver.add_argument("--max-time", type=float, metavar="S", help="seconds of a fit at most")
    solver.add_argument("--seed", type=int, default=0, help="seed of random numbers (default: 0)")
    output = options.add_outputs(parser, "model file (.npz)", "the gap against epochs and the objective against time")
    output.add_argument("--test", metavar="FILE", help="other entries: report the errors of the predictions there")
    add_saving(output)


def run(args: argparse.Namespace) -> int:
    """Fit, write, report."""
    saved = SavedRun(args)
    outputs = Outputs(args, saved)
    estimator = _estimator(args)
    from sklearn.exceptions import ConvergenceWarning

    from condgrad.cli._entries import predict_entries, read_entries
    from condgrad.models.files import pack_model

    data = read_entries(args, args.data)
    test = None if args.test is None else read_entries(args, args.test)
    note(args, str(data))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the report and the exit code say so
        estimator.fit(data.rows, data.cols, data.values, shape=data.shape, checkpoint=saved.begin())
    result = estimator.result_
    model = estimator.model_.labelled(data.row_labels, data.col_labels)
    if outputs.write("out", lambda: [pack_model(model)]):
        saved.end(result.status)
    outputs.write("plot", lambda: drawn(draw_run(result), args.plot))
    if args.cv is not None and not args.json:
        _print_radii(estimator)
    _report(args, model, result, None if test is None else predict_entries(model, test)[1])
    return outputs.end(exit_code(result.status))


def _estimator(args: argparse.Namespace) -> MatrixCompletion | MatrixCompletionCV:
    """Return the estimator that the options describe."""
    loss, solver = options.loss_of(args.loss), options.solver_of(args.solver)
    radii = parse_numbers(args.radii, "--radii")
    if args.radius is not None and args.cv is not None:
        raise ValueError("--radius gives the radius and --cv chooses one; use one of them.")
    if radii is not None and args.cv is None:
        raise ValueError("--radii are those that --cv chooses from; use --radius, or add --cv K.")
    from condgrad.estimators import MatrixCompletion, MatrixCompletionCV

    if loss.classes is not None or loss.link != "identity":
        raise ValueError(f"complete predicts the entries themselves, and {type(loss).__name__} does not; use huber, "
                         "squared or another loss of regression.")  # fmt: skip
    settings = {
        "loss": loss,
        "biases": not args.no_biases,
        "bias_shrinkage": args.bias_shrinkage,
        "value_range": None if args.range is None else parse_range(args.range),
        "weighted": args.weighted,
        "solver": solver,
        "tol": args.tol,
        "max_iter": args.max_steps,
        "max_time": args.max_time,
        "random_state": args.seed,
        "verbose": not args.quiet,
    }
    if args.cv is not None:
        return MatrixCompletionCV(radii, cv=args.cv, **settings)
    return MatrixCompletion(args.radius, **settings)


def parse_range(text: str) -> tuple[float, float]:
    """Return the two numbers of the option --range."""
    try:
        low, high = map(float, text.split(","))
    except ValueError:
        raise ValueError(f"--range must be two numbers with a comma between them; got {text!r}.") from None
    return low, high


def _print_radii(estimator: MatrixCompletionCV) -> None:
    """Print how well each radius predicted the entries that were left out."""
    from condgrad.paths.validation import standard_errors

    rows: list[tuple[str, ...]] = [
        (f"{radius:.5g}", f"{-scores.mean():.6g}", f"{error:.2g}", "<- chosen" if radius == estimator.radius_ else "")
        for radius, scores, error in zip(estimator.radii_, estimator.scores_, standard_errors(estimator.scores_))
    ]
    print_table(["radius", "loss", "+-", ""], rows)


def _report(args: argparse.Namespace, model: CompletionModel, result: Result, test: dict[str, object] | None) -> None:
    m, n = model.shape
    numbers = {"radius": model.radius, "rank": model.rank, "shape": model.shape, "intercept": model.intercept,
               "test": test}  # fmt: skip
    how = "" if args.radius is not None else f" (chosen by {f'{args.cv} folds' if args.cv else 'held-out entries'})"
    rows = {
        "radius": f"{model.radius:.10g}{how}",
        "matrix": f"{m} x {n} of rank {model.rank}, from {model.n_samples} entries",
        "work": work_of(result),
    }
    if test is not None:
        unseen = f", {test['n_unseen']} of them in rows or columns without any in DATA" if test["n_unseen"] else ""
        rows["test"] = f"RMSE {test['rmse']:.6g}, MAE {test['mae']:.6g} on {test['n_samples']} entries{unseen}"
    show_run(args, model, result, rows, numbers, point="W")
