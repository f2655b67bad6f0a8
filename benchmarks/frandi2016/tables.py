"""Tables 3, 4 and 5 of Frandi et al. (2016): the whole path on Pyrim, Triazines and IMDB (for E2006).

    python benchmarks/frandi2016/tables.py                   # all data, 100 parameters, 10 runs of what is random
    python benchmarks/frandi2016/tables.py --quick           # Pyrim with products of up to 4 features, 20 parameters
    python benchmarks/frandi2016/tables.py --hours 8         # the same in that time; another call goes on
    options: --only pyrim|triazines|imdb, --grid N, --runs N, --json FILE

For each data set: the sample sizes (Table 3), then for every method time, iterations, products of columns with a
vector, and features on average along the path (Tables 4 and 5), the speed-up over CD, and what the paper printed. An
iteration of CD is a cycle over all features, one of SCD draws as many at random. "wall" is the time with the full
passes that start and certify each of the runs; the other methods certify nothing. "FW" stops to the letter of the
paper's rule, at the first sample without a descent direction (a change of 0); "to 3p" goes on until three times as many
atoms as there are have been drawn in vain, the default of `randomized`.
"""

from __future__ import annotations

import argparse
import pathlib
import sys

import numpy as np
import paths
from data import Regression, expanded, imdb

from condgrad import sample_sizes

sys.path.append(str(pathlib.Path(__file__).parents[1]))
from night import add_option

SHARES = (0.01, 0.02, 0.03)
# Time in seconds, iterations, dot products and active features as printed, for pyrim and triazines.
PAPER = {
    "pyrim": {
        "CD": (6.22, 254, 2.08e7, 68.4),
        "SCD": (15.9, 144, 2.90e7, 116.6),
        "SLEP Reg.": (5.43, 100, 8.56e7, 3349.0),
        "SLEP Const.": (6.86, 112, 1.29e8, 13030.0),
        "FW 1%": (0.228, 277, 7.61e5, 27.6),
        "FW 2%": (0.447, 280, 1.53e6, 28.1),
        "FW 3%": (0.660, 277, 2.28e6, 27.9),
    },
    "triazines": {
        "CD": (27.5, 262, 6.80e7, 150.0),
        "SCD": (84.2, 159, 1.01e8, 330.8),
        "SLEP Reg.": (42.7, 101, 2.87e8, 29104.0),
        "SLEP Const.": (59.3, 111, 4.67e8, 130303.0),
        "FW 1%": (2.61, 715, 5.18e6, 120.6),
        "FW 2%": (5.31, 729, 1.06e7, 117.5),
        "FW 3%": (8.19, 743, 1.61e7, 118.7),
    },
}


def main() -> int:
    """Measure and print."""
    sys.stdout.reconfigure(line_buffering=True)
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", choices=("pyrim", "triazines", "imdb"))
    parser.add_argument("--grid", type=int, help="parameters on the path")
    parser.add_argument("--runs", type=int, help="runs of the randomized solver, which are averaged")
    add_option(parser, pathlib.Path(__file__).parent / "outputs" / "night.json")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="with --hours: write the tables as JSON, too")
    options = parser.parse_args()
    if options.hours is not None:
        import night_table

        night_table.run(options.hours, options.found, options.json, options.grid or 100)
        return 0
    names = (options.only,) if options.only else ("pyrim",) if options.quick else ("pyrim", "triazines", "imdb")
    for name in names:
        try:
            data = read(name, options.quick)
        except FileNotFoundError as error:
            print(f"{name} is left out: {error}")
            continue
        measure(
            name, data, options.grid or (20 if options.quick else 100), options.runs or (2 if options.quick else 10)
        )
    return 0


def read(name: str, quick: bool) -> Regression:
    """Return the data; the quick ones are smaller."""
    if name == "imdb":
        return imdb(2000 if quick else None)
    degree = {"pyrim": 5, "triazines": 4}[name]
    return expanded(name, degree - 1 if quick else degree)


def measure(name: str, data: Regression, count: int, runs: int) -> None:
    """Print the tables of one data set."""
    n, p = data.X.shape
    print(f"\n{data.name}: {n} samples, {p} features, {count} parameters")
    print("sample sizes: " + ", ".join(f"{share:.0%}: {sample_sizes.resolve(share, p):,}" for share in SHARES))
    parameters, _ = paths.grids(data, count)
    print(
        f"{'':12} {'seconds':>9} {'wall':>9} {'speed-up':>8} {'iterations':>10} {'products':>9} {'active':>8}   paper's"
    )
    found = paths.baselines(data, parameters)
    for method, path in found.items():
        show(method, [path], found["CD"], name)
    for share in SHARES:
        letter = [paths.randomized(data, parameters.radii, share, seed, patience=0.0) for seed in range(runs)]
        show(f"FW {share:.0%}", letter, found["CD"], name)
    for share in SHARES:
        repeated = [paths.randomized(data, parameters.radii, share, seed) for seed in range(runs)]
        show(f"FW {share:.0%} to 3p", repeated, found["CD"], name)
    print("smallest mean squared error on the data of the models, then on the test data where there are some:")
    last = {**found, "FW 3%": letter[0], "FW 3% to 3p": repeated[0]}
    for method, path in last.items():
        line = f"{method:12} {paths.errors(path.models, data.X, data.y).min():.3e}"
        if data.X_test is not None:
            line += f" {paths.errors(path.models, data.X_test, data.y_test).min():.3e}"
        print(line)


def show(method: str, runs: list[paths.Path], reference: paths.Path, name: str) -> None:
    """Print the averages of some runs of a method."""
    seconds, wall, iterations, products, active = (
        float(np.mean([getattr(run, field) for run in runs]))
        for field in ("seconds", "wall", "iterations", "products", "active")
    )
    line = (
        f"{method:12} {seconds:9.3g} {wall:9.3g} {reference.seconds / seconds:7.1f}x {iterations:10.1f} {products:9.2e}"
    )
    printed = PAPER.get(name, {}).get(method)
    shown = "" if printed is None else f"{printed[0]:.3g} s, {printed[1]}, {printed[2]:.2e}, {printed[3]:.1f}"
    print(f"{line} {active:8.1f}   {shown}")


if __name__ == "__main__":
    sys.exit(main())
