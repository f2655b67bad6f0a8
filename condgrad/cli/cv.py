"""Choose the radius by cross-validation.

Every fold is solved to the tolerance for all radii in ascending order, each started at the last
solution (for smooth losses over l1 balls as `condgrad path` does). The radius with the smallest
mean loss on held-out samples is chosen, or with --one-se the smallest radius within one standard
error of it; --out fits it on all samples. --max-time is for all of it: folds have equal shares of
most of the time, and the radii are compared that all folds have at least begun with.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from condgrad.cli import _options as options
from condgrad.cli._features import add_features, sets_of_options
from condgrad.cli._files import Outputs, drawn
from condgrad.cli._outputs import note, print_table, progress_of, show
from condgrad.cli.fit import exit_code

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axes import Axes

    from condgrad.constraints import ConstraintSet
    from condgrad.linalg.convert import Checked
    from condgrad.losses import Loss
    from condgrad.models.linear import Model
    from condgrad.paths.smooth import Found
    from condgrad.problems.linear import Problem
    from condgrad.run.result import Status

EPILOG = """\
Without --radii the grid is evenly spaced in its logarithm, up to the radius at which the
multiplier of the constraint is --eps times that at w = 0 (accurate to about 2%).

examples:
  condgrad cv train.svm --loss logistic --set l1 --folds 5 --out model.npz --plot cv.png
  condgrad cv train.csv --loss squared --radii 0.5,1,2,4 --one-se --json

