"""The code of the documentation runs as it stands there."""

import ast
import contextlib
import doctest
import importlib
import io
import re
import runpy
from pathlib import Path

import numba
import pytest
from test_layers import HEIGHT, SHARED_BY_SOLVERS

import condgrad as cg
from condgrad import constraints

compiled_only = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="the examples take minutes when interpreted")

ROOT = Path(__file__).parents[2]
PAGES = [f"docs/extend/{name}.md" for name in ("loss", "constraint_set", "problem", "solver", "terms")]
PAGES += [
    f"docs/{name}.md"
    for name in (
        "index", "quickstart", "certificate", "plots", "sets", "which_solver", "step_sizes", "debugging", "estimators",
        "paths", "completion", "coming_from", "wishes", "data_on_disk", "cli", "versions",
    )
]  # fmt: skip
SCRIPTS = "docs/estimator_scripts.md"  # one for each estimator


def blocks(page, language):
    """The blocks of code of a page, in order."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)


def run_page(page, folder):
    """Run the Python of a page as a script and return what it prints.

    Its module has a name of its own, not __main__: the kernels of its classes can then be found again in the cache.
    """
    script = folder / "page.py"
    script.write_text("\n".join(blocks(page, "python")), encoding="utf-8")
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        runpy.run_path(str(script), run_name=f"page_{Path(page).stem}")
    return printed.getvalue()


def steady(text):
    """A printed text with the numbers masked that change from one machine to the next."""
    text = re.sub(r"gap=[\d.e+-]+", "gap=...", text)
    text = re.sub(r"\d+ steps, [\d.e+-]+ s", "... steps, ... s", text)
    return re.sub(r"\d+(\.\d+)?e-\d+", "...", text).split()


@pytest.mark.slow
@compiled_only
@pytest.mark.parametrize("page", PAGES)
def test_page_runs(page, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib").use("agg")
    monkeypatch.chdir(tmp_path)
    assert blocks(page, "python")
    run_page(page, tmp_path)


@pytest.mark.slow
@compiled_only
def test_readme_shows_its_real_output(tmp_path):
    printed = run_page("README.md", tmp_path)
    shown = blocks("README.md", "text")[0]
    assert steady(printed)[: len(steady(shown))] == steady(shown)


@pytest.mark.slow
@compiled_only
@pytest.mark.parametrize("script", blocks(SCRIPTS, "pycon"), ids=lambda script: re.findall(r"cg\.(\w+)\(", script)[0])
def test_the_script_of_an_estimator_works_as_printed(script):
    test = doctest.DocTestParser().get_doctest(script, {}, SCRIPTS, SCRIPTS, 0)
    said = io.StringIO()
    failed, tried = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test, out=said.write)
    assert tried > 3 and not failed, said.getvalue()


def test_every_estimator_has_a_script():
    shown = {re.findall(r"cg\.(\w+)\(", script)[0] for script in blocks(SCRIPTS, "pycon")}
    assert shown == {name for name in cg.estimators.__all__ if name.startswith(("Constrained", "MatrixCompletion"))}


@pytest.mark.parametrize("page", ["README.md", *(str(p.relative_to(ROOT)) for p in (ROOT / "docs").rglob("*.md"))])
def test_links_lead_somewhere(page):
    path = ROOT / page
    if "_build" in path.parts or "generated" in path.parts:
        pytest.skip("generated")
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", path.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (path.parent / target).exists(), f"{page} links to {target}, which does not exist."


@pytest.mark.parametrize("family", ["losses", "constraints", "solvers"])
def test_every_file_of_a_family_is_exported(family):
    module = importlib.import_module(f"condgrad.{family}")
    exported = {
        getattr(module, name).__module__ for name in module.__all__ if hasattr(getattr(module, name), "__module__")
    }
    shared = SHARED_BY_SOLVERS | {"auto"} if family == "solvers" else set()
    for path in (ROOT / "condgrad" / family).rglob("[!_]*.py"):
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        is_shared = path.stem in shared or path.parent.stem in shared
        assert module in exported or is_shared, f"{family}/__init__.py does not export {path.name}."


@pytest.mark.parametrize("family", ["loss", "constraint_set", "solver"])
def test_pages_name_files_that_exist(family):
    """The models to start from, the tables to add to: what "To contribute it" sends a newcomer to."""
    text = (ROOT / "docs" / "extend" / f"{family}.md").read_text(encoding="utf-8").split("## To contribute it")[1]
    folder = {"loss": "losses", "constraint_set": "constraints", "solver": "solvers"}[family]
    named = [
        name
        for name in re.findall(r"`([\w/]+\.py)`", text)
        if not name.endswith(("log_cosh.py", "budget.py", "heavy_ball.py"))
    ]
    assert named
    for name in named:
        assert any(path.exists() for path in (ROOT / name, ROOT / "condgrad" / folder / name)), f"there is no {name}."


def test_the_architecture_names_every_folder_from_the_ground_up():
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    house = blocks("docs/architecture.md", "text")[0]
    shown_at = {}
    for path in (ROOT / "condgrad").iterdir():
        is_module = path.suffix == ".py" or (path / "__init__.py").exists()  # not what an older version has left
        if not is_module:
            continue
        shown = path.name if path.suffix else f"{path.name}/"
        assert f"  {shown} " in house, f"docs/architecture.md does not say what {shown} is for."
        shown_at[path.stem] = house.index(f"\n  {shown} ")
    del shown_at["__init__"]
    heights = [HEIGHT[name] for name in sorted(shown_at, key=shown_at.get)]
    assert heights == sorted(heights), "docs/architecture.md shows the folders in another order than test_layers.py."
    for shown in re.findall(r"^  ([a-z_]+(?:\.py|/)) ", house, flags=re.MULTILINE):
        assert (ROOT / "condgrad" / shown).exists(), f"docs/architecture.md names {shown}, which does not exist."
    for name in re.findall(r"`(?:condgrad/)?(?:[a-z_]+/)*[a-z_]+\.py`", text):
        path = name.strip("`")
        places = (ROOT / path, ROOT / "condgrad" / path)
        assert any(place.exists() for place in places) or path == "utils.py", f"architecture.md names {path}."


def test_the_walks_of_the_architecture_name_what_is_there():
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    walks = text.split("## Seven fits, from the call to the result")[1].split("\n## ")[0]
    lines = re.findall(r"^([a-z_/]+\.py) +((?:[A-Za-z_.]+, )*[A-Za-z_.]+)", walks, flags=re.MULTILINE)
    assert len(lines) > 50
    for file, names in lines:
        tree = ast.parse((ROOT / "condgrad" / file).read_text(encoding="utf-8"))
        known = {node.name for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)}
        known |= {
            f"{node.name}.{own.name}"
            for node in tree.body if isinstance(node, ast.ClassDef)
            for own in node.body if isinstance(own, ast.FunctionDef)
        }  # fmt: skip
        for name in names.split(", "):
            assert name in known, f"docs/architecture.md names {name} in {file}, which is not there."


def test_the_page_of_sets_names_every_set():
    text = (ROOT / "docs/sets.md").read_text(encoding="utf-8")
    missing = [kind.__name__ for kind in constraints.REGISTERED.values() if f"`{kind.__name__}(" not in text]
    assert not missing
