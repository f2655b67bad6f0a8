"""ClusterRows: samples in partitions with the workers of a Dask cluster.

A partition is a pure function of where its rows come from: a Dask array, delayed objects, or the chunks of a folder
that every worker can read. So a partition that is lost with its worker is made again by another one. Only tasks and
sums travel: tasks go down with a sparse w, and their results come up through a tree whose shape depends on the numbers
of the partitions alone, so that the same data give the same bits whatever the workers do.
"""

from __future__ import annotations

import copy
import functools
import operator
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from condgrad.linalg.device.arrays import check_name
from condgrad.linalg.interrupts import Interrupts
from condgrad.linalg.matrix import Matrix, stacked
from condgrad.storage import partitions
from condgrad.storage.array_files import Buffer
from condgrad.storage.outside_rows import OutsideRows
from condgrad.storage.partitions import FindDevice, HostPart, Outline, Partition, find_gpu
from condgrad.storage.stored_rows import StoredRows

_RETRIES = 3  # how often a task is tried again on another worker before the pass fails
_NO_WORKERS = 60.0  # seconds without any worker after which a pass fails
_BRANCHES = 8  # results that one task adds up
_PATIENCE = 0.5  # seconds between two looks at Ctrl-C while a pass runs


class ClusterRows(OutsideRows):
    """The samples of the partitions of a Dask cluster; see :func:`condgrad.rows.from_dask`.

    Attributes
    ----------
    client : dask.distributed.Client
    partitions : list of futures
    sizes : array of int
        The number of samples of each partition.
    n_bytes : int
        The number of bytes of X.
    is_on_devices : bool
        Whether rows are on the GPUs of the workers.
    """

    def __init__(self, client: Any, futures: list[Any], feature_names: list[str] | None = None) -> None:
        self.client, self.partitions, self._names = client, futures, feature_names
        outlines = self._outlines()
        self.sizes = np.array([each.n_samples for each in outlines])
        widths = {each.n_features for each in outlines}
        if len(widths) != 1:
            raise ValueError(f"partitions must have the same features; got widths {sorted(widths)}.")
        self.firsts = np.concatenate(([0], np.cumsum(self.sizes)))
        self.shape = (int(self.firsts[-1]), widths.pop())
        self.n_bytes = sum(each.n_bytes for each in outlines)
        self.kind, self.has_targets, self.has_weights, self.has_offsets = outlines[0][4:]
        self.is_on_devices = any(each.is_on_device for each in outlines)
        self.n_chunks = len(outlines)
        self._passes: list[int] = []  # one entry for each pass, also of copies with other targets

    def _outlines(self) -> list[Outline]:
        return self._gather([self._submit(partitions.outline, part) for part in self.partitions])

    @property
    def y(self) -> np.ndarray | None:
        """The targets in float64, or None if there are none."""
        return self._of_samples[0]

    @property
    def weight(self) -> np.ndarray | None:
        """The weights of the samples as they were given, or None."""
        return self._of_samples[1]

    @property
    def offset(self) -> np.ndarray | None:
        """The offsets of the samples, or None."""
        return self._of_samples[2]

    @functools.cached_property
    def _of_samples(self) -> tuple[np.ndarray | None, ...]:
        found = self._gather([self._submit(partitions.numbers_of, part) for part in self.partitions])
        return tuple(None if each[0] is None else np.concatenate(each) for each in zip(*found, strict=True))

    @property
    def feature_names(self) -> list[str] | None:
        """The names of the features, if the source had names."""
        return self._names

    @property
    def n_reads(self) -> float:
        """How many passes over all partitions have been made."""
        return float(len(self._passes))

    def with_samples(self, y: np.ndarray | None, weight: np.ndarray | None, offset: np.ndarray | None) -> ClusterRows:
        """Return the same rows with other numbers of the samples, which go to the workers once; None leaves them."""
        new = (y, weight, offset)
        if all(values is None for values in new):
            return self
        numbers = ([None] * self.n_chunks if each is None else np.split(each, self.firsts[1:-1]) for each in new)
        parts = zip(self.partitions, *numbers, strict=True)
        other = copy.copy(self)
        other.partitions = [self._submit(partitions.with_samples, *part) for part in parts]
        has = (self.has_targets, self.has_weights, self.has_offsets)
        other.has_targets, other.has_weights, other.has_offsets = (
            old or each is not None for each, old in zip(new, has, strict=True)
        )
        of_samples = zip(new, self._of_samples, strict=True)
        vars(other)["_of_samples"] = tuple(old if each is None else each for each, old in of_samples)
        return other

    def run(self, task_at: Callable[[slice], tuple[Any, ...]]) -> list[Any]:
        """Run a task on all partitions, in one pass, and return the futures of the results, which stay where they are.

        ``task_at(place)`` returns ``(task, *args)``, and a worker runs ``task(partition, first, *args)``.
        """
        found = []
        for part, first, stop in zip(self.partitions, self.firsts[:-1].tolist(), self.firsts[1:].tolist(), strict=True):
            task, *args = task_at(slice(first, stop))
            found.append(self._submit(task, part, first, *args))
        self._passes.append(1)
        return found

    def total(self, found: list[Any]) -> Any:
        """Return the sum of results that are with the workers.

        The sums are made by the workers, of eight neighbours at a time, from left to right: the order depends on
        nothing but the number of the results.
        """
        while len(found) > 1:
            groups = [found[k : k + _BRANCHES] for k in range(0, len(found), _BRANCHES)]
            found = [self._submit(_sum, *group) if len(group) > 1 else group[0] for group in groups]
        return self._gather(found)[0]

    def add_up(self, task_at: Callable[[slice], tuple[Any, ...]]) -> Any:
        """Run a task on all partitions, in one pass, and return the sum of the results."""
        return self.total(self.run(task_at))

    def ask(self, found: list[Any], question: Callable[..., Any], *args: Any) -> Any:
        """Return the sum of ``question(result, *args)`` over results that are with the workers."""
        return self.total([self._submit(question, each, *args) for each in found])

    def ask_pairs(self, found: list[Any], question: Callable[..., Any], *args: Any) -> Any:
        """Return the sum of ``question(partition, result, *args)`` over partitions and results that belong to them."""
        pairs = zip(self.partitions, found, strict=True)
        return self.total([self._submit(question, part, each, *args) for part, each in pairs])

    @functools.cached_property
    def moments(self) -> np.ndarray:
        """Sum and sum of squares of the entries of each column of dense rows: an array of shape (2, n_features)."""
        total: np.ndarray = self.ask(self.partitions, partitions.moments)
        return total

    def shifted(self, shift: np.ndarray | None) -> ClusterRows:
        """Return the same rows with a number that is subtracted from each column; it goes to the workers once."""
        return self if shift is None else self.changed(partitions.with_shift, shift)

    def changed(self, change: Callable[..., Partition], *args: Any) -> ClusterRows:
        """Return the rows with the partitions ``change(partition, *args)``, which the workers make."""
        other = copy.copy(self)
        other.partitions = [self._submit(change, part, *args) for part in self.partitions]
        return other

    def on_devices(self, find_device: FindDevice = find_gpu) -> ClusterRows:
        """Return the rows on the GPUs of the workers, to which they are sent once; those that are there stay."""
        other = self.changed(partitions.to_device, find_device)
        other._outlines()  # a worker without a GPU, or with one that is full, is told of here
        other.is_on_devices = True
        return other

    def sample(self, share: float) -> tuple[Matrix, np.ndarray]:
        """Return this share of the rows in memory, the first ones of every partition, and their places among all."""
        counts = np.maximum(1, (share * self.sizes).astype(int))
        heads = [
            self._submit(partitions.head, part, int(count)) for part, count in zip(self.partitions, counts, strict=True)
        ]
        places = [first + np.arange(count) for first, count in zip(self.firsts[:-1], counts, strict=True)]
        return stacked([Matrix(X) for X in self._gather(heads)]), np.concatenate(places)

    def sample_with_numbers(self, share: float) -> tuple[Matrix, tuple[np.ndarray | None, ...]]:
        """Return this share of the rows in memory, as :meth:`sample` does, and their targets, weights and offsets."""
        counts = np.maximum(1, (share * self.sizes).astype(int))
        heads = [
            self._submit(partitions.head_of_all, part, int(k)) for part, k in zip(self.partitions, counts, strict=True)
        ]
        X, *numbers = zip(*self._gather(heads), strict=True)
        joined = (None if each[0] is None else np.concatenate(each) for each in numbers)
        return stacked([Matrix(each) for each in X]), tuple(joined)

    def _heads(self, task: Callable[..., Any], share: float) -> tuple[np.ndarray, list[Any]]:
        """Return how many rows of each partition are this share, and the futures of ``task(partition, count)``."""
        counts = np.maximum(1, (share * self.sizes).astype(int))
        pairs = zip(self.partitions, counts.tolist(), strict=True)
        return counts, [self._submit(task, part, count) for part, count in pairs]

    def dot_each(self, W: np.ndarray) -> np.ndarray:
        """Return X w_c for every row w_c of W: an array of shape (k, n_samples)."""
        sparse = scipy.sparse.csr_matrix(W)
        found = [self._submit(partitions.dot_each, part, sparse) for part in self.partitions]
        self._passes.append(1)
        return np.concatenate(self._gather(found), axis=1)

    def _submit(self, task: Callable[..., Any], *args: Any) -> Any:
        """Return the future of a task, which is tried again where a worker fails."""
        if self.client.status != "running":
            raise OSError(f"{_LOST}.")
        return self.client.submit(task, *args, pure=False, retries=_RETRIES)

    def _gather(self, futures: list[Any]) -> list[Any]:
        """Return the results of futures; Ctrl-C cancels them, and the loss of the cluster is one sentence."""
        from concurrent.futures import CancelledError
        from concurrent.futures import TimeoutError as TooLate

        from distributed import KilledWorker, wait

        last_seen = time.monotonic()  # when the cluster had workers
        try:
            while True:
                try:
                    wait(futures, timeout=_PATIENCE)
                    break
                except (TooLate, TimeoutError):
                    Interrupts.end_pass()
                    if self.client.status not in ("running", "connecting"):
                        raise OSError("the connection to the scheduler is closed") from None
                    last_seen = time.monotonic() if self.client.scheduler_info()["workers"] else last_seen
                    if time.monotonic() - last_seen > _NO_WORKERS:
                        raise OSError(f"the cluster has had no workers for {_NO_WORKERS:g} seconds") from None
            return list(self.client.gather(futures))
        except (CancelledError, KilledWorker, OSError) as error:  # a connection that breaks is an OSError
            raise OSError(f"{_LOST} ({type(error).__name__}: {error}).") from None
        except BaseException:
            self.client.cancel(futures)
            raise

    def definition(self) -> tuple[object, ...]:
        """Return what identifies the data: the shape, and a checksum of each partition."""
        found = self._gather([self._submit(partitions.checksum, part) for part in self.partitions])
        return (self.kind, self.shape, tuple(found))

    def __repr__(self) -> str:
        n, d = self.shape
        return f"<{n:,} x {d:,} {self.kind} rows in {self.n_chunks} partitions of a Dask cluster>"


