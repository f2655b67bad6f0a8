"""Deprecated names warn at the line that uses them, still work, and are gone in the release that they name."""

import ast
import warnings
from pathlib import Path

import pytest

import condgrad
from condgrad.linalg.deprecation import deprecated, renamed_keyword

PACKAGE = Path(condgrad.__file__).parent


@deprecated("newer()", since="0.2", until="0.4")
def older(x, *, y=1):
    """Add."""
    return x + y


@renamed_keyword("n_alphas", "n_radii", since="0.2", until="0.4")
def grid(*, n_radii=100):
    return n_radii


def test_a_deprecated_function_works_and_warns_where_it_is_called():
    with pytest.warns(FutureWarning, match=r"older is deprecated since condgrad 0\.2 .* 0\.4\. Use newer\(\)") as seen:
        assert older(1, y=2) == 3
    assert seen[0].filename == __file__
    assert older.__doc__ == "Add."


def test_an_old_keyword_works_and_warns_where_it_is_given():
    with pytest.warns(FutureWarning, match="the argument n_alphas of grid is deprecated") as seen:
        assert grid(n_alphas=5) == 5
    assert seen[0].filename == __file__


def test_the_new_keyword_does_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert grid(n_radii=5) == 5 and grid() == 100


def test_both_keywords_at_once_are_refused():
    with pytest.raises(TypeError, match="give n_radii alone"):
        grid(n_radii=5, n_alphas=5)


def numbers(version):
    return [int(part) for part in version.split(".")[:2]]


def ends_of_deprecations():
    """Where the package deprecates something, and the release in which it shall be gone."""
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            name = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else None
            if name in ("deprecated", "renamed_keyword"):
                until = {k.arg: k.value for k in node.keywords}["until"]
                yield f"{path.name}, line {node.lineno}", ast.literal_eval(until)


def test_what_was_to_be_removed_by_now_is_removed():
    now = numbers(condgrad.__version__)
    assert not [place for place, until in ends_of_deprecations() if numbers(until) <= now]
