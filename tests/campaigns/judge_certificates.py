"""Thousands of random problems whose certificates are judged in extended precision; a false one ends with exit code 1.

python tests/campaigns/judge_certificates.py --problems 2000
"""

from __future__ import annotations

import argparse
import collections
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

from certificates import HAS_LONG, judge


def main() -> int:
    """Judge as many problems as asked for; return how the process should exit."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0, help="the seed of the first problem (default: 0)")
    args = parser.parse_args()
    if not HAS_LONG:
        print("np.longdouble has no more digits than a float on this machine: there is nothing to judge by.")
        return 0
    statuses: collections.Counter[str] = collections.Counter()
    n_false, began = 0, time.perf_counter()
    for k in range(args.problems):
        drawn, result, wrong = judge(args.first + k)
        statuses[result.status.name] += 1
        for sentence in wrong:
            print(f"seed {args.first + k} ({drawn.description}; {result.status.name}): {sentence}")
        n_false += bool(wrong)
        if (k + 1) % 100 == 0:
            print(f"{k + 1} problems, {n_false} false, {time.perf_counter() - began:.0f} s", flush=True)
    print(", ".join(f"{count} {name}" for name, count in statuses.most_common()))
    print(f"{args.problems - n_false} passed, {n_false} failed")
    return 1 if n_false else 0


if __name__ == "__main__":
    sys.exit(main())
