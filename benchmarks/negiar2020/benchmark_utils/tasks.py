"""The lines of Table 2: data, loss, radius, and how long the figure follows each."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Callable
from typing import Any, NamedTuple

import condgrad as cg
from condgrad import datasets


class Task(NamedTuple):
    """One panel of the figure."""

    name: str
    loss: Any
    radius: float
    epochs: int
    read: Callable[[], Any]

    def problem(self) -> cg.Problem:
        """Return the problem; FileNotFoundError says which file is missing."""
        data = self.read()
        return cg.Problem(data.X, data.y, self.loss, cg.constraints.L1Ball(self.radius))

    def title(self) -> str:
        """Return what the panel shows, stand-ins named."""
        if self.name == "rcv1":
            name = "RCV1" if rcv1_file() else "news20, binary, tf-idf (in place of RCV1)"
        else:
            name = self.name.replace("-", " ")
        return f"{name}, radius {self.radius:g}"


def rcv1_file() -> pathlib.Path | None:
    """Return the training half of RCV1 in LIBSVM format, or None where it is not there."""
    root = pathlib.Path(os.environ.get("CONDGRAD_DATA", ""))
    for suffix in (".bz2", ".xz", ".gz", ""):
        for folder in (root, root / "rcv1"):
            path = folder / f"rcv1_train.binary{suffix}"
            if path.is_file():
                return path
    return None


def read_rcv1() -> Any:
    """Return RCV1; where it is not there, news20 made binary and tf-idf weighted."""
    path = rcv1_file()
    if path is None:
        return datasets.load("news20-binary")
    X, y = datasets.read_libsvm(path, 47_236)
    return datasets.Dataset(X, y, "rcv1")


TASKS = {
    task.name: task
    for task in (
        Task("breast-cancer", cg.losses.Logistic(), 5.0, 1000, lambda: datasets.load("breast-cancer")),
        Task("rcv1", cg.losses.Logistic(), 100.0, 100, read_rcv1),
        Task("california-housing", cg.losses.Squared(), 0.1, 3000, lambda: datasets.load("california-housing")),
    )
}
