"""The command line ``condgrad``, one file per command; slow imports are inside the commands."""

from condgrad.cli.program import main

__all__ = ["main"]
