"""Options that several commands share, and the losses, sets and solvers that they name."""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from condgrad.constraints import ConstraintSet
    from condgrad.losses import Loss

FORMATS = ("libsvm", "csv", "parquet", "npz")
FILLED_IN = {
    "placeholder",
    "members",
    "offsets",
    "size",
    "order",
    "n_nodes",
    "root",
}  # fields that classes compute from other fields
_SPEC = "NAME[:KEY=VALUE,...]"


def add_data(parser: argparse.ArgumentParser, *, has_weights: bool = False) -> argparse._ArgumentGroup:
    """Add the data file and how to read it, and return their group of options."""
    parser.add_argument(
        "data", metavar="DATA", help="file with the data, a folder of `condgrad convert`, or - for standard input"
    )
    group = parser.add_argument_group("data")
    group.add_argument(
        "--format", choices=FORMATS, help="format of DATA (default: by its suffix, LIBSVM text for any other suffix)"
    )
    group.add_argument("--target", metavar="COLUMN", help="name of the target column of CSV or Parquet, or its number "
                       "from 1 where columns have no names (default: the last one)")  # fmt: skip
    _add_header(group)
    group.add_argument("--n-features", type=int, metavar="N", help="number of features of LIBSVM text (default: its "
                       "largest index)")  # fmt: skip
    group.add_argument("--cache", action="store_true", help="keep a binary copy of LIBSVM text beside it, as "
                       "DATA.condgrad, and read that the next time")  # fmt: skip
    parser.set_defaults(weights=None)
    if has_weights:
        group.add_argument("--weights", metavar="COLUMN", help="column with the weights of the samples, as --target; "
                           "for .npz the name of an array")  # fmt: skip
    return group


def add_scales(group: argparse._ArgumentGroup) -> None:
    """Add the option that brings features to one scale."""
    group.add_argument("--standardize", action="store_true", help="divide features by their standard deviations for "
                       "the fit; coefficients are reported in the units of the data")  # fmt: skip


def add_entries(parser: argparse.ArgumentParser) -> None:
    """Add how to read a file with entries of a matrix."""
    group = parser.add_argument_group("data")
    add_columns(group, "default: the first three")
    _add_header(group)


def add_columns(group: argparse._ArgumentGroup, which: str) -> None:
    """Add the columns of a file with entries of a matrix."""
    group.add_argument("--columns", metavar="ROW,COLUMN,VALUE", help="names of the columns with row id, column id and "
                       f"value, or numbers from 1 where they have no names ({which})")  # fmt: skip


def _add_header(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--header", choices=("auto", "yes", "no"), default="auto", help="whether the first line of CSV "
                       "names the columns (default: auto, yes if none of its fields is a number)")  # fmt: skip


def add_problem(
    parser: argparse.ArgumentParser, *, has_radius: bool = True, loss: str = "logistic"
) -> argparse._ArgumentGroup:
    """Add loss, set and radius, and return their group of options."""
    group = parser.add_argument_group("problem")
    group.add_argument("--loss", default=loss, metavar=_SPEC, help="loss, such as huber:delta=2; "
                       f"`condgrad losses` lists them (default: {loss})")  # fmt: skip
    group.add_argument("--set", default="l1", metavar=_SPEC, help="constraint set, such as lp:p=1.5, "
                       "group:groups=@labels.txt (a file); `condgrad sets` lists them (default: l1)")  # fmt: skip
    if has_radius:
        group.add_argument("--radius", type=float, metavar="R", help="size of the set; 0 leaves the intercept alone")
    return group


