"""The command line ``condgrad``, one file per command; what is heavy is imported inside the commands."""

from condgrad.cli.program import main

__all__ = ["main"]
