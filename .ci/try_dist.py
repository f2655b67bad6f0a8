"""Try what a release would publish: the wheel in an environment of its own, and the tests of the sdist against it.

    python .ci/try_dist.py dist

The folder holds one wheel and one sdist of the same version. A stranger's first minute comes first, with nothing
installed but the wheel and what it requires: import, a certified fit, the types, the command line. Then the sdist is
unpacked, and some of its test files run with the installed package. Each step prints one line.
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tempfile
import zipfile
from email.parser import Parser
from pathlib import Path

from environments import clean_environment, install, outside_of_the_checkout

FIRST_FIT = """
import numpy as np, condgrad as cg
X = np.random.default_rng(0).standard_normal((200, 30))
fit = cg.ConstrainedLasso(radius=2.0).fit(X, X[:, 0] - X[:, 1])
assert 0 <= fit.gap_ < 1e-3 and abs(fit.coef_).sum() <= 2 * (1 + 1e-12), (fit.gap_, fit.coef_)
print(cg.__version__, cg.__file__)
"""
TRAIN = "\n".join(f"{2 * (k % 2) - 1} 1:{k % 7 / 7} 2:{k % 3 / 3} 4:{k % 5 / 5}" for k in range(50)) + "\n"
# Files that need neither extras nor many kernels, one or two of each layer.
TESTS = [
    "tests/house/test_import.py",
    "tests/house/test_layers.py",
    "tests/house/test_docstrings.py",
    "tests/linalg/test_deprecation.py",
    "tests/losses",
    "tests/run/test_checkpoint.py",
]


class Distribution:
    """A wheel and an sdist, and what stands in them."""

    def __init__(self, folder: Path) -> None:
        self.wheel, self.sdist = (_only(folder, pattern) for pattern in ("*.whl", "*.tar.gz"))
        with zipfile.ZipFile(self.wheel) as archive:
            self.files = archive.namelist()
            metadata = next(name for name in self.files if name.endswith(".dist-info/METADATA"))
            self.metadata = Parser().parsestr(archive.read(metadata).decode())

    @property
    def version(self) -> str:
        return self.metadata["Version"]

    def check_contents(self) -> None:
        """Raise where a file that users need is missing, or one that they do not need is there."""
        assert "condgrad/py.typed" in self.files and "condgrad/__init__.pyi" in self.files, "the types are missing."
        assert any(name.endswith("licenses/LICENSE") for name in self.files), "the licence is missing."
        strays = [
            name for name in self.files if not name.startswith(("condgrad/", f"condgrad-{self.version}.dist-info/"))
        ]
        assert not strays, f"the wheel brings files that are not the package: {strays[:5]}."
        assert self.metadata.get_payload().startswith("# condgrad"), "the description is not README.md."
        assert self.sdist.name == f"condgrad-{self.version}.tar.gz", "sdist and wheel have different versions."


def _only(folder: Path, pattern: str) -> Path:
    found = sorted(folder.glob(pattern))
    if len(found) != 1:
        raise SystemExit(
            f"{folder} holds {len(found)} files {pattern}, and not one: run `make dist`, which empties it first."
        )
    return found[0].resolve()


def run(what: str, command: list[str | Path], folder: Path, **variables: str) -> str:
    """Run a command outside of the checkout, say how it ended, and return what it printed."""
    done = subprocess.run(
        command, cwd=folder, env=outside_of_the_checkout(**variables), capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise SystemExit(f"{what}: failed.\n{done.stdout}\n{done.stderr}")
    lines = done.stdout.strip().splitlines()
    print(f"{what}: {lines[-1] if lines else 'done'}", flush=True)
    return done.stdout


def try_the_wheel(python: Path, version: str, folder: Path) -> None:
    """Do what a stranger does first."""
    printed = run("first fit", [python, "-c", FIRST_FIT], folder)
    assert printed.split()[0] == version, f"the package says {printed.split()[0]}, its metadata {version}."
    assert str(python.parents[1]) in printed, "the checkout was imported, not the installed package."
    command = python.with_name("condgrad")
    (folder / "train.svm").write_text(TRAIN)
    assert version in run("condgrad --version", [command, "--version"], folder)
    fit = [command, "fit", "train.svm", "--loss", "logistic", "--set", "l1", "--radius", "2", "--out", "model.npz"]
    run("condgrad fit", fit, folder)
    run("condgrad predict", [command, "predict", "model.npz", "train.svm"], folder)


def try_the_sources(python: Path, sdist: Path, folder: Path) -> None:
    """Run test files of the sdist with the installed package: Python's safe path leaves out the sources beside them."""
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    root = folder / sdist.name.removesuffix(".tar.gz")
    install(python, "pytest", "pytest-xdist", "hypothesis", "pandas")
    run("tests of the sdist", [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *TESTS], root)


def main(folder: str) -> None:
    distribution = Distribution(Path(folder))
    distribution.check_contents()
    size = distribution.wheel.stat().st_size / 1e6
    print(f"contents: version {distribution.version}, {len(distribution.files)} files, {size:.1f} MB", flush=True)
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        python = clean_environment(work / "venv", distribution.wheel)
        try_the_wheel(python, distribution.version, work)
        try_the_sources(python, distribution.sdist, work)


if __name__ == "__main__":
    main(sys.argv[1])
