"""Lists of the solvers, losses and sets: names, classes, parameters, and the first sentence of each docstring."""

from __future__ import annotations

import argparse
import importlib
import inspect
import shutil
import textwrap

from condgrad.cli._options import FILLED_IN
from condgrad.cli._outputs import show


class Listing:
    """A command that lists a registry; it has the attributes that the modules of other commands have."""

    def __init__(self, name: str, words: str, option: str, module: str, example: str) -> None:
        self.__name__, self.module = name, module
        self.__doc__ = (
            f"List the {words}.\n\n"
            f"Names for {option}, what each is and the parameters that it takes, as in {option} NAME:KEY=VALUE,...\n"
        )
        self.EPILOG = f"examples:\n  condgrad {name}\n  condgrad {name} {example}\n"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Add the options of a listing."""
        parser.add_argument("name", nargs="?", metavar="NAME", help="show the full description of this one")
        parser.add_argument("--names", action="store_true", help="print the names only, one per line")
        parser.add_argument("--json", action="store_true", help="print the table as JSON")

    def run(self, args: argparse.Namespace) -> int:
        """Print the table of registered classes, or the docstring of one."""
        module = importlib.import_module(self.module)
        if args.name is not None:
            module.by_name(args.name)  # raises for an unknown name
        return _print(args, module.REGISTERED)


SOLVERS = Listing("solvers", "solvers", "--solver", "condgrad.solvers", "sfw")
LOSSES = Listing("losses", "losses", "--loss", "condgrad.losses", "huber")
SETS = Listing("sets", "constraint sets", "--set", "condgrad.constraints", "lp")


def _print(args: argparse.Namespace, registered: dict[str, type]) -> int:
    if args.name is not None:
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
