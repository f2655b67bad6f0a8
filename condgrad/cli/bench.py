"""Run a benchmark of the checkout.

The scripts of benchmarks/ are part of the repository, not of the installed package; without a
NAME they are listed. Options after NAME are passed to the script: its --help lists them.
"""

from __future__ import annotations

import argparse
import ast
import subprocess
import sys
from pathlib import Path

EPILOG = """\
examples:
  condgrad bench
  condgrad bench peers/logistic --quick

exit codes: that of the script; 2 if there is no such script
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("name", nargs="?", metavar="NAME", help="script, such as peers/logistic")
    parser.add_argument("options", nargs=argparse.REMAINDER, metavar="...", help="options of the script")


def run(args: argparse.Namespace) -> int:
    """List the scripts, or run one."""
    import condgrad

    folder = Path(condgrad.__file__).parents[1] / "benchmarks"
    scripts = _scripts(folder)
    if not scripts:
        raise ValueError(f"there are no benchmarks in {str(folder)!r}: run this in a checkout of the repository.")
    if args.name is None:
        width = max(map(len, scripts))
        for name, path in scripts.items():
            print(f"{name:<{width}}  {_about(path)}")
        return 0
    name = args.name.removesuffix(".py").removeprefix("benchmarks/")
    if name not in scripts:
        raise ValueError(f"there is no benchmark {args.name!r}; there are {', '.join(scripts)}.")
    return subprocess.run([sys.executable, str(scripts[name]), *args.options]).returncode


def _scripts(folder: Path) -> dict[str, Path]:
    """Return the files that run as scripts, by name."""
    found = {}
    for path in sorted([*folder.glob("*.py"), *folder.glob("*/*.py")]):
        if '__name__ == "__main__"' in path.read_text(encoding="utf-8"):
            found[path.relative_to(folder).with_suffix("").as_posix()] = path
    return found


def _about(path: Path) -> str:
    return (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").split("\n", 1)[0]
