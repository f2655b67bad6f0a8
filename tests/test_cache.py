"""The disk cache of kernels: it is used, it never runs old code, and it keeps out what it could not find again.

Everything runs in new processes with a cache folder of their own.
"""

import os
import pathlib
import pickle
import shutil
import subprocess
import sys
import textwrap

import numba
import pytest

import condgrad
from condgrad import compiled

pytestmark = pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="nothing is compiled")

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
    from condgrad import samples
    from {module} import Mine
    one = samples.Samples(Mine(), np.zeros(2), np.full(2, 0.5))
    print(samples.value(one, np.ones(2), 0.0), sum(samples._value.stats.cache_hits.values()))
"""


@pytest.fixture
def run(tmp_path):
    """Run code in a new process with a copy of condgrad and a cache of its own, both in tmp_path.

    Python's bytecode is copied along, which saves a third of an import; -B keeps new one from being written, as an edit
    of the same length and time would go unseen by Python itself.
    """
    (tmp_path / "cache").mkdir()
    source = pathlib.Path(condgrad.__file__).parent
    shutil.copytree(source, tmp_path / "condgrad", ignore=shutil.ignore_patterns("*.nbi", "*.nbc"))

    def run(code, **environment):
        (tmp_path / "script.py").write_text(textwrap.dedent(code))
        done = subprocess.run(
            [sys.executable, "-B", "-W", "error", "script.py"],
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
    return len(list((tmp_path / "cache").rglob(f"*{name}*.nbc")))


def test_an_edited_loss_runs_its_new_code(tmp_path, run):
    """Trap 1: numba watches the file of the kernel, which has not changed."""
    write(tmp_path / "mine.py", LOSS.format(factor="3.0"))
    assert run(USE.format(module="mine")) == ["3.0", "0"]
    assert run(USE.format(module="mine")) == ["3.0", "1"], "the second process should find the kernel on disk"
    write(tmp_path / "mine.py", LOSS.format(factor="5.0"))
    assert run(USE.format(module="mine")) == ["5.0", "0"]
    write(tmp_path / "mine.py", LOSS.format(factor="3.0"))
    assert run(USE.format(module="mine")) == ["3.0", "1"], "going back finds the first kernel again"


def test_an_edit_of_the_same_length_and_time_is_seen(tmp_path, run):
    file = tmp_path / "mine.py"
    write(file, LOSS.format(factor="3.0"))
    before = file.stat()
    assert run(USE.format(module="mine"))[0] == "3.0"
    write(file, LOSS.format(factor="4.0"))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert file.stat().st_size == before.st_size
    assert run(USE.format(module="mine"))[0] == "4.0"


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
        from condgrad import samples
        from mine import Mine
        from outer import Twice
        one = samples.Samples(Twice(Twice(Mine())), np.zeros(2), np.full(2, 0.5))
        print(samples.value(one, np.ones(2), 0.0))
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


def test_an_edit_of_the_package_changes_the_key(tmp_path, run):
    """Also of a file whose classes this kernel is not given: what it calls may live there."""
    use = f"""
        import condgrad as cg
        import numpy as np
        from condgrad import samples
        assert cg.__file__.startswith({str(tmp_path)!r}), cg.__file__
        one = samples.Samples(cg.losses.Squared(), np.zeros(2), np.full(2, 0.5))
        print(samples.value(one, np.ones(2), 0.0), sum(samples._value.stats.cache_hits.values()))
    """
    assert run(use) == ["0.5", "0"]
    assert run(use) == ["0.5", "1"]
    squared = tmp_path / "condgrad" / "losses" / "squared.py"
    assert "0.5" in squared.read_text()
    squared.write_text(squared.read_text().replace("0.5", "1.5"))
    assert run(use) == ["1.5", "0"]
    slices = tmp_path / "condgrad" / "linalg" / "slices.py"
    slices.write_text(slices.read_text() + "\n# an edit\n")
    assert run(use) == ["1.5", "0"]


def test_every_file_that_kernels_are_made_of_is_in_the_key():
    """A class or kernel needs compiled.py, directly or by @loss and @constraint_set; those files are all hashed.

    Files of losses and sets that do not mention it hold classes that kernels take as arguments: hashed as such.
    """
    root = pathlib.Path(condgrad.__file__).parent
    for path in root.rglob("*.py"):
        source = path.read_text(encoding="utf-8")
        if "@kernel" in source or "@compiled" in source or "njit" in source:
            assert "compiled" in source, f"{path.name} holds compiled code that the key of the cache does not see."


def test_key_holds_package_and_classes():
    from numba import typeof

    one = typeof(condgrad.constraints.Shift(condgrad.constraints.L1Ball(1.0), offset=[0.0]))
    names = [cls.__name__ for cls in compiled._classes(one)]
    assert names == ["Shift", "L1Ball"]
    assert all(compiled._can_find(cls) for cls in compiled._classes(one))
    assert len(compiled._package_hash()) == 64


def test_a_module_that_is_gone_does_not_stop_others(tmp_path, run):
    """numba's index is a pickle: a class that cannot be imported any more must not make the rest unreadable."""
    write(tmp_path / "mine.py", LOSS.format(factor="3.0"))
    ours = """
        import numpy as np
        from condgrad import losses, samples
        one = samples.Samples(losses.Squared(), np.zeros(2), np.full(2, 0.5))
        print(samples.value(one, np.ones(2), 0.0), sum(samples._value.stats.cache_hits.values()))
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
            return samples._value(one, np.ones(4), 0.0, start, stop)

        result = sum(threads.run(task, np.array([0, 2, 4])))
    """
    imports = "import time\nimport numpy as np\nfrom condgrad import samples\nfrom condgrad.linalg import threads\n"
    (tmp_path / "mine.py").write_text(imports + textwrap.dedent(LOSS.format(factor="3.0")) + textwrap.dedent(work))
    use = """
        import mine
        from condgrad import compiled
        print(mine.result, compiled.is_importing())
    """
    assert run(use, NUMBA_NUM_THREADS="2") == ["6.0", "False"]


def test_a_broken_cache_folder_does_not_stop_anybody(tmp_path, run):
    """A read-only package and no cache folder: kernels are compiled in memory, or numba finds a place."""
    code = """
        import condgrad as cg
        problem = cg.Problem([[1.0], [1.0]], [1.0, 3.0], cg.losses.Squared(), cg.constraints.L1Ball(5.0))
        print(cg.minimize(problem, "fw").w[0])
    """
    (tmp_path / "cache" / "taken").write_text("")
    assert run(code, HOME=str(tmp_path)) == ["2.0"]


def test_an_index_that_names_a_class_of_an_earlier_version_is_made_anew(tmp_path, run):
    use = """
        import numpy as np
        from condgrad import losses, samples
        one = samples.Samples(losses.Squared(), np.zeros(2), np.full(2, 0.5))
        print(samples.value(one, np.ones(2), 0.0), sum(samples._value.stats.cache_hits.values()))
    """
    assert run(use) == ["0.5", "0"]
    indexes = list((tmp_path / "cache").rglob("samples._value*.nbi"))
    assert indexes
    for index in indexes:
        index.write_bytes(pickle.dumps(numba.__version__) + b"ccondgrad.losses.squared\nGone\n.")
    assert run(use) == ["0.5", "0"]
    assert run(use) == ["0.5", "1"]
