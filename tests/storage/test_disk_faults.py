"""Rows on disk that come late, are damaged or are larger than the memory: the same numbers, or one sentence."""

import contextlib
import os
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest
import scipy.sparse

import condgrad as cg
from condgrad.storage import array_files
from condgrad.storage.read_ahead import N_READERS, read_ahead

N, D = 4000, 20
HAS_PROC = os.path.isdir("/proc/self/fd")


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    """Files need not survive a power cut here."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)


@pytest.fixture(scope="module")
def samples():
    """Dense rows, sparse rows, and targets of a logistic model."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, D))
    y = np.where(X @ np.r_[2.0, -1.0, 0.5, np.zeros(D - 3)] + rng.logistic(size=N) > 0.0, 1.0, -1.0)
    return {"dense": X, "sparse": scipy.sparse.csr_matrix(np.where(np.abs(X) > 0.5, X, 0.0))}, y


@pytest.fixture
def folder_of(samples, tmp_path):
    """A function that writes samples of a kind to a folder of several chunks and returns the folder."""

    def write(kind):
        cg.rows.convert((samples[0][kind], samples[1]), tmp_path / kind, chunk_bytes=2**16, shuffle=False)
        return tmp_path / kind

    return write


def logistic(rows, y=None):
    return cg.Problem(rows, y, cg.losses.Logistic(), cg.constraints.L1Ball(3.0))


def minimize(folder):
    return cg.minimize(logistic(cg.rows.open(folder)), tol=1e-7)


def fit(folder):
    return cg.ConstrainedLogisticRegression(radius=3.0).fit(cg.rows.open(folder))


@contextlib.contextmanager
def nothing_left():
    """Check that no reader and no open file stay behind."""
    before = open_files()
    yield
    assert not [thread for thread in threading.enumerate() if "condgrad-reader" in thread.name]
    assert open_files() <= before


def open_files():
    """The names of open files below the folder for temporary files."""
    if not HAS_PROC:
        return set()
    names = set()
    for handle in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # the handle of listdir itself is closed by now
            names.add(os.readlink(f"/proc/self/fd/{handle}"))
    return {name for name in names if name.endswith(".npy")}


# Disks that are slow.


@pytest.mark.parametrize("stalls", ["always", "once"])
def test_a_slow_disk_changes_no_number(folder_of, monkeypatch, stalls):
    folder = folder_of("dense")
    known = minimize(folder)
    fill, n_fills = array_files.fill, iter(range(10**6))

    def fill_late(file, into, name):
        if stalls == "always" or next(n_fills) == 7:
            time.sleep(0.005 if stalls == "always" else 0.2)
        fill(file, into, name)

    monkeypatch.setattr(array_files, "fill", fill_late)
    with nothing_left():
        late = minimize(folder)
    assert np.array_equal(late.w, known.w)
    assert (late.gap, late.objective, late.n_reads) == (known.gap, known.objective, known.n_reads)


def test_the_next_chunks_are_read_during_the_work_on_one():
    """The work on item k waits for the reads of the next ones: without reading ahead it would wait for ever."""
    done = [threading.Event() for _ in range(8)]

    def read(k, buffer, stopped):
        done[k].set()
        return k

    for k in read_ahead(range(8), read):
        for later in done[k : k + N_READERS + 1]:
            assert later.wait(60.0)


def test_at_most_as_many_chunks_are_read_ahead_as_there_are_buffers():
    begun = []

    def read(k, buffer, stopped):
        begun.append(k)
        return k

    for k in read_ahead(range(9), read):
        assert max(begun) <= k + N_READERS


def test_kernels_run_while_a_reader_waits_for_the_disk(folder_of, monkeypatch):
    """A read of chunk 2 does not end before the work on chunks 0 and 1 has ended, and the look ends all the same."""
    rows = cg.rows.open(folder_of("dense"))
    assert rows.n_chunks > 4
    problem = logistic(rows)
    w = np.full(D, 0.05)
    known = problem.look(w)
    worked, chunk_of, chunks_of = [threading.Event() for _ in range(rows.n_chunks + 1)], rows.chunk, rows.chunks

    def read(k, buffer, *settings):
        if k == 2:
            assert worked[1].wait(60.0)
        return chunk_of(k, buffer, *settings)

    def chunks(*settings, **order):
        for k, chunk in enumerate(chunks_of(*settings, **order)):
            yield chunk
            worked[k].set()

    monkeypatch.setattr(rows, "chunk", read)
    monkeypatch.setattr(rows, "chunks", chunks)
    assert np.array_equal(problem.look(w).gradient, known.gradient)


# Files that changed.


def truncate(folder, role):
    path = file_of(folder, role)
    path.write_bytes(path.read_bytes()[:-64])


