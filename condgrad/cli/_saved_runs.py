"""Runs with a checkpoint beside their output, from which they can be resumed."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from condgrad.cli._outputs import note

if TYPE_CHECKING:
    from condgrad.run.checkpoint import Checkpoint
    from condgrad.run.result import Status


def add_options(output: argparse._ArgumentGroup) -> None:
    """Add the options to a group."""
    output.add_argument("--checkpoint", metavar="FILE", help="where the run is saved (default: OUT.checkpoint)")
    output.add_argument("--checkpoint-every", type=float, default=30.0, metavar="S", help="seconds between two saves "
                        "(default: 30)")  # fmt: skip
    output.add_argument("--resume", action="store_true", help="continue from the checkpoint if there is one")


class SavedRun:
    """The checkpoint file of a run, if any; options that would overwrite a saved run raise an error."""

    def __init__(self, args: argparse.Namespace) -> None:
        name = args.checkpoint or (None if args.out is None else f"{args.out}.checkpoint")
        self.args = args
        self.path = None if name is None else Path(name)
        if self.path is None and args.resume:
            raise ValueError("--resume needs --out or --checkpoint: the run was saved beside its output.")
        if self.path is not None and self.path.exists() and not args.resume and not args.force:
            raise ValueError(f"{name!r} holds an unfinished run; use --resume to continue, or --force to start again.")
        self.is_resumed = args.resume and self.path is not None and self.path.exists()

    def begin(self) -> Checkpoint | None:
        """Return the Checkpoint for the run, or None; without --resume an old one is deleted."""
        if self.args.resume:
            note(self.args, f"continuing from {self.path}." if self.is_resumed else "there is no checkpoint: starting "
                 "a new run.")  # fmt: skip
        if self.path is None:
            return None
        from condgrad.run.checkpoint import Checkpoint

        if not self.args.resume:
            self.path.unlink(missing_ok=True)
        return Checkpoint(self.path, every=self.args.checkpoint_every)

    def end(self, status: Status) -> None:
        """Delete the checkpoint of a run that has converged."""
        if self.path is not None and status.name == "CONVERGED":
            self.path.unlink(missing_ok=True)
