"""California housing with scikit-learn's features."""

from benchmark_utils.dataset import TaskDataset


class Dataset(TaskDataset):
    """See ``benchmark_utils/tasks.py``."""

    name = "california-housing"
