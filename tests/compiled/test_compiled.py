"""compiled.py: plain classes inside kernels, each trap that was met on the way, and running without a compiler."""

import ast
import collections
import concurrent.futures
import contextlib
import gc
import os
import pathlib
import subprocess
import sys
import textwrap
import time
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest

import condgrad as cg
from condgrad.compiled import (
    Stopwatch,
    announce_to,
    announcements,
    compiled,
    dispatchers,
    is_compiled,
    kernel,
    stopwatch,
    where,
)
from condgrad.losses import loss
from condgrad.run.progress import line_writer

compiled_only = pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="nothing is compiled")


@compiled
class Line(NamedTuple):
    """a + slope x, with a field annotated float, one Any, one int."""

    slope: float
    a: Any = 0.0
    n: int = 1

    def value(self, x):
        return self.a + self.slope * x

    def twice(self, x):
        return 2.0 * self.value(x)  # a method that calls another


@compiled
class Nothing(NamedTuple):
    """A class without fields."""

    def value(self, x):
        return x + 1.0

    kind = "empty"


@compiled
class Checked(NamedTuple):
    radius: float

    def check(self):
        if not self.radius > 0.0:
            raise ValueError(f"radius of Checked must be positive; got {self.radius!r}.")

    def area(self):
        return 3.0 * self.radius * self.radius


@compiled
class Prepared(NamedTuple):
    values: Any

    def prepare(self):
        return (np.asarray(self.values, dtype=np.float64),)

    def total(self):
        total = 0.0
        for k in range(self.values.shape[0]):
            total += self.values[k]
        return total


@compiled
class Pair(NamedTuple):
    first: Any
    second: Any

    def value(self, x):
        return self.first.value(self.second.value(x))


@kernel
def value_of(obj, x):
    return obj.value(x)


@kernel
def twice_of(obj, x):
    return obj.twice(x)


def test_method_in_a_kernel_is_the_method_of_the_class():
    line = Line(2.0, 1.0)
    assert value_of(line, 3.0) == line.value(3.0) == 7.0
    assert twice_of(line, 3.0) == line.twice(3.0) == 14.0


def test_each_class_has_its_own_method():
    assert value_of(Nothing(), 3.0) == 4.0
    assert value_of(Pair(Nothing(), Line(2.0)), 3.0) == 7.0
    assert value_of(Pair(Line(2.0), Nothing()), 3.0) == 8.0


def test_a_kernel_may_build_and_return_objects():
    @kernel
    def steeper(line):
        return Line(2.0 * line.slope, line.a, line.n)

    made = steeper(Line(1.5, 0.5, 3))
    assert type(made) is Line
    assert made == (3.0, 0.5, 3)


def test_method_of_an_unmarked_class_is_refused():
    class Plain(NamedTuple):
        a: float

        def value(self, x):
            return self.a * x

    if os.environ.get("NUMBA_DISABLE_JIT") == "1":
        return
    with pytest.raises(numba.TypingError):
        value_of(Plain(1.0), 2.0)


# Trap 2: other people's namedtuples ------------------------------------------------------------------------------


def test_fields_named_like_our_methods():
    """Names that classes of ours use for methods, as fields of a stranger's namedtuple."""
    Stranger = collections.namedtuple("Stranger", "value lmo inner derivative size at check support")

    @kernel
    def read(t):
        return t.value + 10.0 * t.lmo + 100.0 * t.inner + t.derivative + t.size + t.at + t.check + t.support

    assert read(Stranger(1.0, 2.0, 3.0, 0.0, 0.0, 0.0, 0.0, 0.0)) == 321.0


def test_fields_and_methods_in_plain_njit_code():
    Stranger = collections.namedtuple("Stranger", "value twice")
    read = numba.njit(lambda t: t.value * t.twice + t.count(2.0) + t.index(3.0))
    stranger = Stranger(2.0, 3.0)
    try:
        assert read(stranger) == 8.0
    except numba.TypingError:  # numba itself has no count and index of tuples
        assert numba.njit(lambda t: t.value * t.twice)(stranger) == 6.0


def test_field_of_ours_named_like_another_classes_method():
    @compiled
    class Odd(NamedTuple):
        twice: float  # Line has a method of this name

        def value(self, x):
            return self.twice + x

    @kernel
    def both(odd, line):
        return odd.twice + odd.value(1.0) + line.twice(1.0)

    assert both(Odd(5.0), Line(2.0)) == 5.0 + 6.0 + 4.0


