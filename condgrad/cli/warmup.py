"""Compile the kernels of common fits for this machine in advance.

Kernels are compiled when they are first needed, and cached. A wheel contains kernels for a
common processor; this command compiles them for this machine.
"""

from __future__ import annotations

import argparse
import time

EPILOG = """\
examples:
  condgrad warmup
  condgrad warmup --only lasso-path logistic-regression
  condgrad warmup --list

exit codes: 0 done, 2 bad options, 130 interrupted
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("--only", nargs="+", metavar="NAME", help="fits to compile for (all of them otherwise)")
    parser.add_argument("--list", action="store_true", help="show the names of the fits and exit")
    parser.add_argument("--quiet", action="store_true", help="no progress on stderr")


def run(args: argparse.Namespace) -> int:
    """Run the fits, one after the other."""
    from condgrad.cli._warm_fits import common_fits
    from condgrad.linalg.names import suggestion
    from condgrad.run.progress import line_writer

    fits = common_fits()
    if args.list:
        print("\n".join(fits))
        return 0
    names = args.only or list(fits)
    for name in names:
        if name not in fits:
            raise ValueError(f"there is no fit named {name!r}; there are {', '.join(fits)}.{suggestion(name, fits)}")
    if args.quiet:
        for name in names:
            fits[name]()
        return 0
    began = time.perf_counter()
    with line_writer() as (write, _):
        for k, name in enumerate(names):
            write(f"{name}  ({k + 1} of {len(names)}, {time.perf_counter() - began:.0f} s)")
            fits[name]()
    fits_made = "1 fit" if len(names) == 1 else f"{len(names)} fits"
    print(f"The kernels of {fits_made} are compiled ({time.perf_counter() - began:.0f} s).")
    return 0
