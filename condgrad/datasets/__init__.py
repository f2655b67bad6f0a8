"""Data for examples, tests and benchmarks: simulators with a known truth, and loaders of well-known files.

:func:`load` reads LIBSVM files from the folder that the environment variable CONDGRAD_DATA names, or from a cache;
nothing is downloaded unless you ask for it. :func:`load_movielens` reads ratings from that folder, :func:`read_ratings`
from any file. The simulators need no file at all.
"""

from condgrad.datasets.catalogue import fingerprint, load, names, origin
from condgrad.datasets.dataset import Dataset
from condgrad.datasets.libsvm import read_libsvm
from condgrad.datasets.low_rank import LowRankEntries, simulate_low_rank
from condgrad.datasets.movielens import load_movielens
from condgrad.datasets.ratings import Ratings, read_ratings
from condgrad.datasets.simulate import simulate_classification, simulate_regression, simulate_sparse
from condgrad.datasets.text import simulate_text

__all__ = [
    "Dataset",
    "LowRankEntries",
    "Ratings",
    "fingerprint",
    "load",
    "load_movielens",
    "names",
    "origin",
    "read_libsvm",
    "read_ratings",
    "simulate_classification",
    "simulate_low_rank",
    "simulate_regression",
    "simulate_sparse",
    "simulate_text",
]
