"""The dataset class of the benchmark; each file in datasets/ only gives it a name."""

from __future__ import annotations

from benchopt import BaseDataset

from benchmark_utils.tasks import TASKS


class TaskDataset(BaseDataset):
    """One line of Table 2."""

    def get_data(self):
        """Return the problem, or the sentence that says which file is missing."""
        task = TASKS[self.name]
        try:
            return {"problem": task.problem(), "epochs": task.epochs}
        except FileNotFoundError as error:
            return {"problem": None, "epochs": task.epochs, "missing": str(error)}
