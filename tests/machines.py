"""Run the tests that compare numbers as other machines would: other vectors, BLAS kernels, threads, versions.

    python tests/machines.py                 every setting that this processor can play
    python tests/machines.py generic oldest  these
    python tests/machines.py --list          their names

Sums round differently from one setting to the next, so that a test which takes one machine's last bits for granted
fails here. Each setting has a folder in build/machines: its log, its compiled kernels, its environment where it needs
packages of its own.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import subprocess
import sys
import time
import venv
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
WORK = ROOT / "build" / "machines"
# Where results depend on sums; what is left out reads files, draws samples, or solves the same problems in other words.
TESTS = [
    *(f"tests/{folder}" for folder in ("linalg", "losses", "constraints", "problems", "engine", "solvers", "paths")),
    "tests/compiled/test_elementary.py",
    "tests/run/test_minimize.py",
    *(f"tests/estimators/test_{name}.py" for name in ("estimators", "scikit_learn", "multinomial")),
    "tests/paths/test_plotting.py",
    "condgrad",  # the numbers that docstrings print
]
_OLDEST = (
    "numpy==1.26.4",
    "scipy==1.12.0",
    "numba==0.61.2",
    "scikit-learn==1.6.1",
    "pandas<3",
    "polars<1.30",
    "pytest<9",
)
_NEWEST = ("numpy", "scipy", "numba", "scikit-learn", "pytest")
_UNRELEASED = ("--pre", "numpy", "scipy", "numba", "llvmlite", "scikit-learn")
_INDEX = "PIP_EXTRA_INDEX_URL"  # where pip finds the packages of the last night
_AVX512 = "+avx512f,+avx512cd,+avx512bw,+avx512dq,+avx512vl,+avx2,+fma,-prefer-256-bit"
_VECTORS_OF_NUMPY = """
try:
    from numpy._core import _multiarray_umath as found
except ImportError:
    from numpy.core import _multiarray_umath as found
