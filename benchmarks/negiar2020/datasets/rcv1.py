"""RCV1, or news20 made binary and tf-idf weighted where RCV1 is not there."""

from benchmark_utils.dataset import TaskDataset


class Dataset(TaskDataset):
    """See ``benchmark_utils/tasks.py``."""

    name = "rcv1"
