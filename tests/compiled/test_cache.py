"""The disk cache of kernels: it is used, it never runs old code, and it keeps out what it could not find again.

Everything runs in new processes with a cache folder of their own.
"""

import concurrent.futures
import importlib
import inspect
import os
import pathlib
import pickle
import pkgutil
import shutil
import subprocess
import sys
import textwrap

import numba
import pytest

import condgrad
from condgrad.compiled import cache, sources, store

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="nothing is compiled"),
]

MODULES = [
    found.name for found in pkgutil.walk_packages(condgrad.__path__, "condgrad.") if not found.name.endswith("__main__")
]
LOSS = """
    from typing import NamedTuple
    from condgrad.losses import loss

    @loss
    class Mine(NamedTuple):
        scale: float = 1.0

        def value(self, p, y):
            return {factor} * self.scale * (p - y)

        def derivative(self, p, y):
            return {factor} * self.scale * (1.0 + 0.0 * p)

        def second_derivative(self, p, y):
            return 0.0 * p

        def smoothness(self):
            return 0.0
"""
USE = """
    import numpy as np
    from condgrad.problems import samples
    from {module} import Mine
    one = samples.Samples(Mine(), np.zeros(2), np.full(2, 0.5))
    print(one.value(np.ones(2), 0.0), sum(samples.value_of_range.stats.cache_hits.values()))
"""