def add_run(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Add solver, tolerances and limits, and return their group of options."""
    group = parser.add_argument_group("solver")
    group.add_argument("--solver", default="auto", metavar=_SPEC, help="solver, such as sfw:batch_size=32; "
                       "`condgrad solvers` lists them (default: auto)")  # fmt: skip
    group.add_argument("--tol", type=float, default=1e-6, help="stop at an exact Frank-Wolfe gap of at most this "
                       "(default: 1e-6)")  # fmt: skip
    group.add_argument("--relative-tol", type=float, default=0.0, metavar="TOL", help="or at this fraction of the "
                       "first gap (default: 0)")  # fmt: skip
    group.add_argument("--max-epochs", type=float, default=10_000, metavar="N", help="passes over the data at most "
                       "(default: 10000)")  # fmt: skip
    group.add_argument("--max-steps", type=int, metavar="N", help="steps of the solver at most")
    group.add_argument("--max-time", type=float, metavar="S", help="seconds at most")
    group.add_argument("--seed", type=int, default=0, help="seed of random numbers (default: 0)")
    return group


def add_outputs(parser: argparse.ArgumentParser, out: str | None, plot: str | None = None) -> argparse._ArgumentGroup:
    """Add the output options, and return their group; ``out`` and ``plot`` describe the contents of the files."""
    group = parser.add_argument_group("output")
    if out:
        group.add_argument("--out", metavar="FILE", help=out)
    if plot:
        group.add_argument("--plot", metavar="FILE", help=f"draw {plot} (.png, .pdf or .svg)")
    if out or plot:
        group.add_argument("--force", action="store_true", help="overwrite files that exist")
    group.add_argument("--quiet", action="store_true", help="show no progress")
    group.add_argument("--json", action="store_true", help="print the results as JSON")
    return group


def loss_of(text: str) -> Loss:
    """Return the loss that an option names."""
    from condgrad import losses

    name, parameters = _split(text, "--loss")
    kind = type(losses.by_name(name))
    _check_names(name, parameters, inspect.get_annotations(kind))
    return kind(**parameters)


def set_maker(text: str) -> tuple[Callable[[float | None], ConstraintSet], bool]:
    """Return a function that makes the set of an option for a radius, and whether the set has a radius.

    Where sets of the kind contain zero, the one of radius 0 is the box that has nothing else.
    """
    from condgrad import constraints
    from condgrad.paths.radius_search import contains_zero

    name, parameters = _split(text, "--set")
    kind = constraints.by_name(name)
    known = {key: part for key, part in inspect.signature(kind).parameters.items() if key not in FILLED_IN}
    _check_names(name, parameters, known)

    def make(radius: float | None) -> ConstraintSet:
        given = dict(parameters)
        if radius is not None:
            if "radius" not in known:
                raise ValueError(f"the set {name} has no radius; leave out --radius.")
            given["radius"] = radius
        missing = [key for key, part in known.items() if part.default is part.empty and key not in given]
        if "radius" in missing:
            raise ValueError(f"the set {name} needs a radius; use --radius R.")
        if missing:
            raise ValueError(f"the set {name} needs {' and '.join(missing)}; use --set {name}:{missing[0]}=VALUE.")
        if radius == 0.0 and contains_zero(kind(**(given | {"radius": 1.0}))):
            return constraints.by_name("box")(lower=0.0, upper=0.0)
        return kind(**given)

    return make, "radius" in known


def lacks_radius(args: argparse.Namespace) -> bool:
    """Return whether the set of the options needs a radius that they do not give."""
    from condgrad import constraints

    name, parameters = _split(args.set, "--set")
    part = inspect.signature(constraints.by_name(name)).parameters.get("radius")
    return args.radius is None and "radius" not in parameters and part is not None and part.default is part.empty


def solver_of(text: str) -> object:
    """Return the solver that an option names."""
    from condgrad import solvers

    name, parameters = _split(text, "--solver")
    if name == "auto":
        _check_names(name, parameters, {})
        return "auto"
    kind = solvers.by_name(name)
    _check_names(name, parameters, inspect.signature(kind).parameters)
    return kind(**parameters)


def _split(text: str, option: str) -> tuple[str, dict[str, object]]:
    """Return name and parameters of NAME:KEY=VALUE,KEY=VALUE."""
    name, _, rest = text.partition(":")
    parameters = {}
    for part in filter(None, rest.split(",")):
        key, equals, value = part.partition("=")
        if not equals or not key:
            raise ValueError(f"{option} must look like {_SPEC}; got {text!r}.")
        parameters[key.strip().replace("-", "_")] = _value(value.strip(), option)
    return name, parameters


def _value(text: str, option: str) -> Any:
    if text.startswith("@"):
        import numpy as np

        try:
            numbers = np.loadtxt(text[1:], delimiter="," if text.endswith(".csv") else None)
        except (OSError, ValueError) as error:
            raise ValueError(f"{option}: the file {text[1:]!r} does not hold plain numbers: {error}.") from None
        is_whole = bool((numbers == np.round(numbers)).all() and np.abs(numbers).max(initial=0.0) < 2**53)
        return numbers.astype(np.int64) if is_whole else numbers  # labels of groups are integers
    words = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def _check_names(name: str, given: dict[str, object], known: Iterable[str]) -> None:
    for key in given:
        if key not in known:
            there = f"it has {', '.join(known)}" if known else "it has none"
            raise ValueError(f"{name} has no parameter {key!r}; {there}.")