_LOST = (
    "the Dask cluster lost partitions or its scheduler during a pass, which gives no result; start the cluster again "
    "and continue from the checkpoint"
)


def is_dask(X: object) -> bool:
    """Return whether X is a Dask array or data frame, without an import of Dask."""
    return type(X).__module__.partition(".")[0] in ("dask", "dask_expr")


def of_dask(X: Any, y: Any, weight: Any, offset: Any, client: Any) -> ClusterRows:
    """Return the partitions of a Dask array, a data frame, a list of delayed objects, or a folder of rows."""
    client = _client(client)
    if isinstance(X, StoredRows):
        return ClusterRows(client, _of_folder(client, X, (y, weight, offset)), X.feature_names)
    blocks, names = _blocks(X)
    numbers = [_aligned(values, X, len(blocks)) for values in (y, weight, offset)]
    parts = zip(*(_begun(client, part) for part in (blocks, *numbers)), strict=True)
    made = [client.submit(partitions.make_partition, *part, pure=False, retries=_RETRIES) for part in parts]
    return ClusterRows(client, made, names)


def on_devices(rows: ClusterRows, device: str) -> ClusterRows:
    """Return rows on the devices of that name of their workers."""
    check_name(device)
    return rows.on_devices()


def _begun(client: Any, blocks: list[Any]) -> list[Any]:
    """Return delayed objects as futures, and anything else as it is."""
    return list(client.compute(blocks)) if callable(getattr(blocks[0], "compute", None)) else blocks


