"""What a release consists of agrees with itself: versions, workflows, recipe, and the files that users look for."""

import re
import runpy
import tomllib
from pathlib import Path

import pytest

import condgrad

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
WORKFLOWS = {
    path.stem: yaml.safe_load(path.read_text(encoding="utf-8")) for path in (ROOT / ".github/workflows").glob("*.yml")
}
CODE = {".py", ".md", ".toml", ".yml", ".yaml", ".cff", ".rst", ".txt", ".R", ".c", ".h", ".json", ""}
GENERATED = {".git", ".venv", "build", "dist", "_build", "generated", "auto_examples", "__pycache__"}


def steps():
    """The commands of all workflows, by the name of the workflow."""
    for name, workflow in WORKFLOWS.items():
        for job in workflow["jobs"].values():
            yield from ((name, step["run"]) for step in job["steps"] if "run" in step)


def test_one_version_stands_everywhere():
    release = runpy.run_path(str(ROOT / ".ci" / "check_release.py"))
    assert release["mistakes"](None) == []
    assert release["mistakes"]("v99.0")


def test_workflows_do_nothing_but_call_targets_of_make():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))
    for name, command in steps():
        words = [word for word in command.split() if "=" not in word]
        assert words[0] == "make", f"{name}.yml runs {command!r}: write a target of make."
        assert set(words[1:]) <= targets, f"{name}.yml calls {command!r}, which the Makefile does not have."


@pytest.mark.parametrize(("workflow", "job"), [("tests", "tests"), ("release", "kernels")])
def test_workflows_run_every_python_that_the_package_names(workflow, job):
    named = [line.rpartition(" ")[2] for line in PROJECT["classifiers"] if "Python :: 3." in line]
    assert WORKFLOWS[workflow]["jobs"][job]["strategy"]["matrix"]["python"] == named
    assert PROJECT["requires-python"] == f">={named[0]}"


def test_workflows_run_every_system_that_the_package_names():
    matrix = WORKFLOWS["tests"]["jobs"]["tests"]["strategy"]["matrix"]
    systems = {name.split("-")[0] for name in [*matrix["os"], *(more["os"] for more in matrix["include"])]}
    named = {line.rpartition(" ")[2] for line in PROJECT["classifiers"] if line.startswith("Operating System")}
    assert {"ubuntu": "Linux", "macos": "MacOS", "windows": "Windows"}.keys() == systems
    assert named == {"Linux", "MacOS", "Windows"}


def test_workflows_run_settings_that_exist():
    settings = runpy.run_path(str(ROOT / "tests" / "machines.py"))["SETTINGS"]
    machines = WORKFLOWS["tests"]["jobs"]["machines"]["strategy"]["matrix"]["include"]
    nightly = WORKFLOWS["nightly"]["jobs"]["unreleased"]["env"]["MACHINES"]
    assert {nightly, *(one["machine"] for one in machines)} <= set(settings)


def test_the_recipe_requires_what_the_package_requires():
    recipe = yaml.safe_load((ROOT / "recipe" / "recipe.yaml").read_text(encoding="utf-8"))
    required = {line.replace(" ", "") for line in recipe["requirements"]["run"] if not line.startswith("python ")}
    assert required == set(PROJECT["dependencies"])
    assert recipe["context"]["version"] == condgrad.__version__
    assert f">={recipe['context']['python_min']}" == PROJECT["requires-python"]


@pytest.mark.parametrize("name", ["LICENSE", "SECURITY.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "RELEASING.md"])
def test_files_that_users_look_for(name):
    assert (ROOT / name).stat().st_size > 500


def test_no_file_names_the_host_of_a_package_registry():
    hosts = re.compile(
        "|".join(rf"\b{name}\.{end}\b" for name in ("pypi", "anaconda", "pythonhosted") for end in ("org", "com"))
    )
    for path in ROOT.rglob("*"):
        if path.is_file() and path.suffix in CODE and not GENERATED & set(path.relative_to(ROOT).parts):
            found = hosts.search(path.read_text(encoding="utf-8", errors="ignore"))
            assert not found, f"{path.relative_to(ROOT)} names {found[0]}."
