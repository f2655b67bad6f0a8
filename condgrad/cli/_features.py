"""Options for single features: what they cost, their signs and their limits."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from condgrad.cli._samples import Data
    from condgrad.paths.allowed_sets import AllowedSets

_BALLS = ("l1", "nonnegative-l1")
_SPEC = "NUMBER, FEATURE=NUMBER,... or @FILE"


def add_features(group: argparse._ArgumentGroup) -> None:
    """Add the options."""
    group.add_argument("--feature-weight", metavar="SPEC", help="what a unit of each coefficient costs, as "
                       f"{_SPEC} (one number per feature): age=0,income=2. Features without names are x0, "
                       "x1, ...; others cost 1, and 0 leaves a feature free. For --set l1, as the next "
                       "three")  # fmt: skip
    group.add_argument("--positive", action="store_true", help="let no coefficient be negative (--lower age=0: some)")
    group.add_argument("--lower", metavar="SPEC", help=f"least coefficients, as {_SPEC}")
    group.add_argument("--upper", metavar="SPEC", help="largest coefficients, likewise")
    group.add_argument("--row", metavar="SENTENCE", action="append", help="a linear relation between coefficients, "
                       "such as 'young <= old' or 'sum = 0' (features without names are x0, x1, ...); may be repeated, "
                       "and cuts every set of linear rows")  # fmt: skip


def sets_of_options(args: argparse.Namespace, data: Data, make_set: Callable[[Any], Any]) -> AllowedSets | None:
    """Return the sets that the options ask for, None without them; ``make_set`` makes those of --set."""
    from condgrad.paths.allowed_sets import Columns, sets_of

    given = {"--feature-weight": args.feature_weight, "--lower": args.lower, "--upper": args.upper}
    columns = Columns(data.X.shape[1], data.feature_names)
    used = [option for option, text in given.items() if text is not None] + ["--positive"] * args.positive
    if args.standardize and (used or args.row):
        option = [*used, "--row"][0]
        raise ValueError(f"{option} counts coefficients in the units of the data; leave --standardize out.")
    if not used and args.row is not None:
        return sets_of(args.set if args.set in _BALLS else make_set, columns, None, False, None, None, args.row)
    if not used:
        return None
    if args.set not in _BALLS:
        raise ValueError(f"{used[0]} is for --set l1 or nonnegative-l1; got --set {args.set}.")
    weight, lower, upper = (_parsed(text, option) for option, text in given.items())
    return sets_of(args.set, columns, weight, args.positive, lower, upper, args.row)


def _parsed(text: str | None, option: str) -> Any:
    """Return a number, one for each feature, or a dict of them."""
    if text is None:
        return None
    if text.startswith("@"):
        import numpy as np

        try:
            return np.loadtxt(text[1:], delimiter="," if text.endswith(".csv") else None, ndmin=1)
        except (OSError, ValueError) as error:
            raise ValueError(f"{option}: the file {text[1:]!r} does not hold plain numbers: {error}.") from None
    if "=" not in text:
        return _number(text, option, text)
    by_feature: dict[str, float] = {}
    for part in text.split(","):
        name, _, value = part.rpartition("=")
        by_feature[name.strip()] = _number(value, option, text)
    return by_feature


def _number(value: str, option: str, text: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise ValueError(f"{option} must be {_SPEC}; got {text!r}.") from None
