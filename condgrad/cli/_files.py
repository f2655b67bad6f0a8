"""The files of a command: checked before any work, written in one step, and kept elsewhere where they must be."""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, cast

from condgrad.cli._outputs import complain
from condgrad.storage.whole_files import remedy, write_named

if TYPE_CHECKING:
    import argparse

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from condgrad.cli._saved_runs import SavedRun

_PICTURES = (".png", ".pdf", ".svg")
_OPTIONS = ("out", "plot")
_FAILED = 2  # exit code

Make = Callable[[], Iterable[bytes | memoryview]]


class Outputs:
    """The files that --out and --plot name, checked when this is made: before there is any work that could be lost.

    What cannot be written at the end is written to a new file, in the folder of the checkpoint or in the temporary
    folder of the system. ``args`` then names that file, so that the report says where the result is, and the command
    fails.
    """

    def __init__(self, args: argparse.Namespace, saved: SavedRun | None = None) -> None:
        self.args, self._checkpoint = args, None if saved is None else saved.path
        self._is_new = not (args.force or (saved is not None and saved.is_resumed))
        self._faults: list[str] = []
        files = [getattr(args, option, None) for option in _OPTIONS]
        _check_files([Path(file) for file in files if file is not None], self._is_new)
        _check_picture(getattr(args, "plot", None))

    def write(self, option: str, make: Make) -> bool:
        """Write the pieces that ``make`` returns to the file of an option, if it is given.

        Return False if they are nowhere in the end.
        """
        file = getattr(self.args, option)
        if file is None:
            return True
        try:
            write_named(Path(file), make(), is_new=self._is_new)
        except (OSError, ValueError, TypeError, MemoryError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                kept = self._keep(Path(file), make, error)
                self._faults.append(self._sentence(file, error, kept))
            else:  # what ``make`` says
                kept = None
                self._faults.append(f"{file!r} could not be made: {error}")
            setattr(self.args, option, kept)
        return getattr(self.args, option) is not None

    def end(self, code: int) -> int:
        """Say what could not be written, after the report, and return the exit code of the command."""
        for fault in self._faults:
            complain(self.args, fault)
        return _FAILED if self._faults else code

    def _keep(self, path: Path, make: Make, error: OSError) -> str | None:
        """Write the pieces to a new file that can be written, and return its name; None if there is no such file."""
        for folder in self._folders(path, error):
            name = None
            try:
                handle, name = tempfile.mkstemp(path.suffix, f"{path.stem}-", folder)
                os.close(handle)
                write_named(Path(name), make())
            except OSError:
                if name is not None:
                    Path(name).unlink(missing_ok=True)
            else:
                return name
        return None

    def _folders(self, path: Path, error: OSError) -> Iterator[Path | None]:
        if self._checkpoint is not None:
            yield self._checkpoint.parent
        if isinstance(error, FileExistsError):
            yield path.parent
        yield None  # the temporary folder of the system

    def _sentence(self, file: str, error: OSError, kept: str | None) -> str:
        if kept is None:
            resumed = " with --resume" if self._checkpoint is not None and self._checkpoint.exists() else ""
            return (
                f"{file!r} could not be written ({error.strerror}), nor could a file in another folder: "
                f"{remedy(error)}, and run the command again{resumed}."
            )
        if isinstance(error, FileExistsError):
            return (
                f"{file!r} was made by another program meanwhile, and is not overwritten without --force: "
                f"the result is in {kept!r}; move it to a name of its own."
            )
        where = f"the result is in {kept!r}; {remedy(error)}, and move it."
        return f"{file!r} could not be written ({error.strerror}): {where}"


def drawn(ax: Axes, file: str) -> list[memoryview]:
    """Return the figure of ``ax`` as the bytes of a file, and close it."""
    import matplotlib.pyplot as plt

    buffer = io.BytesIO()
    figure = cast("Figure", ax.figure)
    figure.savefig(buffer, format=Path(file).suffix[1:].lower(), dpi=150)
    plt.close(figure)
    return [buffer.getbuffer()]


def _check_files(paths: list[Path], is_new: bool) -> None:
    """Raise if a file could not be written, or exists although it must be new."""
    for k, path in enumerate(paths):
        folder = path.resolve().parent
        if str(path) == "-":
            raise ValueError("'-' stands for standard input; give the name of a file to write.")
        if path.is_dir():
            raise ValueError(f"{str(path)!r} is a folder; give the name of a file.")
        if not folder.is_dir():
            raise ValueError(f"the folder of {str(path)!r} does not exist; create it first.")
        if path.exists() and is_new:
            raise ValueError(f"{str(path)!r} exists; use --force to overwrite it.")
        if path.resolve() in [other.resolve() for other in paths[:k]]:
            raise ValueError(f"{str(path)!r} is asked for twice; use two names.")
        if path.is_file() or not path.exists():
            try:
                tempfile.TemporaryFile(dir=folder).close()
            except OSError as error:
                raise ValueError(f"{str(path)!r} cannot be written ({error.strerror}): {remedy(error)}.") from None


def _check_picture(file: str | None) -> None:
    """Raise if a picture could not be drawn."""
    if file is None:
        return
    if Path(file).suffix.lower() not in _PICTURES:
        raise ValueError(f"--plot writes {', '.join(_PICTURES)}; got {file!r}.")
    try:
        import matplotlib
    except ImportError:
        raise ImportError("--plot needs matplotlib: pip install condgrad[plot].") from None
    matplotlib.use("agg")
