"""The demonstration runs from any folder, says what it should, and leaves its picture there."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numba
import pytest

pytest.importorskip("matplotlib")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(numba.config.DISABLE_JIT, reason="the demonstration takes minutes when interpreted"),
]

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="module")
def output(folder):
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-W", "error", str(ROOT / "examples" / "demo.py")]
    run = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return run


def test_shows_progress(output):
    assert "gap" in output.stderr and "nonzero" in output.stderr


def test_prints_the_certificate_and_the_model(output):
    assert "The Frank-Wolfe gap fell below tol." in output.stdout
    assert "objective    0.06708761" in output.stdout
    assert "worst radius" in output.stdout
    assert "11 of 30 measurements are selected" in output.stdout


def test_shows_the_path_cross_validation_and_a_race(output):
    assert re.search(r"25 budgets from 0\.1 to 30, each certified to \de-\d\d", output.stdout)
    assert re.search(r"125 certified fits in .* takes the radius 9\.1: 10 measurements, 97\.2% right", output.stdout)
    gaps = re.findall(r"^   (\w+) +gap (\S+) after", output.stdout, flags=re.MULTILINE)
    assert [name for name, gap in gaps if float(gap) <= 1e-10] == ["away", "pairwise", "bpcg", "corrective"]


def test_writes_its_picture(output, folder):
    assert (folder / "condgrad-demo.png").read_bytes().startswith(b"\x89PNG")
    assert [path.name for path in folder.iterdir()] == ["condgrad-demo.png"]