def _client(client: Any) -> Any:
    from distributed import get_client

    if client is not None:
        return client
    try:
        return get_client()
    except ValueError:
        raise ValueError("there is no Dask cluster to work on; start one with dask.distributed.Client().") from None


def _of_folder(client: Any, stored: StoredRows, given: tuple[Any, ...]) -> list[Any]:
    """Return the chunks of a folder as futures: workers read them where they lie.

    ``given`` are targets, weights and offsets; None: those of the folder.
    """
    if not Path(stored.folder).is_dir():
        raise ValueError(f"workers read folders of chunks; convert {str(stored.folder)!r} with condgrad.rows.convert.")
    borders = np.cumsum([chunk.size for chunk in stored.manifest.chunks])[:-1]
    numbers = [
        [None] * stored.n_chunks if values is None else np.split(np.asarray(values, dtype=float), borders)
        for values in (
            own if new is None else new
            for new, own in zip(given, (stored.y, stored.weight, stored.offset), strict=True)
        )
    ]
    folder = str(Path(stored.folder).absolute())
    return [
        client.submit(_chunk_of_folder, folder, k, *own, pure=False, retries=_RETRIES)
        for k, own in enumerate(zip(*numbers, strict=True))
    ]


def _blocks(X: Any) -> tuple[list[Any], list[str] | None]:
    """Return the blocks of rows of a Dask collection as delayed objects, and the names of its columns."""
    if isinstance(X, Sequence):
        return list(X), None
    if type(X).__module__.startswith("dask.array"):
        if X.ndim != 2:
            raise ValueError(f"X must have two dimensions (samples, features); got {X.ndim}.")
        X = X.rechunk({1: -1})
        return list(X.to_delayed().ravel()), None
    if callable(getattr(X, "to_delayed", None)):
        return list(X.to_delayed()), [str(name) for name in X.columns]
    raise TypeError(f"X must be a Dask array or data frame, delayed objects, or rows on disk; got {type(X).__name__}.")


