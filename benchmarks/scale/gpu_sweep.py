"""How the kernel over dense rows should wait for X: settings side by side, with a copy kernel in the same run.

    python benchmarks/scale/gpu_sweep.py [--quick] [--json FILE]

It needs CuPy and an NVIDIA GPU, and 25 GB of its memory (--quick: 3 GB). Every setting makes the same sums; a setting
whose sums differ from those of the first one is reported as wrong.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np

import condgrad as cg
from condgrad.linalg.device.arrays import device_by_name
from condgrad.linalg.device.dense import DenseOnDevice
from condgrad.problems.rows.device_samples import DeviceSamples

sys.path.insert(0, str(Path(__file__).parents[1]))
from results import Report, add_option

REGISTERS = {2: 48, 4: 96, 8: 192}  # by the number of rows of a group, for 300 features in float32


class Setting(NamedTuple):
    """How rows wait: groups in shared memory, whether entries are kept, threads, rows of a group, least blocks."""

    slots: int
    is_kept: bool
    n_threads: int
    group: int
    blocks: int = 1

    def __str__(self):
        how = "kept" if self.is_kept else "read twice"
        return f"slots {self.slots}, {how}, {self.n_threads} threads, groups of {self.group}, {self.blocks} blocks"

    def kernel_class(self):
        """Return the class of rows with this setting."""
        slots, is_kept, n_threads, group, blocks = self
        fields = {"_SLOTS": slots, "_IS_KEPT": is_kept, "_THREADS": n_threads, "_REGISTERS": REGISTERS[group]}
        return type("Measured", (DenseOnDevice,), {**fields, "_BLOCKS": blocks})


DEFAULT = Setting(0, True, 64, 4)


def settings():
    """Yield all settings, the default first."""
    yield DEFAULT
    for blocks in (6, 7, 8):
        yield DEFAULT._replace(blocks=blocks)
    yield from (Setting(0, True, 64, 2), Setting(0, True, 128, 4), Setting(0, True, 128, 2), Setting(0, True, 64, 2, 9))
    for slots, n_threads, group in itertools.product((2, 3), (64, 128), (2, 4)):
        yield Setting(slots, True, n_threads, group)
    yield from (Setting(slots, True, 64, 4, blocks) for slots in (2, 3) for blocks in (7, 8))
    for slots, n_threads, group in itertools.product((2, 3), (32, 64, 128), (2, 4, 8)):
        yield Setting(slots, False, n_threads, group)


def kernel_seconds(cp, run, repeats=8):
    """Return the least time between two events around a run."""
    run()
    times = []
    for _ in range(repeats):
        begin, end = cp.cuda.Event(), cp.cuda.Event()
        begin.record()
        run()
        end.record()
        end.synchronize()
        times.append(cp.cuda.get_elapsed_time(begin, end) / 1e3)
    return min(times)


def copy_bandwidth(cp, size):
    """Return the bytes per second that a copy reads and writes."""
    a = cp.zeros(size, dtype=cp.float32)
    b = cp.empty_like(a)
    return 2 * a.nbytes / kernel_seconds(cp, lambda: cp.copyto(b, a))


def data(cp, n, d, kind):
    """Return random rows, stored as float32, float64 or bfloat16."""
    random = cp.random.default_rng(0)
    X = cp.empty((n, d), dtype={"float32": np.float32, "float64": np.float64, "bfloat16": np.uint16}[kind])
    for top in range(0, n, 2**19):
        part = random.standard_normal(X[top : top + 2**19].shape, dtype=cp.float32)
        X[top : top + 2**19] = (part.view(cp.uint32) >> 16).astype(cp.uint16) if kind == "bfloat16" else part
    return X, cp.where(random.random(n) < 0.5, 1.0, -1.0)


def rows_of(report, cp, device, bandwidth, shape, kind, chosen):
    """Measure settings on one kind of data, and return them, the fastest first."""
    n, d = shape
    X, y = data(cp, n, d, kind)
    losses = DeviceSamples.of(device, cg.losses.Logistic(), y, None).losses
    w, known = np.random.default_rng(0).standard_normal(d) / d, None
    lines, measured = [], []
    for setting in chosen:
        matrix, n_threads = setting.kernel_class()(device, X), setting.n_threads
        kernel = matrix._kernel("EXPAND", losses)
        name = f"{setting} (groups here: {matrix._group})"
        try:
            seconds = kernel_seconds(cp, lambda: matrix.expand(w, 0.0, None, losses))  # noqa: B023
            found = matrix.expand(w, 0.0, None, losses)
            made = device._kernel(kernel.text, kernel.name, kernel.shared_bytes)
            blocks = device.n_blocks(kernel.text, kernel.name, n_threads, kernel.shared_bytes) // device.n_processors
        except Exception as error:  # too much shared memory, most likely
            print(f"  {name}: {type(error).__name__} {str(error).splitlines()[0]}", flush=True)
            continue
        known = found if known is None else known
        error = max(np.abs(found.r - known.r).max(), np.abs(found.sums - known.sums).max())
        share = X.nbytes / seconds / bandwidth
        measured.append((seconds, setting))
        lines.append([name, 1e3 * seconds, X.nbytes / seconds / 1e12, share, made.num_regs, made.local_size_bytes,
                      blocks * n_threads // 32, "wrong" if error > 1e-12 else ""])  # fmt: skip
        print(
            f"  {name}: {1e3 * seconds:.3f} ms, {share:.1%} of the copy, {made.num_regs} registers,"
            f" {made.local_size_bytes} B spilled, {blocks * n_threads // 32} warps, error {error:.1e}",
            flush=True,
        )
    lines.sort(key=lambda line: line[1])
    columns = ["setting", "ms", "TB/s", "share of the copy", "registers", "bytes spilled", "warps", ""]
    report.table(f"{n:,} x {d} {kind}", columns, lines, "A look: margins, losses and gradient, and their sums.")
    return [setting for _, setting in sorted(measured)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the size")
    add_option(parser)
    options = parser.parse_args()
    try:
        import cupy as cp
    except ImportError:
        sys.exit("gpu_sweep.py needs CuPy and an NVIDIA GPU; nothing was measured.")
    device = device_by_name("cuda")
    report = Report(__file__, f"Settings of the kernel over dense rows on one {device.name}.", ["cupy"])
    bandwidth = copy_bandwidth(cp, 2**28 if options.quick else 2**31)
    print(f"{device.name}: a copy reads and writes {bandwidth / 1e12:.2f} TB/s", flush=True)
    scale = 10 if options.quick else 1
    chosen = list(settings())
    for n, d, kind in (
        (10_000_000, 300, "float32"),
        (30_000_000, 100, "float32"),
        (6_000_000, 512, "float32"),
        (3_000_000, 1000, "float32"),
        (5_000_000, 300, "float64"),
        (20_000_000, 300, "bfloat16"),
    ):
        cp.get_default_memory_pool().free_all_blocks()
        print(f"{n // scale:,} x {d} {kind}", flush=True)
        chosen = rows_of(report, cp, device, bandwidth, (n // scale, d), kind, chosen)[:8]
        chosen = [DEFAULT, *(setting for setting in chosen if setting != DEFAULT)]
        report.write(options.json)


if __name__ == "__main__":
    main()
