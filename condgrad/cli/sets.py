"""List the constraint sets.

Names for --set, what each is and the parameters that it takes, as in --set NAME:KEY=VALUE,...
"""

from __future__ import annotations

import argparse

from condgrad.cli._listing import add_options, list_classes

__all__ = ["EPILOG", "add_options", "run"]

EPILOG = """\
examples:
  condgrad sets
  condgrad sets lp
"""


def run(args: argparse.Namespace) -> int:
    """Print the table."""
    from condgrad import constraints

    return list_classes(args, constraints.REGISTERED, constraints.by_name)