def _aligned(values: Any, X: Any, n_blocks: int) -> list[Any]:
    """Return targets, weights or offsets in the blocks of X."""
    if values is None:
        return [None] * n_blocks
    if not isinstance(X, Sequence) and not is_dask(values):
        values = np.asarray(values)
    if isinstance(values, np.ndarray):
        import dask.array

        values = dask.array.from_array(values, chunks=X.chunks[0] if hasattr(X, "chunks") else -1)
    if hasattr(values, "chunks") and hasattr(X, "chunks"):
        values = values.rechunk((X.chunks[0],))
    blocks = list(values) if isinstance(values, Sequence) else list(np.ravel(values.to_delayed()))
    if len(blocks) != n_blocks:
        raise ValueError(
            f"y, weights and offsets must have the partitions of X: {n_blocks}; got {len(blocks)}. "
            "Use rechunk or repartition."
        )
    return blocks


# The tasks of workers -------------------------------------------------------------------------------------------------


def _chunk_of_folder(folder: str, k: int, *numbers: np.ndarray | None) -> Partition:
    chunk = StoredRows.of_folder(Path(folder)).chunk(k, Buffer())
    return Partition(HostPart(chunk.matrix.chosen(slice(None)).X), *numbers)


def _sum(*results: Any) -> Any:
    return functools.reduce(operator.add, results)
