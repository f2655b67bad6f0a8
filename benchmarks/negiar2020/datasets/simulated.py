"""A small simulated problem, for trying the benchmark without any file."""

from benchopt import BaseDataset

import condgrad as cg
from condgrad import datasets


class Dataset(BaseDataset):
    """Sparse logistic regression."""

    name = "simulated"

    def get_data(self):
        """Return the problem."""
        data = datasets.simulate_sparse(500, 200, 10, random_state=0)
        return {"problem": cg.Problem(data.X, data.y, cg.losses.Logistic(), cg.constraints.L1Ball(10.0)), "epochs": 20}