exit codes: 0 all converged, 1 a limit came first somewhere, 2 bad input, 130 interrupted
"""


_SEARCH = 0.8  # share of --max-time that the choice of the radius may take: the fit to all data is one of about six
_GRID = 0.2  # share of the time of the choice in which the end of the grid is found
_SAMPLE_BYTES = 2**28  # size of the sample in memory on which the radius is chosen for data on disk


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    options.add_data(parser, has_weights=True)
    problem = options.add_problem(parser, has_radius=False)
    options.add_scales(problem)
    problem.add_argument("--intercept", action="store_true", help="add an intercept, which is not constrained")
    add_features(problem)
    grid = parser.add_argument_group("grid")
    grid.add_argument("--radii", metavar="R,R,...", help="radii to try")
    grid.add_argument("--n-radii", type=int, default=20, metavar="N", help="number of radii of the default grid "
                      "(default: 20)")  # fmt: skip
    grid.add_argument("--eps", type=float, default=1e-2, help="where the default grid ends, see below (default: 0.01)")
    grid.add_argument("--folds", type=int, default=5, metavar="K", help="number of folds (default: 5)")
    grid.add_argument("--one-se", action="store_true", help="take the smallest radius within one standard error")
    options.add_run(parser)
    options.add_outputs(parser, "model file (.npz) of the chosen radius", "loss and nonzeros against the radius")


def run(args: argparse.Namespace) -> int:
    """Cross-validate, fit, write, report."""
    outputs = Outputs(args)
    import numpy as np

    import condgrad as cg
    from condgrad.cli._data import encode_targets, read_data
    from condgrad.cli._scales import Scales
    from condgrad.linalg.interrupts import as_seconds, at_most, time_left
    from condgrad.models.files import pack_model
    from condgrad.paths.allowed_sets import check_radii, minimize_over, suited, typical
    from condgrad.paths.grids import check_grid
    from condgrad.paths.validation import BEST, ONE_STANDARD_ERROR, select
    from condgrad.storage.stored_rows import StoredRows

    loss, (make_set, has_radius) = options.loss_of(args.loss), options.set_maker(args.set)
    if not has_radius:
        raise ValueError(f"the set {args.set} has no radius to choose.")
    radii = parse_numbers(args.radii, "--radii", has_zero=True)
    check_grid(args.n_radii, args.eps)
    solver = options.solver_of(args.solver)
    data = read_data(args, labels=loss.classes is not None)
    y, classes = encode_targets(data.y, loss)
    make_set = sets_of_options(args, data, make_set) or make_set
    if radii is not None:
        check_radii(radii, make_set)
    X = data.X.tocsr() if hasattr(data.X, "tocsr") else data.X
    weight, offset, scales = data.weight, None, Scales(args, X, data.weight)
    whole = cg.Problem(scales.scaled(X), y, loss, typical(make_set), intercept=args.intercept, sample_weight=weight)
    tried = whole
    note(args, str(data))
    if isinstance(X, StoredRows):  # the radius is chosen on a sample in memory
        matrix, places = X.sample_within(_SAMPLE_BYTES)
        weight, offset = (None if part is None else part[places] for part in (X.weight, X.offset))
        X, y = matrix.X, y[places]
        tried = cg.Problem(X, y, loss, typical(make_set), intercept=args.intercept, sample_weight=weight, offset=offset)
        note(args, f"{y.size} of them, in memory, to choose the radius")
    if not 2 <= args.folds <= y.size:
        raise ValueError(f"--folds must lie between 2 and the {y.size} samples; got {args.folds}.")
    limits = {"relative_tol": args.relative_tol or None, "max_steps": args.max_steps}
    limits = {name: value for name, value in limits.items() if value is not None}
    settings = {"max_epochs": args.max_epochs, "random_state": args.seed, **limits}
    began = time.perf_counter()
    with at_most(_SEARCH * as_seconds(args.max_time)):
        if radii is None:
            with at_most(time_left(_GRID)):
                radii = radius_grid(tried, make_set, args.n_radii, args.eps)
        radii = np.sort(radii)
        folds, status = _solve_folds(args, X, y, weight, offset, loss, make_set, radii, solver, settings)
    if not folds:
        note(args, "interrupted before the end of the first fold: nothing was written.")
        return 130
    n_known = min(map(len, folds))
    folds, radii = [fold[:n_known] for fold in folds], radii[:n_known]
    scores = _Scores(folds)
    best = select(-scores.losses, ONE_STANDARD_ERROR if args.one_se else BEST)
    model = None
    if args.out is not None and status is not cg.Status.INTERRUPTED:
        make, settings = suited(make_set, whole), settings | {"tol": args.tol, "verbose": not args.quiet}
        if args.max_time is not None:
            settings["max_time"] = max(0.0, began + args.max_time - time.perf_counter())
        problem, _, result = minimize_over(whole, make, float(radii[best]), solver, **settings)
        model = cg.Model.of(problem, result, classes=classes, feature_names=data.feature_names)
        model = model._replace(w=scales.coefficients(model.w), radius=float(radii[best]))
        status = result.status if status is cg.Status.CONVERGED else status
    if model is not None:
        outputs.write("out", lambda: [pack_model(model)])
    outputs.write("plot", lambda: drawn(_draw(radii, scores, best), args.plot))
    _report(args, radii, scores, best, model, status, is_classifier=classes is not None)
    return outputs.end(exit_code(status))


def _draw(radii: np.ndarray, scores: _Scores, best: int) -> Axes:
    """Plot the scores of all radii."""
    from condgrad.paths.plotting import plot_path_scores

    return plot_path_scores(radii, scores.mean, scores.error, n_nonzero=scores.nonzero, best=best)


def parse_numbers(text: str | None, option: str, *, has_zero: bool = False) -> np.ndarray | None:
    """Return the positive numbers of a list with commas as an array, or None if the option is not given.

    With ``has_zero`` zero is one of the numbers that may be given.
    """
    if text is None:
        return None
    import numpy as np

    try:
        numbers = np.array([float(part) for part in text.split(",")])
    except ValueError:
        numbers = np.array([np.nan])
    is_good = (numbers >= 0.0 if has_zero else numbers > 0.0) & np.isfinite(numbers)
    if not is_good.all():
        kind = "numbers of at least 0" if has_zero else "positive numbers"
        raise ValueError(f"{option} must be {kind} with commas between them; got {text!r}.")
    return numbers


def radius_grid(problem: Problem, make_set: Callable[[float], ConstraintSet], n_radii: int, eps: float) -> np.ndarray:
    """Return the default grid for a problem over one of the sets."""
    import numpy as np

    from condgrad.paths.allowed_sets import least_radius, leaves_out_zero
    from condgrad.paths.grids import shares
    from condgrad.paths.smooth import largest_radius

    least = least_radius(make_set)
    if not leaves_out_zero(make_set) and not problem.constraint.contains(np.zeros(problem.n_features)):
        name = type(problem.constraint).__name__
        raise ValueError(f"there is no default grid for {name}, which does not contain 0; use --radii.")
    largest = largest_radius(problem, make_set, eps)
    if largest == 0.0:
        raise ValueError("the gradient at w = 0 is zero: no radius gives another model than 0.")
    return least + (largest - least) * shares(n_radii)


class _Scores:
    """The scores of each radius on held-out samples, over the finished folds."""

    def __init__(self, folds: list[list[tuple[float, float, int]]]) -> None:
        import numpy as np

        from condgrad.paths.validation import standard_errors

        table = np.array(folds)  # folds, radii, and the three numbers of _scores_of
        self.n_folds, self.losses = len(folds), table[:, :, 0].T
        self.mean, self.error_rate, self.nonzero = table.mean(axis=0).T
        self.error = standard_errors(self.losses)


def _solve_folds(
    args: argparse.Namespace,
    X: Checked,
    y: np.ndarray,
    weight: np.ndarray | None,
    offset: np.ndarray | None,
    loss: Loss,
    make_set: Callable[[float], ConstraintSet],
    radii: np.ndarray,
    solver: object,
    settings: dict[str, Any],
) -> tuple[list[list[tuple[float, float, int]]], Status]:
    """Return the scores of every fold, and the status of the first run that did not converge.

    They are those of all radii, but of the first ones where the time of a fold is over.
    """
    import numpy as np

    from condgrad.cli._scales import Scales
    from condgrad.linalg.interrupts import Interrupts, at_most, time_is_over, time_left
    from condgrad.paths.allowed_sets import typical
    from condgrad.paths.smooth import solutions
    from condgrad.paths.validation import deal_folds
    from condgrad.problems.linear import Problem
    from condgrad.run.result import Status

    order = np.random.default_rng(args.seed).permutation(y.size)
    fold_of = deal_folds(order, args.folds, y if loss.classes is not None else None)
    folds: list[list[tuple[float, float, int]]] = []
    status = Status.CONVERGED
    # Catch Ctrl-C around all runs, so that finished folds survive it.
    with Interrupts() as interrupts, progress_of(args, args.folds * radii.size) as report:
        for fold in range(args.folds):
            out = fold_of == fold
            own, held_out = (
                [None if each is None else each[part] for each in (weight, offset)] for part in (~out, out)
            )
            scales = Scales(args, X[~out], own[0])
            problem = Problem(
                scales.scaled(X[~out]),
                y[~out],
                loss,
                typical(make_set),
                intercept=args.intercept,
                sample_weight=own[0],
                offset=own[1],
            )
            tol = args.tol / (problem.loss_scale() or 1.0)  # the option is a gap in units of the objective
            walk = solutions(problem, make_set, solver, radii.tolist(), tol=tol, **settings)
            scores: list[tuple[float, float, int]] = []
            try:
                with at_most(time_left(1.0 / (args.folds - fold))):
                    for found in walk:
                        status = found.status if status is Status.CONVERGED else status
                        found = found._replace(w=scales.coefficients(found.w))
                        scores.append(_scores_of(found, loss, X[out], y[out], *held_out))
                        if interrupts.heard():
                            raise KeyboardInterrupt
                        how = f"fold {fold + 1} of {args.folds}  radius {len(scores)} of {radii.size}"
                        report(fold * radii.size + len(scores), how, len(scores) == radii.size)
                    if time_is_over():
                        status = Status.MAX_TIME
            except KeyboardInterrupt:
                if len(scores) == radii.size:
                    folds.append(scores)
                return folds, Status.INTERRUPTED
            folds.append(scores)
    return folds, status


def _scores_of(
    found: Found, loss: Loss, X: Checked, y: np.ndarray, weight: np.ndarray | None, offset: np.ndarray | None
) -> tuple[float, float, int]:
    """Return the mean loss and the share of errors on some samples, and the number of nonzeros."""
    import numpy as np

    from condgrad.run.trace import count_nonzero

    p = X @ found.w + found.intercept + (0.0 if offset is None else offset)
    mean_loss, error_rate = (np.average(each, weights=weight) for each in (loss.value(p, y), (p > 0.0) != (y == 1.0)))
    return float(mean_loss), float(error_rate), count_nonzero(found.w)


def _report(
    args: argparse.Namespace,
    radii: np.ndarray,
    scores: _Scores,
    best: int,
    model: Model | None,
    status: Status,
    *,
    is_classifier: bool,
) -> None:
    numbers: dict[str, object] = {
        "status": status.name,
        "message": str(status),
        "folds": scores.n_folds,
        "best_radius": float(radii[best]),
        "radii": radii,
        "mean_loss": scores.mean,
        "standard_error": scores.error,
        "n_nonzero": scores.nonzero,
        "out": args.out if model is not None else None,
        "plot": args.plot,
    }
    if is_classifier:
        numbers["error_rate"] = scores.error_rate
    if not args.json:
        columns = ["radius", "loss", "+-", *(["errors"] if is_classifier else []), "nonzero", ""]
        shown = zip(radii, scores.mean, scores.error, scores.error_rate, scores.nonzero)
        rows = [
            (f"{radius:.4g}", f"{mean:.6g}", f"{error:.2g}", *([f"{rate:.4f}"] if is_classifier else []),
             f"{count:.1f}", "<- chosen" if k == best else "")
            for k, (radius, mean, error, rate, count) in enumerate(shown)
        ]  # fmt: skip
        print_table(columns, rows)
    is_last = best == radii.size - 1 and status.name != "MAX_TIME"
    advice = (
        " (the largest of the grid: a larger one may be better; use a smaller --eps, or --radii)" if is_last else ""
    )
    rows = {"status": f"{status.name}: {status}", "radius": f"{radii[best]:.10g}{advice}"}
    if model is not None:
        rows |= {"gap": f"{model.gap:.3g}"}
    show(args, rows | {key: file for key in ("out", "plot") if (file := numbers[key])}, numbers)
