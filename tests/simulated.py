"""A cluster that is simulated in this process: every task has a worker, and the bytes that travel are counted."""

import dataclasses
import pickle

from condgrad.storage.cluster_rows import ClusterRows
from condgrad.storage.partitions import HostPart, Partition


@dataclasses.dataclass
class Result:
    """The result of a task, and the worker that has it."""

    value: object
    worker: int

    @property
    def n_bytes(self):
        return len(pickle.dumps(self.value))


class SimulatedRows(ClusterRows):
    """Partitions of workers that run one after the other.

    A task runs at the worker that has the most bytes of its arguments; the other arguments travel there. ``received``
    are the bytes that come to each worker from others, ``sent`` those that leave it, ``up`` and ``down`` the bytes from
    workers to this process and from here to them.
    """

    def __init__(self, parts, n_workers):
        """``parts`` are (X, y), (X, y, weight) or (X, y, weight, offset) for each partition."""
        self.n_workers = n_workers
        self.forget()
        held = [Partition(HostPart(X), y, *(rest or (None,))) for X, y, *rest in parts]
        super().__init__(None, [Result(part, k % n_workers) for k, part in enumerate(held)])

    def forget(self):
        """Count from zero again."""
        self.received, self.sent, self.up, self.down, self.n_tasks = [0] * self.n_workers, [0] * self.n_workers, 0, 0, 0

    def _submit(self, task, *args):
        held = [(k, arg.n_bytes) for k, arg in enumerate(args) if isinstance(arg, Result)]
        worker = args[max(held, key=lambda pair: pair[1])[0]].worker
        for k, n_bytes in held:
            if args[k].worker != worker:
                self.received[worker] += n_bytes
                self.sent[args[k].worker] += n_bytes
        self.down += sum(len(pickle.dumps(arg)) for arg in args if not isinstance(arg, Result))
        self.n_tasks += 1
        return Result(task(*(arg.value if isinstance(arg, Result) else arg for arg in args)), worker)

    def _gather(self, futures):
        self.up += sum(each.n_bytes for each in futures)
        return [each.value for each in futures]