# Trap 3: empty classes -------------------------------------------------------------------------------------------


def test_empty_class():
    assert repr(Nothing()) == "Nothing()"
    assert Nothing() == Nothing()
    assert Nothing.kind == "empty"
    assert Nothing.__module__ == __name__
    assert Nothing.__doc__ == "A class without fields."
    assert Nothing().value(1.0) == 2.0


# Construction ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [10, 10.0, np.float32(10), np.int64(10)])
def test_float_fields_become_floats(value):
    line = Line(value, n=2)
    assert type(line.slope) is float
    assert type(line._replace(slope=value).slope) is float
    assert type(Line._make([value, 0.0, 1]).slope) is float
    assert line.n == 2


@compiled_only
def test_int_and_float_compile_once():
    @kernel
    def area(disc):
        return disc.area()

    assert area(Checked(2)) == area(Checked(2.0)) == area(Checked(np.float32(2.0))) == 12.0
    assert len(area.signatures) == 1


@pytest.mark.parametrize("value", ["1", None, 1j, True, [1.0], np.ones(2)])
def test_float_fields_refuse_the_rest(value):
    with pytest.raises(TypeError, match=r"^slope of Line must be a real number; got .*\.$"):
        Line(value)


def test_check_runs_at_construction():
    with pytest.raises(ValueError, match=r"^radius of Checked must be positive; got -1.0\.$"):
        Checked(-1)
    with pytest.raises(ValueError, match="must be positive"):
        Checked(1.0)._replace(radius=0.0)
    assert Checked(1).radius == 1.0


def test_prepare_runs_at_construction():
    made = Prepared([1, 2, 3])
    assert made.values.dtype == np.float64

    @kernel
    def total(prepared):
        return prepared.total()

    assert total(made) == 6.0


# is_compiled -----------------------------------------------------------------------------------------------------


def test_is_compiled_looks_at_every_field():
    assert is_compiled(Line(1.0))
    assert is_compiled(Nothing())
    assert is_compiled(Line(1.0, np.ones(3)))
    assert is_compiled(Pair(Line(1.0), Pair(Nothing(), Line(2.0))))
    assert not is_compiled(Pair(Line(1.0), Pair(Nothing(), "text")))
    assert not is_compiled(Line(1.0, [1.0]))
    assert not is_compiled((1.0, 2.0))
    assert not is_compiled(Line)
    assert not is_compiled(object())


def test_is_compiled_of_sets_of_sets():
    ball, user = cg.constraints.L1Ball(1.0), cg.constraints.OracleSet(lambda r: r)
    assert is_compiled(cg.constraints.Shift(ball, offset=[1.0, 2.0]))
    assert not is_compiled(cg.constraints.Scale(user, 2.0))


# where -----------------------------------------------------------------------------------------------------------


def test_where():
    @kernel
    def clip(x):
        return where(x > 1.0, 1.0, x)

    assert (clip(3.0), clip(0.5)) == (1.0, 0.5)
    np.testing.assert_array_equal(where(np.array([True, False]), 1.0, 2.0), [1.0, 2.0])


def test_nan_and_inf_keep_their_meaning():
    @kernel
    def total(values):
        total = 0.0
        for k in range(values.shape[0]):
            total += values[k]
        return total

    assert np.isnan(total(np.array([1.0, np.nan, 2.0])))
    assert total(np.array([1.0, np.inf])) == np.inf
    assert np.isnan(total(np.array([-np.inf, np.inf])))


@compiled_only
def test_kernels_release_the_interpreter_lock_and_do_not_raise_on_division():
    @kernel
    def ratio(a, b):
        return a / b

    assert ratio(1.0, 0.0) == np.inf
    assert ratio.targetoptions["nogil"]


# The time it takes, and what is said of it --------------------------------------------------------------------------


@compiled_only
def test_compilation_is_not_on_the_clock():
    @kernel
    def slow(obj, x):
        return obj.twice(x)

    began = time.perf_counter()
    with Stopwatch() as outer:
        slow(Line(1.0), 1)
        with Stopwatch() as inside:
            slow(Line(1.0), 2.0)
    passed = time.perf_counter() - began
    assert list(slow.stats.cache_misses.values()) == [1, 1]
    assert 0.0 <= inside.seconds <= outer.seconds < passed
    with Stopwatch() as watch:
        time.sleep(0.01)
    assert watch.seconds >= 0.01


