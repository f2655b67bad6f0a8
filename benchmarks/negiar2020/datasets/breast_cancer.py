"""Breast cancer, LIBSVM's scaled data."""

from benchmark_utils.dataset import TaskDataset


class Dataset(TaskDataset):
    """See ``benchmark_utils/tasks.py``."""

    name = "breast-cancer"
