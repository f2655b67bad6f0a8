"""Environments of their own, in which what was built is installed as a stranger would install it."""

from __future__ import annotations

import os
import subprocess
import venv
from pathlib import Path


def clean_environment(folder: Path, *packages: str | Path) -> Path:
    """Return the Python of a new environment in ``folder`` that has these packages and what they require."""
    venv.create(folder, with_pip=True)
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    install(python, *packages)
    return python


def install(python: Path, *packages: str | Path) -> None:
    """Install more packages into an environment."""
    subprocess.run([python, "-m", "pip", "install", "-qq", "--disable-pip-version-check", *packages], check=True)


def outside_of_the_checkout(**more: str) -> dict[str, str]:
    """Return the variables of a process that does not see the sources here."""
    return {**os.environ, "PYTHONPATH": "", "PYTHONSAFEPATH": "1", **more}