def test_a_thread_stops_the_watches_it_works_for(monkeypatch):
    """One without a watch works for all that run; one with a watch for its own alone."""
    now = [0.0]
    monkeypatch.setattr(stopwatch.time, "perf_counter", lambda: now[0])

    def compile_for(seconds):
        with stopwatch.compiling():
            now[0] += seconds

    def compile_by_itself():
        with Stopwatch() as own:
            compile_for(2.0)
            now[0] += 4.0
        assert own.seconds == 4.0

    with Stopwatch() as watch, concurrent.futures.ThreadPoolExecutor(1) as pool:
        now[0] += 1.0
        pool.submit(compile_for, 10.0).result()
        assert pool.submit(compile_by_itself).result() is None
        with stopwatch.compiling(), stopwatch.compiling():
            now[0] += 20.0
    assert watch.seconds == 1.0 + 6.0


@pytest.mark.slow
@compiled_only
def test_the_seconds_of_a_run_are_those_of_the_solver():
    @loss
    class New(NamedTuple):
        def value(self, p, y):
            return 0.5 * (p - y) * (p - y)

        def derivative(self, p, y):
            return p - y

        def second_derivative(self, p, y):
            return 1.0 + 0.0 * p

        def smoothness(self):
            return 1.0

    problem = cg.Problem(np.eye(3), np.ones(3), New(), cg.constraints.L1Ball(1.0))
    began = time.perf_counter()
    result = cg.minimize(problem, "sfw", max_steps=3, random_state=0)
    passed = time.perf_counter() - began
    assert result.seconds < 0.5 * passed, "the first step compiles, and takes nearly all of the time"
    assert result.trace.seconds[-1] == result.seconds


@contextlib.contextmanager
def announced():
    lines = []
    with announce_to(lines.append):
        yield lines


def compile_until(is_said, *classes):
    """Compile for a moment, and on until ``is_said()``: the thread that says it may have to wait for its turn."""
    with announcements.announced(classes):
        deadline = time.monotonic() + 60.0
        time.sleep(0.1)
        while not is_said() and time.monotonic() < deadline:
            time.sleep(0.01)


def test_long_compilations_are_announced_once(monkeypatch):
    with announced() as lines:
        monkeypatch.setattr(announcements, "_PATIENCE", 1e6)
        with announcements.announced([cg.losses.Huber]):
            assert lines == []
        monkeypatch.setattr(announcements, "_PATIENCE", 0.05)
        compile_until(lambda: lines, cg.losses.Huber, cg.constraints.L1Ball)
        compile_until(lambda: lines, cg.losses.Huber, cg.constraints.L1Ball)
        assert lines == ["compiling kernels for Huber over L1Ball, once on this machine ..."]
        compile_until(lambda: lines[1:], cg.losses.Squared)
        assert lines[1:] == ["compiling kernels for Huber, Squared over L1Ball, once on this machine ..."]
    monkeypatch.setattr(announcements.store, "can_write", lambda: False)
    with announced() as lines:
        compile_until(lambda: lines)
    assert "in every new process" in lines[0]


def test_short_compilations_add_up(monkeypatch):
    monkeypatch.setattr(announcements, "_PATIENCE", 0.3)
    with announced() as lines:
        for _ in range(4):
            compile_until(lambda: True)
        compile_until(lambda: lines)
    assert lines == ["compiling kernels, once on this machine ..."]


def test_the_logger_hears_what_nobody_else_does(monkeypatch, caplog, capsys):
    monkeypatch.setattr(announcements, "_PATIENCE", 0.0)
    monkeypatch.setattr(announcements._listeners[0], "said", set())
    with caplog.at_level("INFO", logger="condgrad"):
        compile_until(lambda: caplog.text, cg.losses.Huber)
    assert "compiling kernels for" in caplog.text
    assert capsys.readouterr() == ("", ""), "the library never prints"


def test_verbose_shows_it(monkeypatch, capsys):
    monkeypatch.setattr(announcements, "_PATIENCE", 0.0)
    said = []
    with line_writer():
        compile_until(lambda: said.append(capsys.readouterr().err) or said[-1], cg.losses.Huber)
    assert "compiling kernels for Huber" in "".join(said)


# Without a cache, without a compiler -----------------------------------------------------------------------------


@compiled_only
def test_kernels_compile_where_numba_has_another_inside(monkeypatch):
    assert dispatchers.CAN_LEAVE_OUT, "this numba has renamed what the quick compilation of inner functions builds on"
    monkeypatch.setattr(dispatchers, "CAN_LEAVE_OUT", False)

    @kernel
    def part(obj, x):
        return obj.value(x)

    @kernel
    def whole(obj, x):
        return part(obj, x) + obj.twice(x)

    assert whole(Line(2.0), 3.0) == 18.0
    assert part(Line(2.0), 3.0) == 6.0


