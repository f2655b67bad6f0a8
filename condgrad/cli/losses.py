"""List the losses.

Names for --loss, what each is and the parameters that it takes, as in --loss NAME:KEY=VALUE,...
"""

from __future__ import annotations

import argparse

from condgrad.cli._listing import add_options, list_classes

__all__ = ["EPILOG", "add_options", "run"]

EPILOG = """\
examples:
  condgrad losses
  condgrad losses huber
"""


def run(args: argparse.Namespace) -> int:
    """Print the table."""
    from condgrad import losses

    return list_classes(args, losses.REGISTERED, losses.by_name)
