"""The tables of what there is: names, classes, parameters, and the first sentence of each docstring."""

from __future__ import annotations

import argparse
import inspect
import shutil
import textwrap
from typing import Any

from condgrad.cli._options import FILLED_IN
from condgrad.cli._outputs import show


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of a listing."""
    parser.add_argument("name", nargs="?", metavar="NAME", help="tell all about this one")
    parser.add_argument("--names", action="store_true", help="print the names alone, one a line")
    parser.add_argument("--json", action="store_true", help="print the table as JSON")


def list_classes(args: argparse.Namespace, registered: dict[str, Any], by_name: Any) -> int:
    """Print the table of registered classes, or the docstring of one."""
    if args.name is not None:
        by_name(args.name)  # an unknown one gets a sentence
        print(f"{registered[args.name].__name__}\n\n{inspect.getdoc(registered[args.name])}")
        return 0
    if args.names:
        print("\n".join(registered))
        return 0
    if args.json:
        show(args, {}, {name: {"class": kind.__name__, "parameters": _parameters(kind), "about": _about(kind)}
                        for name, kind in registered.items()})  # fmt: skip
        return 0
    wide = max(map(len, registered)) + 2
    for name, kind in registered.items():
        parameters = ", ".join(f"{key}={value}" if value is not None else key
                               for key, value in _parameters(kind).items())  # fmt: skip
        text = _about(kind) + (f" Parameters: {parameters}." if parameters else "")
        print(textwrap.fill(text, max(60, shutil.get_terminal_size().columns - 1), initial_indent=f"{name:<{wide}}",
                            subsequent_indent=" " * wide, break_on_hyphens=False))  # fmt: skip
    return 0


def _about(kind: type) -> str:
    return (inspect.getdoc(kind) or "").split("\n", 1)[0]


def _parameters(kind: type) -> dict[str, str | None]:
    """Return the parameters with their defaults, as they print; None for those that must be given."""
    return {
        name: None if part.default is part.empty else repr(part.default)
        for name, part in inspect.signature(kind).parameters.items()
        if name not in FILLED_IN
    }