print(*(name for name in found.__cpu_dispatch__ if found.__cpu_features__[name]))
"""


class Setting(NamedTuple):
    """What makes another machine of this one."""

    variables: dict[str, str]
    needs: str = ""  # a feature of the processor
    packages: tuple[str, ...] = ()  # in an environment of its own
    forced: tuple[str, ...] = ()  # there too, whatever versions pyproject.toml allows


SETTINGS = {
    "generic": Setting({"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}),
    "avx2": Setting({"NUMBA_CPU_NAME": "x86-64-v3", "NUMBA_CPU_FEATURES": "+avx2,+fma"}, "avx2"),
    "avx512": Setting({"NUMBA_CPU_NAME": "x86-64-v4", "NUMBA_CPU_FEATURES": _AVX512}, "avx512f"),
    "plain-numpy": Setting({"NPY_DISABLE_CPU_FEATURES": "all that it would choose"}),
    "blas-prescott": Setting({"OPENBLAS_CORETYPE": "Prescott"}, "pni"),
    "blas-haswell": Setting({"OPENBLAS_CORETYPE": "Haswell"}, "avx2"),
    "blas-zen": Setting({"OPENBLAS_CORETYPE": "Zen"}, "avx2"),
    "bounds": Setting({"NUMBA_BOUNDSCHECK": "1"}),  # an index out of bounds is an error, harmless or not
    "one-thread": Setting({"NUMBA_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}),
    "two-threads": Setting({"NUMBA_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2"}),
    "oldest": Setting({}, packages=_OLDEST),
    "newest": Setting({}, packages=_NEWEST),
    "unreleased": Setting({}, packages=_NEWEST, forced=_UNRELEASED),
}


def main() -> int:
    parser = argparse.ArgumentParser(description="Run the tests that compare numbers as other machines would.")
    parser.add_argument("names", nargs="*", metavar="SETTING", help="default: all")
    parser.add_argument("--list", action="store_true", help="print the names of the settings")
    parser.add_argument("-n", type=int, default=2, metavar="N", help="processes (default: 2)")
    args = parser.parse_args()
    if args.list:
        print(*SETTINGS, sep="\n")
        return 0
    for name in args.names:
        if name not in SETTINGS:
            parser.error(f"there is no setting {name!r}; choose from {', '.join(SETTINGS)}.")
    return 1 if sum([not run(name, args.n) for name in args.names or SETTINGS]) else 0


def run(name: str, n_processes: int) -> bool:
    """Run the tests under a setting, print one line about them, and return whether all went well."""
    setting, folder = SETTINGS[name], WORK / name
    if setting.needs and setting.needs not in processor_features():
        say(name, f"skipped: this processor lacks {setting.needs}, and code for it cannot be run without.")
        return True
    if setting.forced and not os.environ.get(_INDEX):
        say(name, f"skipped: {_INDEX} does not name an index with unreleased packages.")
        return True
    folder.mkdir(parents=True, exist_ok=True)
    python = environment(folder, setting) if setting.packages else sys.executable
    # Compiled kernels are found by the processor that they were made for, but not by versions or threads.
    variables = os.environ | setting.variables | {"NUMBA_CACHE_DIR": str(folder / "kernels"), "PYTHONPATH": str(ROOT)}
    if "NPY_DISABLE_CPU_FEATURES" in setting.variables:
        found = subprocess.run([python, "-c", _VECTORS_OF_NUMPY], capture_output=True, text=True, check=True)
        variables["NPY_DISABLE_CPU_FEATURES"] = found.stdout.strip()
    began, log, last = time.monotonic(), folder / "log.txt", ""
    command = [python, "-m", "pytest", "-n", str(n_processes), "-q", "-p", "no:cacheprovider", *TESTS]
    with (
        log.open("w") as out,
        subprocess.Popen(
            command, cwd=ROOT, env=variables, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        ) as tests,
    ):
        assert tests.stdout is not None
        for line in tests.stdout:
            out.write(line)
            out.flush()
            last = line.strip() or last
            if share := re.search(r"\[ *(\d+%)\]", line):
                say(name, f"{share[1]} of the tests, {time.monotonic() - began:.0f} s", is_final=False)
    is_good = tests.returncode == 0
    say(name, last.strip("= ") if is_good else f"FAILED: {last.strip('= ')}; see {log.relative_to(ROOT)}")
    return is_good


def processor_features() -> set[str]:
    """Return the features of the processor by their names in /proc/cpuinfo; all are unknown elsewhere."""
    info = Path("/proc/cpuinfo")
    if platform.machine() not in ("x86_64", "AMD64") or not info.exists():
        return set()
    return set(re.search(r"^flags\s*:(.*)$", info.read_text(), re.MULTILINE)[1].split())  # type: ignore[index]


def environment(folder: Path, setting: Setting) -> str:
    """Return the Python of an environment with the packages of a setting, made or brought up to date where need be."""
    place = folder / "environment"
    python, stamp = place / "bin" / "python", place / "packages.txt"
    packages = setting.packages
    wanted = "\n".join(packages + setting.forced) + "\n" + (ROOT / "pyproject.toml").read_text()
    if not stamp.exists() or stamp.read_text() != wanted:
        say(folder.name, "installing " + ", ".join(packages), is_final=False)
        venv.create(place, with_pip=True)
        pip = [str(python), "-m", "pip", "install", "-qq", "--disable-pip-version-check", "--no-input", "--upgrade"]
        subprocess.run([*pip, "-e", f"{ROOT}[dev]", *packages], check=True)
        if setting.forced:
            subprocess.run([*pip, "--no-deps", *setting.forced], check=True)
        stamp.write_text(wanted)
    return str(python)


def say(name: str, sentence: str, is_final: bool = True) -> None:
    """Print a line about a setting; one that is not final shows on terminals only, until the next."""
    if is_final or sys.stdout.isatty():
        print(f"\r\x1b[K{name:14} {sentence}" if sys.stdout.isatty() else f"{name:14} {sentence}",
              end="\n" if is_final else "", flush=True)  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
