"""`import condgrad` is light, and its public names are what `__all__` says."""

import pkgutil
import subprocess
import sys

import pytest

import condgrad

HEAVY = ["numpy", "scipy", "numba", "sklearn", "matplotlib", "rich", "pandas"]


def run_python(code):
    """Return what `code` prints in a new process."""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_import_leaves_heavy_packages_alone():
    code = f"import sys, condgrad; print(*(name for name in {HEAVY} if name in sys.modules))"
    assert run_python(code).split() == []


def test_help_of_the_command_line_leaves_them_alone_too():
    code = (
        "import sys; from condgrad.cli import main\n"
        "try: main(['fit', '--help'])\n"
        f"except SystemExit: print(*(name for name in {HEAVY} if name in sys.modules), file=sys.stderr)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "--radius" in run.stdout and run.stderr.split() == []


@pytest.mark.slow
def test_a_function_is_imported_before_the_module_of_its_name_and_after():
    assert (
        run_python("import condgrad as cg; import condgrad.run.minimize; print(callable(cg.minimize))").strip()
        == "True"
    )
    assert run_python(
        "from condgrad.run.minimize import minimize as f; import condgrad as cg; print(f is cg.minimize)"
    ) == ("True\n")


def test_public_names_are_listed_and_resolve():
    assert len(set(condgrad.__all__)) == len(condgrad.__all__)
    assert set(condgrad.__all__) <= set(dir(condgrad))
    for name in condgrad.__all__:
        assert getattr(condgrad, name) is not None


@pytest.mark.slow
def test_a_public_function_is_not_hidden_by_the_module_of_its_name():
    # Importing the submodule condgrad.run.minimize sets the attribute `minimize` of the package to the module.
    modules = [f"condgrad.{module.name}" for module in pkgutil.iter_modules(condgrad.__path__)]
    show = "print(*(name for name in condgrad.__all__ if inspect.ismodule(getattr(condgrad, name))))"
    alone = run_python(f"import condgrad, inspect; {show}")
    after = run_python(f"import condgrad, inspect, {', '.join(modules)}; {show}")
    assert after == alone


def test_an_unknown_name_is_an_attribute_error():
    assert not hasattr(condgrad, "no_such_name")