@compiled_only
def test_the_garbage_collector_is_back_after_a_compilation():
    @kernel
    def one(x):
        return x + 1.0

    assert gc.isenabled()
    one(1.0)
    assert gc.isenabled()
    with pytest.raises(numba.TypingError):
        one("text")
    assert gc.isenabled()


@compiled_only
def test_a_kernel_within_a_kernel_can_be_called_by_itself():
    @kernel
    def part(obj, x):
        if x < 0.0:
            raise ValueError("x is negative")
        return obj.value(x)

    @kernel
    def whole(obj, x):
        return part(obj, x) + 1.0

    assert whole(Line(2.0), 3.0) == 7.0
    assert part(Line(2.0), 3.0) == 6.0
    with pytest.raises(ValueError, match="x is negative"):
        whole(Line(2.0), -1.0)


TINY = """
    import sys
    import numpy as np
    import condgrad as cg

    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((12, 4)), rng.choice([-1.0, 1.0], 12)
    X[abs(X) < 0.3] = 0.0
    import scipy.sparse
    for intercept in (False, True):
        for make in (np.asarray, scipy.sparse.csr_matrix):
            problem = cg.Problem(make(X), y, cg.losses.Logistic(), cg.constraints.L1Ball(1.5), intercept=intercept)
            # An exact line search between two atoms leaves them equally good up to rounding: with it, only FrankWolfe
            # takes the same way twice.
            rule = cg.step_sizes.ShortStep()
            solvers = [cg.solvers.by_name(name)(rule) for name in ("fw", "away", "pairwise", "bpcg")]
            for solver in (cg.solvers.FrankWolfe(), *solvers):
                result = cg.minimize(problem, solver, tol=0.0, max_steps=12)
                print(*(float(value).hex() for value in (*result.w, result.objective, result.gap, result.intercept)))
"""


def run(code, **environment):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(code)],
        env={**os.environ, **environment}, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


@pytest.mark.slow
def test_interpreted_runs_equal_compiled_ones():
    compiled_run, plain_run = run(TINY, NUMBA_DISABLE_JIT="0"), run(TINY, NUMBA_DISABLE_JIT="1")
    rows = [[[float.fromhex(v) for v in row.split()] for row in out.splitlines()] for out in (compiled_run, plain_run)]
    assert len(rows[0]) == 20
    np.testing.assert_allclose(rows[0], rows[1], rtol=1e-12, atol=1e-12)


def test_a_kernel_without_compiler_is_the_function_itself():
    run(
        """
        from condgrad.compiled import kernel
        def double(x):
            return 2 * x
        assert kernel(double) is double
        """,
        NUMBA_DISABLE_JIT="1",
    )


def kernels_of(tree):
    """Yield what may be compiled: functions marked @kernel and the methods of NamedTuple classes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and any(ast.unparse(mark) == "kernel" for mark in node.decorator_list):
            yield node
        if isinstance(node, ast.ClassDef) and any(ast.unparse(base) == "NamedTuple" for base in node.bases):
            yield from (part for part in node.body if isinstance(part, ast.FunctionDef))


def sums_and_stores(loop):
    inside = [node for line in loop.body for node in ast.walk(line)]
    if any(isinstance(node, (ast.For, ast.While)) for node in inside):
        return False  # only the innermost loop is vectorised
    additions = [node for node in inside if isinstance(node, ast.AugAssign) and isinstance(node.op, (ast.Add, ast.Sub))]
    is_count = [ast.unparse(node.value) in ("1", "np.uint64(1)") for node in additions]
    sums = [isinstance(node.target, ast.Name) and not count for node, count in zip(additions, is_count, strict=True)]
    return any(sums) and any(isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) for node in inside)


def test_no_loop_of_a_kernel_sums_and_stores():
    """Whether LLVM's vectorised version of such a loop runs depends on addresses, and with it the rounding."""
    package = pathlib.Path(cg.__file__).parent
    for path in sorted(package.rglob("*.py")):
        for function in kernels_of(ast.parse(path.read_text())):
            for loop in (node for node in ast.walk(function) if isinstance(node, (ast.For, ast.While))):
                assert not sums_and_stores(loop), f"{path.relative_to(package)}, line {loop.lineno}"
