"""Data for examples, tests and benchmarks: simulators with a known truth, and loaders of well-known files.

Nothing is downloaded: :func:`load` reads LIBSVM files from the folder that the environment variable CONDGRAD_DATA
names, and the simulators need no file at all.
"""

from condgrad.datasets.catalogue import load, names
from condgrad.datasets.dataset import Dataset
from condgrad.datasets.libsvm import read_libsvm
from condgrad.datasets.simulate import simulate_classification, simulate_regression, simulate_sparse

__all__ = [
    "Dataset",
    "load",
    "names",
    "read_libsvm",
    "simulate_classification",
    "simulate_regression",
    "simulate_sparse",
]
