"""Thousands of files as strangers could write them; a crash, a hang or a foreign error ends with exit code 1.

python tests/campaigns/mutate_files.py --mutations 2000 --only sfw "sparse rows"
"""

from __future__ import annotations

import argparse
import collections
import pathlib
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

from foreign_files import Checkpoint, attempt, kinds

SHARE = 4  # checkpoints of one solver are one in so many of the mutations: they are of one kind


def main() -> int:
    """Try as many mutations of each kind of file as asked for; return how the process should exit."""
    known = kinds()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mutations", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0, help="the seed of the first mutation (default: 0)")
    parser.add_argument("--only", nargs="+", choices=known, metavar="KIND", help=f"of {', '.join(known)}")
    args = parser.parse_args()
    n_wrong = 0
    names = args.only or list(known)
    for name in names:
        count = -(-args.mutations // (SHARE if isinstance(known[name], Checkpoint) else 1))
        began = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            seeds = range(args.first, args.first + count)
            found = attempt(pathlib.Path(folder), [f"{name}:{seed}" for seed in seeds])
        ends = collections.Counter(words.partition(":")[0] for words in found.values())
        told = ", ".join(f"{ends[end]} {end}" for end in ("used", "refused", "wrong"))
        print(f"{name}: {told}, {time.perf_counter() - began:.0f} s", flush=True)
        for task, words in found.items():
            if words.startswith("wrong"):
                print(f"  {task}: {words}", flush=True)
        n_wrong += ends["wrong"]
    print(f"{n_wrong} wrong")
    return 1 if n_wrong else 0


if __name__ == "__main__":
    sys.exit(main())
