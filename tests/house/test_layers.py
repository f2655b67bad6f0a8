"""Imports only point down the floors of the house, never in a circle, and optional packages stay optional."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "condgrad"

# From the ground up. A folder may import what stands before it; those on one line know nothing of each other.
FLOORS = [
    {"compiled"},
    {"linalg"},
    {"storage"},
    {"losses", "constraints"},
    {"problems"},
    {"engine"},
    {"solvers"},
    {"run"},
    {"paths"},
    {"models", "theory", "datasets"},
    {"estimators", "testing"},
    {"cli"},
]
HEIGHT = {name: k for k, names in enumerate(FLOORS) for name in names}
MOST_ENTRIES = 16
OPTIONAL = {"cupy", "torch", "dask", "matplotlib", "rich", "pandas", "polars", "pyarrow", "pooch", "zarr"}
SERVES = {"run/progress": {"rich"}}  # module -> what it may import at once

FILES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")
# What several solvers share: a solver imports these, and no other solver.
SHARED_BY_SOLVERS = {
    "base", "corrective_state", "curvature_rows", "descent", "face", "feature_model", "hull_steps", "linear_rows_model",
    "newton_rounds", "quadratic_hull", "sweeps", "taylor_model", "vertex_hull",
    "step_sizes",
    "sampling", "renewal_rules", "atom_counts",
    "_boosted", "_coins", "_columns", "_schedule", "_state", "_table", "_workspace",
}  # fmt: skip


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


def parts_of(path):
    """("solvers", "full_pass", "pairwise") for solvers/full_pass/pairwise.py, (..., "__init__") for a folder."""
    return path.relative_to(PACKAGE).with_suffix("").parts


def test_the_house_has_few_rooms():
    rooms = {path.relative_to(PACKAGE).parts[0].removesuffix(".py") for path in FILES}
    assert rooms == set(HEIGHT), "condgrad/ and the floors above must name the same folders."
    assert len(rooms) <= MOST_ENTRIES


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_down(path):
    parts = parts_of(path)
    name, stem = parts[0], parts[-1]
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in statements(tree):
        for target in absolute_imports(node, parts):
            top, *rest = target.split(".")
            if top != "condgrad" or rest == ["__version__"] or (not rest and name == "cli"):
                continue
            where = f"{path.relative_to(PACKAGE.parent)}, line {node.lineno}: "
            assert rest and rest[0] in HEIGHT, where + f"import the module that defines what you need, not {target}."
            other = rest[0]
            assert other == name or HEIGHT[other] < HEIGHT[name], where + f"{name} imports {target}, not below it."
            if name == other == "solvers" and len(parts) == 3 and stem not in SHARED_BY_SOLVERS | {"__init__"}:
                assert SHARED_BY_SOLVERS & set(rest), where + f"a solver imports another ({target}): move it down."
    for node in statements(tree, at_import_time=True):
        packages = {target.split(".")[0] for target in absolute_imports(node, parts)}
        extra = packages & OPTIONAL - SERVES.get("/".join(parts), set())
        assert not extra, f"{path.name}, line {node.lineno}: import {extra} inside the function that needs it."


def test_no_module_imports_itself_in_the_end():
    """No circle, not even one that is hidden inside functions or behind TYPE_CHECKING."""
    graph = {}
    modules = {".".join(("condgrad", *parts_of(path))).removesuffix(".__init__"): path for path in FILES}
    for module, path in modules.items():
        named = (
            target
            for node in statements(ast.parse(path.read_text(encoding="utf-8")))
            for target in absolute_imports(node, parts_of(path))
        )
        # `from condgrad.losses import Huber` is an import of condgrad.losses, and of no submodule.
        graph[module] = {found for t in named if (found := t if t in modules else t.rpartition(".")[0]) in modules}
    done, way = set(), []

    def visit(module):
        if module in way:
            pytest.fail("a circle of imports: " + " -> ".join([*way[way.index(module) :], module]))
        if module in done:
            return
        way.append(module)
        for other in sorted(graph[module] - {module}):
            visit(other)
        way.pop()
        done.add(module)

    for module in graph:
        visit(module)
