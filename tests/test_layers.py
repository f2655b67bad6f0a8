"""Imports only point down the layers of the architecture, and optional packages stay optional."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "condgrad"

# Name of a module or folder of condgrad -> layer. A new one is added here, at the lowest layer that can hold it.
LAYERS = {
    "compiled": 0,
    "elementary": 1,
    "names": 1,
    "ids": 1,
    "rounding": 1,
    "linalg": 1,
    "losses": 2,
    "constraints": 2,
    "samples": 3,
    "sampling": 3,
    "completion": 3,
    "finite_sum": 3,
    "active_atoms": 3,
    "evaluation": 3,
    "face": 3,
    "point": 3,
    "vector_problem": 3,
    "prediction_point": 3,
    "problem": 3,
    "segment": 3,
    "active_set": 3,
    "curvature": 3,
    "taylor_model": 3,
    "taylor_points": 3,
    "terms": 3,
    "general_point": 3,
    "general_problem": 3,
    "softmax_problem": 3,
    "rules": 3,
    "coordinates": 3,
    "sample_sizes": 3,
    "solvers": 4,
    "step_sizes": 4,
    "minimize": 5,
    "choice": 5,
    "result": 5,
    "trace": 5,
    "interrupts": 5,
    "progress": 5,
    "sealed_file": 1,
    "checkpoint": 5,
    "model": 6,
    "completion_model": 6,
    "model_file": 6,
    "multi_model": 6,
    "theory": 5,
    "paths": 5,
    "estimators": 6,
    "dask": 6,
    "cli": 6,
    "warmup": 6,
    "plotting": 6,
    "testing": 6,
    "datasets": 6,
}
STRANGERS = {("losses", "constraints"), ("constraints", "losses")}  # same layer, and know nothing of each other
SHARED_BY_SOLVERS = {
    "_columns",
    "_parts",
    "_protocol",
    "_stochastic",
    "_table",
}  # the only files of solvers/ that a solver may import
OPTIONAL = {"cupy", "torch", "dask", "matplotlib", "rich", "pandas", "polars", "pyarrow", "pooch"}
SERVES = {"dask": {"dask"}, "plotting": {"matplotlib"}, "progress": {"rich"}}  # module -> what it may import

FILES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


def absolute_imports(node, parts):
    """Dotted names that an import statement of the module `parts` brings in, relative ones resolved."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    base = ["condgrad", *parts[: len(parts) - node.level]] if node.level else []
    base += node.module.split(".") if node.module else []
    return [".".join([*base, alias.name]) for alias in node.names]


def is_deferred(node):
    """Tell whether the body of a statement is skipped when its module is imported."""
    is_typing = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
    return is_typing or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)


def statements(tree, *, at_import_time=False):
    """Import statements of a module; with `at_import_time` only those that run when it is imported."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif not (at_import_time and is_deferred(node)):
            yield from statements(node, at_import_time=at_import_time)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_down(path):
    # ("solvers", "pairwise") for solvers/pairwise.py, ("solvers", "__init__") for the folder itself.
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    name, stem = parts[0], parts[-1]
    assert name in LAYERS, f"condgrad/{name} has no layer: add it to LAYERS at the top of {Path(__file__).name}."
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in statements(tree):
        for target in absolute_imports(node, parts):
            top, *rest = target.split(".")
            if top != "condgrad":
                continue
            where = f"{path.relative_to(PACKAGE.parent)}, line {node.lineno}: "
            other = rest[0] if rest else ""
            if other not in LAYERS:  # `import condgrad`, or a name of its __init__: everything at once
                assert LAYERS[name] == 6, where + f"import the module that defines what you need, not {target}."
                continue
            assert LAYERS[other] <= LAYERS[name], where + f"{name} (layer {LAYERS[name]}) imports {target}, above it."
            assert (name, other) not in STRANGERS, where + f"{name} must know nothing of {other}."
            if name == other == "solvers" and stem not in SHARED_BY_SOLVERS | {"__init__"}:
                assert rest[1] in SHARED_BY_SOLVERS, where + f"a solver imports another ({target}): move it down."
    for node in statements(tree, at_import_time=True):
        packages = {target.split(".")[0] for target in absolute_imports(node, parts)}
        extra = packages & OPTIONAL - SERVES.get(name, set())
        assert not extra, f"{path.name}, line {node.lineno}: import {extra} inside the function that needs it."
