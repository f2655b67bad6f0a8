"""What strangers read first is true: their six scripts run, and pages name everything that is registered."""

import re
import subprocess
from pathlib import Path

import numba
import pytest

import condgrad as cg
from condgrad.cli import main

ROOT = Path(__file__).parents[2]
compiled_only = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="the scripts take minutes when interpreted")


def sections():
    """The scripts of docs/first_steps.md by reader: (language, code)."""
    text = (ROOT / "docs" / "first_steps.md").read_text(encoding="utf-8")
    for section in text.split("\n## ")[1:]:
        reader = section.splitlines()[0]
        language, code = re.search(
            r"^```(python|console)\n(.*?)^```$", section, flags=re.MULTILINE | re.DOTALL
        ).groups()
        yield pytest.param(language, code, id=reader)


@pytest.mark.slow
@compiled_only
@pytest.mark.parametrize(("language", "code"), [*sections()])
def test_first_steps(language, code, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    if language == "python":
        exec(compile(code, "first_steps.md", "exec"), {"__name__": "first_steps"})
        return
    for line in code.splitlines():
        assert line.startswith("$ ")
        command = line.removeprefix("$ ")
        if command.startswith("condgrad "):
            assert main(command.split()[1:]) in (0, None), capfd.readouterr().err
        else:
            subprocess.run(command, shell=True, check=True)
    assert (tmp_path / "predictions.csv").read_text().startswith("prediction,")


def test_six_readers_have_a_script():
    assert len(list(sections())) == 6


@pytest.mark.parametrize(
    ("page", "mark"), [("which_solver", "solvers"), ("losses", "losses"), ("benchmarks", "results")]
)
def test_pages_have_the_marks_of_what_is_made(page, mark):
    assert f"<!-- made: {mark} -->" in (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(("mark", "module"), [("solvers", "solvers"), ("losses", "losses"), ("sets", "constraints")])
def test_made_tables_name_everything(mark, module, monkeypatch):
    pytest.importorskip("sphinx.application")
    monkeypatch.syspath_prepend(ROOT / "docs")
    import generate

    made = generate.MADE[mark]()
    assert all(
        f'`"{name}"`' in made and f"`{kind.__name__}`" in made for name, kind in getattr(cg, module).REGISTERED.items()
    )
    assert len({line.count(" | ") for line in made.splitlines()}) == 1


def test_results_of_benchmarks_become_a_page(monkeypatch):
    pytest.importorskip("sphinx.application")
    monkeypatch.syspath_prepend(ROOT / "docs")
    import generate

    made = generate.results()
    assert made.count("### ") == len(list(generate.RESULTS.glob("*.json"))) >= 6
    assert "$ python benchmarks/peers/logistic.py" in made


def test_readme_is_short_and_says_how_to_install():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "pip install condgrad" in text
    assert len(text.splitlines()) <= 130


def test_most_of_thirty_wishes_are_fulfilled():
    text = (ROOT / "docs" / "wishes.md").read_text(encoding="utf-8")
    wishes = re.findall(
        r"^### (\d+)\. [^\n]*\n\n\*([a-z ]+)\.\*(.*?)(?=^##|^\(|\Z)", text, flags=re.MULTILINE | re.DOTALL
    )
    assert sorted(int(number) for number, *_ in wishes) == list(range(1, 31))
    fulfilled = [body for _, how, body in wishes if how == "fulfilled"]
    assert len(fulfilled) >= 26 and all("```" in body for body in fulfilled)
    assert all(len(body.split()) > 10 for _, how, body in wishes if how != "fulfilled")  # the reason
