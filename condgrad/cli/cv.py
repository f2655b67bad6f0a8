"""Choose the radius by cross-validation.

Every fold is solved for all radii, from the smallest on, each from the last solution, to the
tolerance. The radius with the smallest mean loss on held-out samples is chosen, or with
--one-se the smallest radius within one standard error of it; --out fits it on all samples.
"""

from __future__ import annotations

import argparse
import contextlib
import time
from typing import Any

from condgrad.cli import _options as options
from condgrad.cli._outputs import check_outputs, check_plot, note, print_table, save_plot, show
from condgrad.cli.fit import exit_code

EPILOG = """\
Without --radii the grid is evenly spaced in its logarithm, up to the radius (to some 2%)
at which the multiplier of the constraint has fallen to --eps times that at w = 0.

examples:
  condgrad cv train.svm --loss logistic --set l1 --folds 5 --out model.npz --plot cv.png
  condgrad cv train.csv --loss squared --radii 0.5,1,2,4 --one-se --json

exit codes: 0 all converged, 1 a limit came first somewhere, 2 bad input, 130 interrupted
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    options.add_data(parser)
    problem = options.add_problem(parser, has_radius=False)
    problem.add_argument("--intercept", action="store_true", help="add an intercept, which is not constrained")
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
    check_plot(args.plot)
    check_outputs(args.out, args.plot, force=args.force)
    import numpy as np

    import condgrad as cg
    from condgrad.cli._data import encode_targets, read_data
    from condgrad.cli._radii import radius_grid

    loss, (make_set, has_radius) = options.loss_of(args.loss), options.set_maker(args.set)
    if not has_radius:
        raise ValueError(f"the set {args.set} has no radius to choose.")
    radii = parse_numbers(args.radii, "--radii")
    if args.n_radii < 2 or not 0.0 < args.eps < 1.0:
        raise ValueError(f"--n-radii must be at least 2, --eps between 0 and 1; got {args.n_radii} and {args.eps}.")
    solver = options.solver_of(args.solver)
    data = read_data(args, labels=loss.classes is not None)
    y, classes = encode_targets(data.y, loss)
    X = data.X.tocsr() if hasattr(data.X, "tocsr") else data.X
    if not 2 <= args.folds <= y.size:
        raise ValueError(f"--folds must lie between 2 and the {y.size} samples; got {args.folds}.")
    whole = cg.Problem(X, y, loss, make_set(1.0), intercept=args.intercept)
    note(args, str(data))
    radii = radius_grid(whole, make_set, args.n_radii, args.eps) if radii is None else np.sort(radii)
    problem_sets = [make_set(float(radius)) for radius in radii]
    settings = {"tol": args.tol, "relative_tol": args.relative_tol, "max_epochs": args.max_epochs,
                "max_steps": args.max_steps, "max_time": args.max_time, "random_state": args.seed}  # fmt: skip
    fold_of = _folds(y if classes is not None else None, y.size, args.folds, args.seed)
    scores = _Scores(args, loss, is_classifier=classes is not None)
    status = scores.fill(X, y, fold_of, problem_sets, solver, settings)
    if status is cg.Status.INTERRUPTED and not scores.loss:
        note(args, "interrupted before the end of the first fold: nothing was written.")
        return 130
    best = scores.best(args.one_se)
    model = result = None
    if args.out is not None and status is not cg.Status.INTERRUPTED:
        problem = whole.over(problem_sets[best])
        result = cg.minimize(problem, solver, verbose=not args.quiet, **settings)
        model = cg.Model.of(problem, result, classes=classes, feature_names=data.feature_names)
        cg.save_model(args.out, model)
        status = result.status if status is cg.Status.CONVERGED else status
    if args.plot is not None:
        from condgrad.plotting import plot_path_scores

        ax = plot_path_scores(radii, scores.mean, scores.error, n_nonzero=scores.nonzero, best=best)
        save_plot(ax, args.plot)
    _report(args, radii, scores, best, model, status)
    return exit_code(status)


def parse_numbers(text: str | None, option: str) -> Any:
    """Return the positive numbers of a list with commas as an array, None where the option is not given."""
    if text is None:
        return None
    import numpy as np

    try:
        numbers = np.array([float(part) for part in text.split(",")])
    except ValueError:
        numbers = np.array([np.nan])
    if not ((numbers > 0.0) & np.isfinite(numbers)).all():
        raise ValueError(f"{option} must be positive numbers with commas between them; got {text!r}.")
    return numbers


class _Scores:
    """Loss, errors and nonzeros of every finished fold, for every radius."""

    def __init__(self, args: argparse.Namespace, loss: Any, *, is_classifier: bool) -> None:
        self.args, self.function, self.is_classifier = args, loss, is_classifier
        self.loss: list[list[float]] = []
        self.wrong: list[list[float]] = []
        self.counts: list[list[int]] = []

    def fill(self, X: Any, y: Any, fold_of: Any, sets: list[Any], solver: Any, settings: dict[str, Any]) -> Any:
        """Solve every fold, and return why the first run that did not converge ended, or CONVERGED."""
        from condgrad.run.interrupts import Interrupts
        from condgrad.run.progress import line_writer
        from condgrad.run.result import Status

        n_folds, status, began = int(fold_of.max()) + 1, Status.CONVERGED, time.perf_counter()
        with contextlib.ExitStack() as stack:
            interrupts = stack.enter_context(Interrupts())  # around all runs: what is done survives it
            write, is_live = (None, False) if self.args.quiet else stack.enter_context(line_writer())
            for fold in range(n_folds):
                run = self._fold(X, y, fold_of == fold, sets, solver, settings)
                for k, ended in enumerate(run):
                    if ended is Status.INTERRUPTED or interrupts.heard():
                        return Status.INTERRUPTED
                    status = ended if status is Status.CONVERGED else status
                    if write is not None and (is_live or k + 1 == len(sets)):
                        share = (fold * len(sets) + k + 1) / (n_folds * len(sets))
                        passed = time.perf_counter() - began
                        write(f"fold {fold + 1} of {n_folds}  radius {k + 1} of {len(sets)}  {passed:.1f} s  "
                              f"{passed * (1.0 / share - 1.0):.1f} s left")  # fmt: skip
        return status

    def _fold(self, X: Any, y: Any, held_out: Any, sets: list[Any], solver: Any, settings: dict[str, Any]) -> Any:
        import numpy as np

        from condgrad.problems.linear import Problem
        from condgrad.run.minimize import minimize
        from condgrad.run.result import Status
        from condgrad.run.trace import count_nonzero

        problem = Problem(X[~held_out], y[~held_out], self.function, sets[0], intercept=self.args.intercept)
        X_out, y_out, w = X[held_out], y[held_out], None
        losses, wrong, counts = [], [], []
        for constraint in sets:
            w = None if w is None or not constraint.contains(w) else w
            result = minimize(problem.over(constraint), solver, w0=w, **settings)
            if result.status is Status.INTERRUPTED:
                yield result.status
                return
            w, p = result.w, X_out @ result.w + result.intercept
            losses.append(float(np.mean(self.function.value(p, y_out))))
            wrong.append(float(np.mean((p > 0.0) != (y_out == 1.0))))
            counts.append(count_nonzero(w))
            if len(losses) == len(sets):
                self.loss.append(losses)
                self.wrong.append(wrong)
                self.counts.append(counts)
            yield result.status

    @property
    def mean(self) -> Any:
        """The mean loss over the folds, for every radius."""
        import numpy as np

        return np.mean(self.loss, axis=0)

    @property
    def error(self) -> Any:
        """The standard error of the mean loss, 0 where a single fold was finished."""
        import numpy as np

        n = len(self.loss)
        return np.std(self.loss, axis=0, ddof=1) / np.sqrt(n) if n > 1 else np.zeros(len(self.loss[0]))

    @property
    def error_rate(self) -> Any:
        """The mean share of errors over the folds, for every radius."""
        import numpy as np

        return np.mean(self.wrong, axis=0)

    @property
    def nonzero(self) -> Any:
        """The mean number of nonzeros over the folds, for every radius."""
        import numpy as np

        return np.mean(self.counts, axis=0)

    def best(self, one_se: bool) -> int:
        """Return the place of the chosen radius."""
        mean = self.mean
        lowest = int(mean.argmin())
        return int((mean <= mean[lowest] + self.error[lowest]).argmax()) if one_se else lowest


def _folds(classes: Any, n: int, n_folds: int, seed: int) -> Any:
    """Return the fold of every sample: of equal sizes, and with equal shares of the classes where there are any."""
    import numpy as np

    order = np.random.default_rng(seed).permutation(n)
    if classes is not None:
        order = order[np.argsort(classes[order], kind="stable")]
    fold_of = np.empty(n, dtype=np.int64)
    fold_of[order] = np.arange(n) % n_folds
    return fold_of


def _report(args: argparse.Namespace, radii: Any, scores: _Scores, best: int, model: Any, status: Any) -> None:
    numbers: dict[str, Any] = {
        "status": status.name,
        "message": str(status),
        "folds": len(scores.loss),
        "best_radius": float(radii[best]),
        "radii": radii,
        "mean_loss": scores.mean,
        "standard_error": scores.error,
        "n_nonzero": scores.nonzero,
        "out": args.out if model is not None else None,
        "plot": args.plot,
    }
    if scores.is_classifier:
        numbers["error_rate"] = scores.error_rate
    if not args.json:
        columns = ["radius", "loss", "+-", *(["errors"] if scores.is_classifier else []), "nonzero", ""]
        shown = zip(radii, scores.mean, scores.error, scores.error_rate, scores.nonzero)
        rows = [
            (f"{radius:.4g}", f"{mean:.6g}", f"{error:.2g}", *([f"{rate:.4f}"] if scores.is_classifier else []),
             f"{count:.1f}", "<- chosen" if k == best else "")
            for k, (radius, mean, error, rate, count) in enumerate(shown)
        ]  # fmt: skip
        print_table(columns, rows)
        print()
    is_last = best == radii.size - 1
    advice = (
        " (the largest of the grid: a larger one may be better; use a smaller --eps, or --radii)" if is_last else ""
    )
    rows = {"status": f"{status.name}: {status}", "radius": f"{radii[best]:.10g}{advice}"}
    if model is not None:
        rows |= {"gap": f"{model.gap:.3g}", "out": args.out}
    show(args, rows | ({"plot": args.plot} if args.plot else {}), numbers)
