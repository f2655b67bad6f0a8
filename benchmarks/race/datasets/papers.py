"""The data of the papers, and two simulated ones."""

from benchmark_utils import PROBLEMS, problem
from benchopt import BaseDataset


class Dataset(BaseDataset):
    """One problem of the race."""

    name = "papers"
    parameters = {"problem_name": list(PROBLEMS)}  # noqa: RUF012

    def get_data(self):
        """Return the problem, or the sentence that says which file is missing."""
        try:
            return {"problem": problem(self.problem_name)}
        except FileNotFoundError as error:
            return {"problem": None, "missing": str(error)}
