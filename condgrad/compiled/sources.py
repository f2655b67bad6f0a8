"""The source files that a kernel can depend on: if they are the same, a kernel of another process can be used.

A kernel is compiled from its own text, the methods of its arguments' classes, and the objects that these texts name. A
name is defined in the module of the text, or imported there. So the files that those modules import, directly or
through others, contain everything that can reach the kernel. Two things work without an import statement: extensions of
numba, which are in this folder and in files that mention numba or ``scalar_form``, and assignments in an
``__init__.py`` to the names of its folder's modules, of which there are none (a test checks this).
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import pathlib
import re
import sys
import sysconfig
import time
from collections.abc import Iterable, Iterator

_PACKAGE = pathlib.Path(__file__).parents[1]
_OURS = __name__.partition(".")[0]
_BEGAN = time.time()
_INSTALLED = tuple({sysconfig.get_path(kind) for kind in ("stdlib", "platstdlib", "purelib", "platlib")})
_COMMENT_OR_CONTINUATION = re.compile(rb"#[^\n]*|\\\r?\n")
_IMPORT = re.compile(
    rb"(?:^|[;:])[ \t]*(?:from[ \t]+([.\w]+)[ \t]+import[ \t]*(\([^)]*\)|[^\n;]*)|import[ \t]+([^\n;]*))", re.MULTILINE
)


def is_ours(module: str) -> bool:
    """Return whether a module belongs to this package."""
    return module.partition(".")[0] == _OURS


@functools.cache
def digest(modules: frozenset[str]) -> str | None:
    """Return a hash of all sources that can reach a kernel that is compiled from ``modules``.

    None if a file of ours was edited since this process began.
    """
    files = set(_numba_extensions()).union(*(_reach(module) for module in modules))
    hashes = [_hash(file) for file in sorted(files)]
    if None in hashes:
        return None
    named = (f"{_name(file)} {found}\n" for file, found in zip(sorted(files), hashes, strict=True))
    return hashlib.sha256("".join(named).encode()).hexdigest()


@functools.cache
def _reach(module: str) -> frozenset[pathlib.Path]:
    """Return the files of ``module`` and of all modules that it imports, directly or through others."""
    seen: dict[str, pathlib.Path] = {}
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name in seen or (file := _file_of(name)) is None:
            continue
        seen[name] = file
        waiting += (other for other in _imports(name, file) if is_ours(other) or _is_watched(other, module))
    return frozenset(seen.values())


@functools.cache
def _imports(module: str, file: pathlib.Path) -> tuple[str, ...]:
    """Return the names of modules that the text of a module imports; some may be names of functions and classes."""
    text = _COMMENT_OR_CONTINUATION.sub(b" ", file.read_bytes())
    package = module if file.name == "__init__.py" else module.rpartition(".")[0]
    return tuple(dict.fromkeys(_imported(text, package)))


def _imported(text: bytes, package: str) -> Iterator[str]:
    for origin, names, plain in _IMPORT.findall(text):
        if plain:
            yield from (words[0] for part in plain.decode().split(",") if (words := part.split()))
            continue
        home = origin.decode()
        if home.startswith("."):
            try:
                home = importlib.util.resolve_name(home, package)
            except ImportError:  # words of a docstring that look like an import statement
                continue
        members = [words[0] for part in names.decode().strip("()").split(",") if (words := part.split())]
        submodules = [f"{home}.{member}" for member in members if _file_of(f"{home}.{member}") is not None]
        yield from submodules
        if len(submodules) < len(members) or not members:
            yield home


@functools.cache
def _file_of(module: str) -> pathlib.Path | None:
    """Return the source file of a module, ours or one that was imported."""
    if is_ours(module):
        stem = _PACKAGE.joinpath(*module.split(".")[1:])
        for file in (stem / "__init__.py", stem.with_suffix(".py")):
            if file.is_file():
                return file
        return None
    found = getattr(sys.modules.get(module), "__file__", None)
    return pathlib.Path(found) if found and found.endswith(".py") else None


def _is_watched(module: str, origin: str) -> bool:
    """Return whether a foreign module that ``origin`` imports may be edited like it: installed packages are not."""
    if module.partition(".")[0] == origin.partition(".")[0]:
        return True
    file = _file_of(module)
    return file is not None and not str(file).startswith(_INSTALLED)


@functools.cache
def _numba_extensions() -> tuple[pathlib.Path, ...]:
    files = _PACKAGE.rglob("*.py")
    return tuple(file for file in files if re.search(rb"^\s*(from|import) numba|scalar_form", file.read_bytes(), re.M))


@functools.cache
def _hash(file: pathlib.Path) -> str | None:
    """Return a hash of a file's content; None for a file of ours that was edited since this process began.

    This process runs the text that it imported. A kernel of it, stored under the hash of the new text, would be used by
    processes that have imported the new text.
    """
    if _PACKAGE in file.parents and file.stat().st_mtime > _BEGAN:
        return None
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _name(file: pathlib.Path) -> str:
    """Return a name of a file that does not depend on where the package is installed."""
    return file.relative_to(_PACKAGE).as_posix() if _PACKAGE in file.parents else file.name


def modules_of(classes: Iterable[type]) -> frozenset[str]:
    """Return the modules that define ``classes``."""
    return frozenset(cls.__module__ for cls in classes)
