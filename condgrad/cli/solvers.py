"""List the solvers.

Names for --solver, what each is and the parameters that it takes, as in --solver NAME:KEY=VALUE,...
"""

from __future__ import annotations

import argparse

from condgrad.cli._listing import add_options, list_classes

__all__ = ["EPILOG", "add_options", "run"]

EPILOG = """\
examples:
  condgrad solvers
  condgrad solvers sfw
"""


def run(args: argparse.Namespace) -> int:
    """Print the table."""
    from condgrad import solvers

    return list_classes(args, solvers.REGISTERED, solvers.by_name)