@pytest.fixture
def run(tmp_path):
    """Run code in a new process with a copy of condgrad and a cache of its own, both in tmp_path.

    Python's bytecode is copied along, which saves a third of an import; -B keeps new one from being written, as an edit
    of the same length and time would go unseen by Python itself.
    """
    (tmp_path / "cache").mkdir()
    source = pathlib.Path(condgrad.__file__).parent
    shutil.copytree(source, tmp_path / "condgrad", ignore=shutil.ignore_patterns("*.kernel"))

    def run(code, script="script.py", **environment):
        (tmp_path / script).write_text(textwrap.dedent(code))
        done = subprocess.run(
            [sys.executable, "-B", "-W", "error", script],
            cwd=tmp_path,
            env={
                **os.environ,
                "NUMBA_CACHE_DIR": str(tmp_path / "cache"),
                "PYTHONPATH": str(tmp_path),
                **environment,
            },
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        return done.stdout.split()

    return run


def write(path, code):
    path.write_text(textwrap.dedent(code))


def n_cached(tmp_path, name):
    return len(list((tmp_path / "cache").rglob(f"*{name}*.kernel")))


def test_an_edited_loss_runs_its_new_code(tmp_path, run):
    """Trap 1: numba watches the file of the kernel, which has not changed."""
    write(tmp_path / "mine.py", LOSS.format(factor="3.0"))
    assert run(USE.format(module="mine")) == ["3.0", "0"]
    assert run(USE.format(module="mine")) == ["3.0", "1"], "the second process should find the kernel on disk"
    write(tmp_path / "mine.py", LOSS.format(factor="5.0"))
    assert run(USE.format(module="mine")) == ["5.0", "0"]
    write(tmp_path / "mine.py", LOSS.format(factor="3.0"))
    assert run(USE.format(module="mine")) == ["3.0", "1"], "going back finds the first kernel again"


@pytest.mark.campaign
def test_an_edit_of_the_same_length_and_time_is_seen(tmp_path, run):
    file = tmp_path / "mine.py"
    write(file, LOSS.format(factor="3.0"))
    before = file.stat()
    assert run(USE.format(module="mine"))[0] == "3.0"
    write(file, LOSS.format(factor="4.0"))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert file.stat().st_size == before.st_size
    assert run(USE.format(module="mine"))[0] == "4.0"


@pytest.mark.campaign
def test_a_nested_class_is_part_of_the_key(tmp_path, run):
    """The edited class is not the argument itself but a field of it (here, of two levels of them)."""
    write(tmp_path / "mine.py", LOSS.format(factor="3.0"))
    outer = """
        from typing import Any, NamedTuple
        from condgrad.compiled import compiled

        @compiled
        class Twice(NamedTuple):
            one: Any

            def value(self, p, y):
                return 2.0 * self.one.value(p, y)
    """
    write(tmp_path / "outer.py", outer)
    use = """
        import numpy as np
        from condgrad.problems import samples
        from mine import Mine
        from outer import Twice
        one = samples.Samples(Twice(Twice(Mine())), np.zeros(2), np.full(2, 0.5))
        print(one.value(np.ones(2), 0.0))
    """
    assert run(use) == ["12.0"]
    write(tmp_path / "mine.py", LOSS.format(factor="5.0"))
    assert run(use) == ["20.0"]


def test_classes_of_a_script_stay_out_of_the_cache(tmp_path, run):
    """Another process could not find a class of __main__, or of a function, again."""
    script = textwrap.dedent(LOSS.format(factor="3.0")) + textwrap.dedent(
        USE.replace("from {module} import Mine", "import sys")
    )
    assert run(script) == ["3.0", "0"]
    assert n_cached(tmp_path, "_value") == 0
    assert run(script.replace("3.0 *", "7.0 *")) == ["7.0", "0"]
    local = (
        "def make():\n" + textwrap.indent(textwrap.dedent(LOSS.format(factor="2.0")), "    ") + "\n    return Mine\n"
    )
    (tmp_path / "local.py").write_text(local + "Mine = make()\n")
    assert run(USE.format(module="local")) == ["2.0", "0"]
    assert run(USE.format(module="local")) == ["2.0", "0"]
    assert n_cached(tmp_path, "_value") == 0


def test_kernels_with_defaults_are_kept(tmp_path, run):
    """numba takes an argument that is left out for a type without a name of its own."""
    kernel = """
        from condgrad.compiled import kernel

        @kernel
        def shifted(x, by=2.0, is_down=False):
            return x - by if is_down else x + by
    """
    use = "from own import shifted\nprint(shifted(1.0), sum(shifted.stats.cache_hits.values()))"
    write(tmp_path / "own.py", kernel)
    assert run(use) == ["3.0", "0"]
    assert run(use) == ["3.0", "1"]
    write(tmp_path / "own.py", kernel.replace("2.0", "5.0"))
    assert run(use) == ["6.0", "0"]


def test_a_second_process_compiles_nothing_for_the_same_fits(run):
    """A kernel that is not kept, for whatever reason, costs every process seconds."""
    fits = """
        import numpy as np
        from numba.core import event
        import condgrad as cg

        class Listener(event.Listener):
            names = []
            def on_start(self, event):
                self.names.append(event.data["dispatcher"].py_func.__qualname__)
            def on_end(self, event):
                pass

        event.register("numba:compile", Listener())
        X = np.random.default_rng(0).standard_normal((60, 5))
        y = np.where(X[:, 0] + X[:, 1] + X[:, 2] ** 2 > 1.0, 1.0, -1.0)
        for loss in (cg.losses.Logistic(), cg.losses.Squared()):
            cg.minimize(cg.Problem(X, y, loss, cg.constraints.L1Ball(2.0)), "corrective")
        print(len(Listener.names), *Listener.names[:5])
    """
    assert int(run(fits)[0]) > 100
    assert run(fits) == ["0"]


def test_an_edit_of_the_package_changes_the_key(tmp_path, run):
    """Also of a file whose classes this kernel is not given: what it calls may live there."""
    use = f"""
        import condgrad as cg
        import numpy as np
        from condgrad.problems import samples
        assert cg.__file__.startswith({str(tmp_path)!r}), cg.__file__
        one = samples.Samples(cg.losses.Squared(), np.zeros(2), np.full(2, 0.5))
        print(one.value(np.ones(2), 0.0), sum(samples.value_of_range.stats.cache_hits.values()))
    """
    assert run(use) == ["0.5", "0"]
    assert run(use) == ["0.5", "1"]
    squared = tmp_path / "condgrad" / "losses" / "squared.py"
    assert "0.5" in squared.read_text()
    squared.write_text(squared.read_text().replace("0.5", "1.5"))
    assert run(use) == ["1.5", "0"]
    samples = tmp_path / "condgrad" / "problems" / "samples.py"
    samples.write_text(samples.read_text() + "\n# an edit\n")
    assert run(use) == ["1.5", "0"]
    lasso = tmp_path / "condgrad" / "paths" / "lasso.py"
    lasso.write_text(lasso.read_text() + "\n# an edit\n")
    assert run(use) == ["1.5", "1"], "nothing that this kernel is made of imports the paths"


@pytest.mark.campaign
def test_a_constant_of_an_imported_file_is_part_of_the_key(tmp_path, run):
    """Of a user's file that his loss imports from: numbers have no module that they could be traced by."""
    write(tmp_path / "helper.py", "FACTOR = 3.0")
    write(tmp_path / "mine.py", "from helper import FACTOR\n" + textwrap.dedent(LOSS.format(factor="FACTOR")))
    assert run(USE.format(module="mine")) == ["3.0", "0"]
    assert run(USE.format(module="mine")) == ["3.0", "1"]
    write(tmp_path / "helper.py", "FACTOR = 5.0")
    assert run(USE.format(module="mine")) == ["5.0", "0"]


@pytest.mark.campaign
def test_what_is_edited_while_a_process_runs_is_not_kept_under_the_new_text(tmp_path, run):
    squared = tmp_path / "condgrad" / "losses" / "squared.py"
    use = f"""
        import pathlib, time
        import numpy as np
        from condgrad import losses
        from condgrad.problems import samples
        loss = losses.Squared()
        file = pathlib.Path({str(squared)!r})
        time.sleep(0.05)
        {{edit}}
        one = samples.Samples(loss, np.zeros(2), np.full(2, 0.5))
        print(one.value(np.ones(2), 0.0))
    """
    edit = 'file.write_text(file.read_text().replace("0.5", "1.5"))'
    assert run(use.replace("{edit}", edit)) == ["0.5"]
    assert run(use.replace("{edit}", "")) == ["1.5"]


def test_the_text_of_a_module_tells_where_its_names_come_from():
    """The ground of the key: whatever a module holds that another one has defined, its imports lead to."""
    for name in MODULES:
        for value in vars(importlib.import_module(name)).values():
            home = value.__name__ if inspect.ismodule(value) else getattr(value, "__module__", None)
            # A folder holds its modules without an import of its own.
            if isinstance(home, str) and sources.is_ours(home) and not home.startswith(f"{name}."):
                assert sources._file_of(home) in sources._reach(name), f"{name} holds {value!r}"


def test_no_folder_says_something_else_by_the_name_of_its_file():
    """`from condgrad.losses import huber` leads to huber.py alone: so no __init__.py may give that name away."""
    for name in MODULES:
        parent, _, child = name.rpartition(".")
        found = getattr(sys.modules.get(parent), child, None)
        assert found is None or inspect.ismodule(found) or found.__module__ == name, name


@pytest.mark.parametrize(
    "line, names",
    [
        ("from condgrad.losses import huber", ["condgrad.losses.huber"]),
        ("from condgrad.losses import Huber", ["condgrad.losses"]),
        ("from condgrad.losses import (  # (\n Huber,\n huber as h)", ["condgrad.losses.huber", "condgrad.losses"]),
        ("from condgrad import losses, \\\n    problems", ["condgrad.losses", "condgrad.problems"]),
        ("import condgrad.problems.samples as outer, sys; import os", ["condgrad.problems.samples", "sys", "os"]),
        ("if True: from ..losses import *", ["condgrad.losses"]),
    ],
)  # fmt: skip
def test_imports_are_read(tmp_path, line, names):
    file = tmp_path / "one.py"
    file.write_text(line)
    assert list(sources._imports("condgrad.linalg.one", file)) == names


def test_classes_of_a_signature():
    one = numba.typeof(condgrad.constraints.Shift(condgrad.constraints.L1Ball(1.0), offset=[0.0]))
    names = [cls.__name__ for cls in cache.classes((one,))]
    assert names == ["Shift", "L1Ball"]
    assert all(cache._can_find(cls) for cls in cache.classes((one,)))


@pytest.mark.campaign
def test_a_module_that_is_gone_does_not_stop_others(tmp_path, run):
    """A class that cannot be imported any more must not make the rest unreadable."""
    write(tmp_path / "mine.py", LOSS.format(factor="3.0"))
    ours = """
        import numpy as np
        from condgrad import losses
        from condgrad.problems import samples
        one = samples.Samples(losses.Squared(), np.zeros(2), np.full(2, 0.5))
        print(one.value(np.ones(2), 0.0), sum(samples.value_of_range.stats.cache_hits.values()))
    """
    assert run(ours) == ["0.5", "0"]
    assert run(USE.format(module="mine")) == ["3.0", "0"]
    (tmp_path / "mine.py").unlink()
    assert run(ours) == ["0.5", "1"]
    write(tmp_path / "yours.py", LOSS.format(factor="4.0"))
    assert run(USE.format(module="yours")) == ["4.0", "0"]


def test_a_module_may_work_while_it_is_imported(tmp_path, run):
    """On several threads, with a class of its own: a thread that compiles it must not wait for the import to end."""
    work = """
        one = samples.Samples(Mine(), np.zeros(4), np.full(4, 0.5))

        def task(start, stop):
            time.sleep(1.0 if start == 0 else 0.0)  # the other thread is the first to compile
            return samples.value_of_range(one, np.ones(4), 0.0, start, stop)

        result = sum(threads.run(task, np.array([0, 2, 4])))
    """
    imports = (
        "import time\nimport numpy as np\nfrom condgrad.problems import samples\nfrom condgrad.linalg import threads\n"
    )
    (tmp_path / "mine.py").write_text(imports + textwrap.dedent(LOSS.format(factor="3.0")) + textwrap.dedent(work))
    use = """
        import mine
        from condgrad import compiled
        print(mine.result, compiled.is_importing())
    """
    assert run(use, NUMBA_NUM_THREADS="2") == ["6.0", "False"]


# What can happen to files -----------------------------------------------------------------------------------------

FIT = """
    import numpy as np
    from condgrad import losses
    from condgrad.problems import samples
    one = samples.Samples(losses.Squared(), np.zeros(2), np.full(2, 0.5))
    print(one.value(np.ones(2), 0.0), sum(samples.value_of_range.stats.cache_hits.values()))
"""


def files(tmp_path):
    return sorted((tmp_path / "cache").rglob("*.kernel"))


@pytest.mark.parametrize(
    "harm",
    [
        pytest.param(lambda content: b"", marks=pytest.mark.campaign),
        pytest.param(lambda content: content[: len(content) // 2], marks=pytest.mark.campaign),
        pytest.param(lambda content: bytes(range(256)) * 20, marks=pytest.mark.campaign),
        lambda content: content[:200] + bytes([content[200] ^ 1]) + content[201:],
    ],
    ids=["empty", "truncated", "random", "one bit"],
)
def test_a_damaged_file_is_made_anew(tmp_path, run, harm):
    assert run(FIT) == ["0.5", "0"]
    assert files(tmp_path)
    for file in files(tmp_path):
        file.write_bytes(harm(file.read_bytes()))
    assert run(FIT) == ["0.5", "0"]
    assert run(FIT) == ["0.5", "1"]


@pytest.mark.campaign
def test_a_file_of_numbers_that_mean_nothing_is_made_anew(tmp_path, run):
    """Whole, but not a kernel: as a pickle of another version might be."""
    assert run(FIT) == ["0.5", "0"]
    (file,) = files(tmp_path)
    for content in (pickle.dumps(("nonsense",)), b"ccondgrad.losses.squared\nGone\n.", b"no pickle"):
        assert store.save(file.parent, file.stem, content)
        assert run(FIT) == ["0.5", "0"]
    assert run(FIT) == ["0.5", "1"]


@pytest.mark.campaign
def test_a_full_disk_means_compiling(tmp_path, run):
    """A limit of file sizes stands for it: writing fails with an OSError, as it does there."""
    limit = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
    assert run(limit + textwrap.dedent(FIT)) == ["0.5", "0"]
    assert files(tmp_path) == []
    assert not list((tmp_path / "cache").rglob("*.tmp"))
    assert run(FIT) == ["0.5", "0"]


@pytest.mark.campaign
def test_a_folder_that_cannot_be_made_means_the_next(tmp_path, run):
    """The cache folder is a file: then kernels go beside the bytecode of the package."""
    (tmp_path / "cache" / "taken").write_text("")
    there = {"NUMBA_CACHE_DIR": str(tmp_path / "cache" / "taken")}
    assert run(FIT, **there) == ["0.5", "0"]
    assert run(FIT, **there) == ["0.5", "1"]


@pytest.mark.campaign
def test_no_folder_at_all_means_compiling(tmp_path, run):
    taken = tmp_path / "cache" / "taken"
    taken.write_text("")
    nowhere = f"""
        from condgrad.compiled import store
        import pathlib
        store.user_folders = lambda: iter([pathlib.Path({str(taken)!r})])
        assert not store.can_write()
    """
    assert run(textwrap.dedent(nowhere) + textwrap.dedent(FIT)) == ["0.5", "0"]


@pytest.mark.campaign
def test_no_home(tmp_path, run):
    """Not set, set to nothing, set to what is not there and cannot be."""
    for home in ("", "/dev/null/nobody"):
        assert run(FIT, NUMBA_CACHE_DIR="", HOME=home, XDG_CACHE_HOME="")[0] == "0.5"
    drop = "import os\nos.environ.pop('HOME', None)\n"
    assert run(drop + textwrap.dedent(FIT), NUMBA_CACHE_DIR="", XDG_CACHE_HOME=str(tmp_path / "xdg"))[0] == "0.5"
    assert not (tmp_path / "~").exists()


def test_processes_that_compile_at_once(tmp_path, run):
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        done = list(pool.map(lambda k: run(FIT, script=f"script{k}.py"), range(3)))
    assert [value for value, _ in done] == ["0.5"] * 3
    assert run(FIT) == ["0.5", "1"]
    assert len(files(tmp_path)) == 1


def test_the_kernels_used_longest_ago_make_room(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "_MOST_BYTES", 250)
    store._tidy.cache_clear()
    for age, name in ((3, "old"), (2, "older than new"), (1, "new")):
        file = tmp_path / f"{name}.kernel"
        file.write_bytes(bytes(100))
        os.utime(file, (1e9 - age, 1e9 - age))
    store._tidy(tmp_path)
    assert sorted(file.stem for file in tmp_path.iterdir()) == ["new", "older than new"]


# Kernels that came with the wheel ---------------------------------------------------------------------------------

needs_baseline = pytest.mark.skipif(cache.MACHINE not in cache.BASELINES, reason="no kernels are built for it")


@pytest.fixture
def prebuilt(tmp_path, run):
    """Put the kernel of FIT, made for the baseline, where the build step of the wheel puts it."""
    name, features, _ = cache.BASELINES[cache.MACHINE]
    assert run(FIT, NUMBA_CPU_NAME=name, NUMBA_CPU_FEATURES=features, NUMBA_DISABLE_INTEL_SVML="1") == ["0.5", "0"]
    folder = tmp_path / "condgrad" / "prebuilt_kernels"
    folder.mkdir(exist_ok=True)
    for file in files(tmp_path):
        file.rename(folder / file.name)
    return folder


@needs_baseline
def test_a_kernel_of_the_wheel_is_found(tmp_path, run, prebuilt):
    assert run(FIT) == ["0.5", "1"]
    assert files(tmp_path) == []
    file = tmp_path / "condgrad" / "problems" / "samples.py"
    os.utime(file, (1e9, 1e9))
    assert run(FIT) == ["0.5", "1"], "what an installation does to file times plays no part"


@needs_baseline
def test_a_kernel_of_the_wheel_is_not_used_where_the_sources_differ(tmp_path, run, prebuilt):
    squared = tmp_path / "condgrad" / "losses" / "squared.py"
    squared.write_text(squared.read_text().replace("0.5", "1.5"))
    assert run(FIT) == ["1.5", "0"]


@pytest.mark.campaign
@needs_baseline
def test_a_kernel_of_the_wheel_is_not_used_on_a_lesser_processor(tmp_path, run, prebuilt):
    lesser = """
        from condgrad.compiled import cache
        needed = cache.BASELINES[cache.MACHINE][2].split()
        cache._host_features = lambda: {feature: feature != needed[-1] for feature in needed}
    """
    assert run(textwrap.dedent(lesser) + textwrap.dedent(FIT)) == ["0.5", "0"]


@pytest.mark.campaign
@needs_baseline
def test_a_kernel_of_the_wheel_is_not_used_where_another_processor_was_asked_for(run, prebuilt):
    assert run(FIT, NUMBA_CPU_NAME="generic", NUMBA_CPU_FEATURES="") == ["0.5", "0"]


@needs_baseline
def test_the_users_own_kernel_is_preferred_and_a_damaged_one_of_the_wheel_ignored(tmp_path, run, prebuilt):
    for file in prebuilt.iterdir():
        file.write_bytes(file.read_bytes()[:-1])
    assert run(FIT) == ["0.5", "0"]
    assert len(files(tmp_path)) == 1
    assert run(FIT) == ["0.5", "1"]