def remove(folder, role):
    file_of(folder, role).unlink()


def swap(folder, role):
    one, other = file_of(folder, role, 1), file_of(folder, role, 2)
    content = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(content)


def flip(folder, role):
    path = file_of(folder, role)
    content = bytearray(path.read_bytes())
    content[-5] ^= 8
    path.write_bytes(content)


def file_of(folder, role, chunk=1):
    """The file of a role in the given chunk."""
    (path,) = folder.glob(f"*0000{chunk}.{role}.npy")
    return path


FAULTS = [
    *((kind, "dense", "X") for kind in (truncate, remove, swap, flip)),
    (flip, "dense", "y"),
    (swap, "dense", "y"),
    (flip, "sparse", "indices"),
    (remove, "sparse", "indptr"),
    (flip, "sparse", "data"),
]


@pytest.mark.parametrize("solve", [minimize, fit])
@pytest.mark.parametrize(("damage", "kind", "role"), FAULTS, ids=lambda value: getattr(value, "__name__", value))
def test_damage_is_one_sentence_that_names_the_file(folder_of, damage, kind, role, solve):
    folder = folder_of(kind)
    damage(folder, role)
    with nothing_left(), pytest.raises(OSError, match=rf"0000[12]\.{role}.*(backup|convert the data again)") as caught:
        solve(folder)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("solve", [minimize, fit])
@pytest.mark.parametrize("damage", [truncate, remove])
def test_damage_during_a_fit_is_found_by_the_next_pass(folder_of, monkeypatch, damage, solve):
    """The file is whole in the first pass, in which it is compared with its checksum, and is damaged after it."""
    folder = folder_of("dense")
    fill, is_done = array_files.fill, []

    def fill_and_damage(file, into, read):
        fill(file, into, read)
        last = file_of(folder, "X", len(list(folder.glob("*.X.npy"))) - 1)
        if read.path == last and len(into) == read.n_bytes and not is_done:
            is_done.append(True)
            damage(folder, "X")

    monkeypatch.setattr(array_files, "fill", fill_and_damage)
    with nothing_left(), pytest.raises(OSError, match=r"00001\.X.*(backup|convert the data again)"):
        solve(folder)
    assert is_done


def test_numbers_that_are_not_finite_in_a_file_of_the_user(samples, tmp_path):
    X, y = samples[0]["dense"].copy(), samples[1]
    X[3000, 4] = np.nan
    np.save(tmp_path / "X.npy", X)
    rows = cg.rows.open(tmp_path / "X.npy", chunk_bytes=2**16)
    with nothing_left(), pytest.raises(ValueError, match=r"X\.npy' has .* not finite, .* \(3000, 4\): nan. Remove or"):
        cg.minimize(logistic(rows, y))


# Memory that is smaller than the data.

LIMITED = """
    import resource, sys
    import numpy as np
    import condgrad as cg

    def solve(path):
        rows = cg.rows.open(path + ".npy", y=path + "-y.npy", chunk_bytes=2**20)
        problem = cg.Problem(rows, loss=cg.losses.Huber(), constraint=cg.constraints.L1Ball(1.0))
        return rows, cg.minimize(problem, tol=0.0, relative_tol=1e-3)

    solve("small")  # imports what is needed
    status = open("/proc/self/status").read().split()
    used = 1024 * int(status[status.index("VmData:") + 1])
    size = np.load("large.npy", mmap_mode="r").nbytes
    if sys.argv[1] == "limited":
        resource.setrlimit(resource.RLIMIT_DATA, (used + size // 10, used + size // 10))
    rows, result = solve("large")
    print(rows.n_bytes == size, result.status.name)
"""


def write_rows(path, block, y, times):
    """Write a block of rows many times to one .npy file, and the targets to another."""
    with open(f"{path}.npy", "wb") as file:
        head = {"descr": block.dtype.str, "fortran_order": False, "shape": (times * len(block), block.shape[1])}
        np.lib.format.write_array_header_1_0(file, head)
        for _ in range(times):
            file.write(block.data)
    np.save(f"{path}-y.npy", np.tile(y, times))


@pytest.mark.campaign
@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="reads how much memory a process has")
def test_a_fit_in_a_tenth_of_the_memory_of_the_data(tmp_path):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((10_000, 500), dtype=np.float32)
    y = X[:, 0] + rng.standard_normal(10_000)
    for name, times in (("small", 2), ("large", 40)):
        write_rows(tmp_path / name, X, y, times)
    environment = os.environ | {"NUMBA_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    for mode in ("free", "limited"):  # the first run compiles: that takes memory, too
        run = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(LIMITED), mode],
            cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert run.stdout.split() == ["True", "CONVERGED"], run.stderr
    (tmp_path / "large.npy").unlink()  # pytest keeps the folders of the last runs
