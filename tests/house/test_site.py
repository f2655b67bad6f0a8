"""The script that walks the site finds what a reader would stumble over."""

import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / ".ci" / "check_site.py"
GOOD = "<html><head><title>Good</title></head><body><h1 id='top'>Good</h1>{}</body></html>"


@pytest.fixture(scope="module")
def check_site():
    spec = importlib.util.spec_from_file_location("check_site", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ("<a href='other.html#there'>fine</a> <code>\\frac</code>", None),
        ("<a href='missing.html'>x</a>", "its link to missing.html leads nowhere"),
        ("<a href='other.html#absent'>x</a>", "its link to other.html#absent names an anchor that is not there"),
        ("<img src='no.png'>", "its link to no.png leads nowhere"),
        ("<p>so that \\frac{1}{2}</p>", "it shows LaTeX"),
        ("<script src='https://example.org/x.js'></script>", "from the network"),
    ],
)
def test_mistakes_of_a_page(check_site, tmp_path, body, sentence):
    (tmp_path / "index.html").write_text(GOOD.format(body), encoding="utf-8")
    (tmp_path / "other.html").write_text(GOOD.format("<p id='there'>x</p>"), encoding="utf-8")
    said = check_site.Site(tmp_path).mistakes("index.html")
    assert said == [] if sentence is None else len(said) == 1 and sentence in said[0]


def test_a_page_needs_a_title(check_site, tmp_path):
    (tmp_path / "index.html").write_text("<html><body>x</body></html>", encoding="utf-8")
    assert check_site.Site(tmp_path).mistakes("index.html") == ["it has no title"]


def test_wide_pages_and_cut_code_are_found(check_site, tmp_path):
    program = next(filter(None, map(check_site.shutil.which, check_site.BROWSERS)), None)
    if program is None:
        pytest.skip("no browser is installed")
    code = "<div class='highlight-python'><div class='highlight'><pre style='overflow:auto'>{}</pre></div></div>"
    pages = {"good": "<p>x</p>", "wide": "<div style='width:3000px'>x</div>", "cut": code.format("x" * 1000)}
    paths = {name: tmp_path / f"{name}.html" for name in pages}
    for name, body in pages.items():
        paths[name].write_text(GOOD.format(body), encoding="utf-8")
    said = check_site.Browser(program).too_wide(paths, "desktop")
    assert len(said) == 2
    assert said[0].startswith("wide: it is 30") and said[1].startswith("cut: this is cut on a desktop")
