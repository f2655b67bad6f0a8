"""Trace: the records of a run; Progress: the record that a callback receives."""

from __future__ import annotations

import importlib
from typing import Any, NamedTuple

import numpy as np

from condgrad.linalg.factored import Iterate, sizes


def count_nonzero(w: Iterate) -> int:
    """Return the number of nonzero entries; entries that are only rounding errors count as zero.

    For a matrix in factors it is the number of nonzero singular values: its rank.
    """
    found = sizes(w)
    return int(np.count_nonzero(found > 1e-13 * found.max())) if found.size else 0


class Progress(NamedTuple):
    """One record of a run; a callback receives it and may return True to stop.

    ``seconds`` counts the solver's own time, without evaluations, callbacks and compilation. ``gap`` is the exact
    Frank-Wolfe gap at ``w``, and ``rounding`` a bound of its rounding error (nan if the values do not come from a
    fresh pass). ``gap_estimate`` is the solver's own value of the gap (for a stochastic solver the smoothed stochastic
    gap, for ``randomized`` the gap over a sample of the atoms: no certificates), and ``lower_bound`` the best certified
    bound of F* so far (-inf for a non-convex loss). ``w`` is the solver's own array: copy it if you store it.
    """

    step: int
    epoch: float
    gradient_evaluations: int
    lmo_calls: int
    seconds: float
    objective: float
    gap: float
    rounding: float
    gap_estimate: float
    n_nonzero: int
    lower_bound: float
    w: Iterate


class Record(NamedTuple):
    """One line of a trace."""

    step: int
    epoch: float
    gradient_evaluations: int
    lmo_calls: int
    seconds: float
    objective: float
    gap: float
    rounding: float
    gap_estimate: float
    n_nonzero: int


class Trace:
    """The records of a run, as columns.

    Examples
    --------
    >>> trace = Trace()
    >>> len(trace), trace.columns[:3]
    (0, ('step', 'epoch', 'gradient_evaluations'))
    """

    columns = Record._fields

    def __init__(self, columns: dict[str, np.ndarray] | None = None) -> None:
        self._records: list[Record] = []
        if columns is not None:
            rows = zip(*(columns[name].tolist() for name in self.columns), strict=True)
            self._records = [Record(*row) for row in rows]

    def append(self, progress: Progress) -> None:
        """Add a record; it replaces an older record of the same step."""
        if self._records and self._records[-1][0] == progress.step:
            self._records.pop()
        self._records.append(Record._make(progress[: len(self.columns)]))  # a Progress begins with them

    @property
    def last(self) -> Record:
        """The newest record."""
        return self._records[-1]

    def __len__(self) -> int:
        return len(self._records)

    def __getitem__(self, column: str) -> np.ndarray:
        """Return a column as an array."""
        if column not in self.columns:
            raise KeyError(f"a trace has the columns {', '.join(self.columns)}; got {column!r}.")
        k = self.columns.index(column)
        return np.array([record[k] for record in self._records])

    def __getattr__(self, column: str) -> np.ndarray:
        if column in type(self).columns:
            return self[column]
        raise AttributeError(f"a trace has the columns {', '.join(self.columns)}; got {column!r}.")

    def __repr__(self) -> str:
        return f"Trace({len(self)} records of {', '.join(self.columns)})"

    def to_dict(self) -> dict[str, np.ndarray]:
        """Return the columns as a dictionary of arrays, ready for a data frame."""
        return {column: self[column] for column in self.columns}

    def to_frame(self, library: str = "pandas") -> Any:
        """Return the records as a data frame of pandas, or of polars (``library="polars"``).

        Examples
        --------
        >>> import condgrad as cg
        >>> problem = cg.Problem([[1.0], [2.0]], [1.0, 2.0], cg.losses.Squared(), cg.constraints.L1Ball(1.0))
        >>> list(cg.minimize(problem).trace.to_frame().columns[:3])
        ['step', 'epoch', 'gradient_evaluations']
        """
        if library not in ("pandas", "polars"):
            raise ValueError(f"library must be 'pandas' or 'polars'; got {library!r}.")
        return importlib.import_module(library).DataFrame(self.to_dict())
