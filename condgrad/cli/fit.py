"""Fit a constrained linear model and certify it.

Minimises the mean loss of the predictions x_i'w (+ b) over w in a set, until the exact
Frank-Wolfe gap is at most --tol. For a convex loss no w in the set is better by more than the gap.
Without --radius the one is taken that predicts held-out samples best in a quick search
(`radius=None` of the estimators); `condgrad cv` chooses one by cross-validation.
"""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING

from condgrad.cli import _options as options
from condgrad.cli._features import add_features, sets_of_options
from condgrad.cli._files import Outputs, drawn
from condgrad.cli._outputs import note, show
from condgrad.cli._saved_runs import SavedRun
from condgrad.cli._saved_runs import add_options as add_saving

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from condgrad.models.completion import CompletionModel
    from condgrad.models.linear import Model
    from condgrad.run.result import Result, Status

_SEARCH = 0.5  # share of --max-time that the choice of a radius may take, as in the estimators

EPILOG = """\
A run with --out is saved regularly in FILE.checkpoint. After kill -9 or a power cut the same
command with --resume continues from there, to the bit-identical result; after a limit was
reached, use --resume with a higher one. The checkpoint is deleted when the run has converged.

examples:
  condgrad fit train.svm --loss logistic --set l1 --radius 10 --out model.npz --plot run.png
  condgrad fit houses.csv --target price --loss huber:delta=2 --set l2 --radius 3 --intercept
  condgrad fit survey.csv --target answer --weights weight --intercept --standardize
  condgrad fit houses.csv --loss squared --feature-weight area=0 --lower rooms=0 --upper 2
  xz -dc train.svm.xz | condgrad fit - --radius 5 --solver sfw:batch_size=64 --max-time 60 --json

exit codes: 0 converged, 1 a limit came first, 2 bad input, 130 interrupted
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    options.add_data(parser, has_weights=True)
    problem = options.add_problem(parser)
    options.add_scales(problem)
    problem.add_argument("--intercept", action="store_true", help="add an intercept, which is not constrained")
    problem.add_argument(
        "--device", choices=["cuda"], help="where passes run: cuda is the GPU (default: the processor)"
    )
    add_features(problem)
    options.add_run(parser)
    output = options.add_outputs(parser, "model file (.npz)", "the gap against epochs and the objective against time")
    add_saving(output)


def run(args: argparse.Namespace) -> int:
    """Fit, write, report."""
    saved = SavedRun(args)
    outputs = Outputs(args, saved)
    import condgrad as cg
    from condgrad.cli._data import encode_targets, read_data
    from condgrad.cli._scales import Scales
    from condgrad.estimators.radius import default_radius
    from condgrad.linalg.interrupts import as_seconds
    from condgrad.models.files import pack_model
    from condgrad.paths.allowed_sets import minimize_over, suited, typical

    loss, (make_set, _) = options.loss_of(args.loss), options.set_maker(args.set)
    is_chosen = options.lacks_radius(args)
    first_set = make_set(1.0 if is_chosen else args.radius)
    solver = options.solver_of(args.solver)
    data = read_data(args, labels=loss.classes is not None)
    y, classes = encode_targets(data.y, loss)
    scales = Scales(args, data.X, data.weight)
    problem = cg.Problem(
        scales.scaled(data.X), y, loss, first_set, intercept=args.intercept, sample_weight=data.weight,
        device=args.device,
    )  # fmt: skip
    note(args, str(data))
    allowed = sets_of_options(args, data, make_set)
    make = suited(allowed or (make_set if is_chosen else lambda _: first_set), problem)
    radius = 1.0 if allowed is None or args.radius is None else args.radius  # a set without allowances is made already
    left = as_seconds(args.max_time)
    if is_chosen:
        began = time.perf_counter()
        radius = default_radius(problem.over(typical(make)), make, _SEARCH * left)
        left = max(0.0, left - (time.perf_counter() - began))
    problem, _, result = minimize_over(
        problem,
        make,
        radius,
        solver,
        max_epochs=args.max_epochs,
        max_steps=args.max_steps,
        tol=args.tol,
        relative_tol=args.relative_tol,
        max_time=left,
        checkpoint=saved.begin(),
        random_state=args.seed,
        verbose=not args.quiet,
    )
    model = cg.Model.of(problem, result, classes=classes, feature_names=data.feature_names)
    model = model._replace(w=scales.coefficients(model.w), radius=0.0 if args.radius == 0.0 else model.radius)
    if outputs.write("out", lambda: [pack_model(model)]):
        saved.end(result.status)
    outputs.write("plot", lambda: drawn(draw_run(result), args.plot))
    _report(args, model, result, is_chosen)
    return outputs.end(exit_code(result.status))


def exit_code(status: Status) -> int:
    """Return the exit code of a run that ended with ``status``."""
    return {"CONVERGED": 0, "INTERRUPTED": 130}.get(status.name, 1)


def draw_run(result: Result) -> Axes:
    """Plot the gap against epochs and, beside it, the objective against time; return the axes of the former."""
    import matplotlib.pyplot as plt

    from condgrad.paths.plotting import plot_convergence

    _, (left, right) = plt.subplots(1, 2, figsize=(10.0, 4.0), layout="constrained")
    plot_convergence(result, x="epoch", y="gap", ax=left, slopes=(1.0,))
    is_convex = result.lower_bound > -float("inf")
    plot_convergence(result, x="seconds", y="suboptimality" if is_convex else "gap", ax=right)
    return left


def _report(args: argparse.Namespace, model: Model, result: Result, is_chosen: bool) -> None:
    import numpy as np

    n_nonzero = int(np.count_nonzero(model.w))
    numbers = {"intercept": result.intercept, "n_nonzero": n_nonzero, "n_features": model.w.size,
               "radius": model.radius, "classes": model.classes}  # fmt: skip
    rows = {"radius": f"{model.radius:g} (chosen on held-out samples, as radius=None does)"} if is_chosen else {}
    rows |= {"nonzero": f"{n_nonzero} of {model.w.size}", "work": work_of(result)}
    rows |= {"intercept": f"{result.intercept:.6g}"} if args.intercept else {}
    show_run(args, model, result, rows, numbers)


def work_of(result: Result) -> str:
    """Return the steps, epochs and seconds of a run as text."""
    reads = f", {result.n_reads:g} reads of the data" if result.n_reads > 0.0 else ""
    return f"{result.n_steps} steps, {result.n_epochs:.1f} epochs{reads}, {result.seconds:.3g} s"


def show_run(
    args: argparse.Namespace,
    model: Model | CompletionModel,
    result: Result,
    rows: dict[str, str],
    numbers: dict[str, object],
    point: str = "w",
) -> None:
    """Print a run, its certificate at ``point``, and ``rows`` (text) or ``numbers`` (JSON) about its model."""
    of_run = ("objective", "gap", "rounding", "lower_bound", "n_steps", "n_epochs", "n_reads", "seconds", "solver")
    data = {
        "status": result.status.name,
        "message": str(result.status),
        "loss": repr(model.loss),
        "set": model.constraint,
        "n_samples": model.n_samples,
        **{name: getattr(result, name) for name in of_run},
        **numbers,
        "out": args.out,
        "plot": args.plot,
    }
    is_convex = result.lower_bound > -float("inf")
    bound = f"so F({point}) - F* <= {result.gap + result.rounding:.3g}" if is_convex else "the loss is not convex"
    shown = {
        "problem": f"{model.loss!r} over {model.constraint}",
        "solver": result.solver,
        "status": f"{result.status.name}: {result.status}",
        "objective": f"{result.objective:.10g}",
        "gap": f"{result.gap:.3g} ({bound})",
        **rows,
    }
    show(args, shown | {key: data[key] for key in ("out", "plot") if data[key]}, data)
