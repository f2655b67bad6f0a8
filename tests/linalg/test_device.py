"""Matrices on a device: every pass is that of NumPy, on the processor as a stand-in and on a GPU if there is one."""

from typing import NamedTuple

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose
from stand_in_device import devices

from condgrad import losses
from condgrad.compiled import where
from condgrad.linalg.device.base import Losses, text_of
from condgrad.linalg.device.dense import DenseOnDevice
from condgrad.linalg.device.digest import digest
from condgrad.linalg.device.formulas import METHODS, parameters_of, source_of
from condgrad.linalg.device.sparse import OneHotOnDevice, SparseOnDevice
from condgrad.linalg.spread import spread_rows


@pytest.fixture(params=devices())
def device(request):
    return request.param()


def dense(rng, device):
    X = rng.standard_normal((61, 300)).astype(np.float32)
    return DenseOnDevice(device, device.to_device(X)), X


def odd(rng, device):
    X = rng.standard_normal((50, 37))
    return DenseOnDevice(device, device.to_device(X)), X


def centred(rng, device):
    X, shift = 100.0 + rng.standard_normal((50, 40)), rng.uniform(99.0, 101.0, 40)
    return DenseOnDevice(device, device.to_device(X), shift), X - shift


def wide(rng, device):
    X = rng.standard_normal((20, 1100)).astype(np.float32)
    return DenseOnDevice(device, device.to_device(X)), X


def long(rng, device):
    X = rng.standard_normal((30, 250))
    return DenseOnDevice(device, device.to_device(X)), X


def odd_bfloat16(rng, device):
    return bfloat16(rng, device, 23)


def bfloat16(rng, device, d=24):
    X = rng.standard_normal((40, d)).astype(np.float32).view(np.uint32) >> np.uint32(16)
    bits = X.astype(np.uint16)
    return DenseOnDevice(device, device.to_device(bits)), (X << np.uint32(16)).view(np.float32)


def sparse(rng, device):
    X = scipy.sparse.random(200, 50, 0.2, format="csr", random_state=rng)
    return SparseOnDevice(device, device.sparse.csr_matrix(X)), X.toarray()


def one_hot(rng, device):
    codes = np.array([rng.integers(0, 5, 300), rng.integers(5, 12, 300), rng.integers(12, 15, 300)], dtype=np.int32)
    codes[2, ::7] = -1  # no entry
    X = np.zeros((300, 15))
    for field in codes:
        X[np.flatnonzero(field >= 0), field[field >= 0]] = 1.0
    return OneHotOnDevice(device, device.to_device(codes), 15), X


KINDS = [dense, odd, centred, long, wide, bfloat16, odd_bfloat16, sparse, one_hot]


@pytest.mark.parametrize("make", KINDS)
def test_every_pass_is_that_of_numpy(make, device):
    rng = np.random.default_rng(0)
    matrix, X = make(rng, device)
    X = X.astype(np.float64)
    n, d = X.shape
    loss, y, v = losses.Logistic(), rng.choice([-1.0, 1.0], n), rng.uniform(0.5, 2.0, n)
    v /= v.sum()
    w, b = rng.standard_normal(d) / d, 0.3
    there = Losses(
        source_of(type(loss)), device.to_device(parameters_of(loss)), device.to_device(y), device.to_device(v), 0.0
    )
    p, close = X @ w, {"rtol": 1e-11, "atol": 1e-13}
    alpha, curvature = v * loss.derivative(p + b, y), v * loss.second_derivative(p + b, y)

    assert matrix.shape == X.shape
    found = matrix.predict(w)
    assert_allclose(device.to_host(found), p, **close)
    for known in (None, found):
        swept = matrix.expand(w, b, known, there)
        assert_allclose(swept.r, X.T @ alpha, **close)
        assert_allclose(device.to_host(swept.D), curvature, **close)
        value, slope = v @ loss.value(p + b, y), v @ loss.derivative(p + b, y) ** 2
        expected = value, value, slope, v @ (p + b) ** 2, v @ y**2, alpha.sum()
        assert_allclose(swept.sums[:6], expected, rtol=1e-11)
        assert_allclose(swept.sums[8], curvature.sum(), rtol=1e-11)
    assert_allclose(matrix.combine(device.to_device(alpha)), X.T @ alpha, **close)
    squares, largest = matrix.measure(there)
    assert_allclose(squares, v @ X**2, rtol=1e-11)
    assert largest == np.abs(X).max()


@pytest.mark.parametrize("make", KINDS)
def test_parts_and_grams_are_those_of_numpy(make, device):
    rng = np.random.default_rng(1)
    matrix, X = make(rng, device)
    X = X.astype(np.float64)
    n, d = X.shape
    rows, index, value, c = (
        np.array([3, 5, 8]),
        np.array([2, 0, 7]),
        np.array([1.0, -2.0, 0.5]),
        rng.uniform(0.1, 1.0, n),
    )
    assert_allclose(device.to_host(matrix.chosen(device.to_device(rows), index)), X[np.ix_(rows, index)])
    assert_allclose(device.to_host(matrix.chosen(slice(2, 9), None)), X[2:9])
    Z = X[:, index] * value
    H, u = matrix.gram(index, value, device.to_device(c), None)
    assert_allclose(H, (Z.T * c) @ Z, rtol=1e-11, atol=1e-13)
    assert_allclose(u, c @ Z, rtol=1e-11, atol=1e-13)
    V = rng.standard_normal((d, 4))
    H, u = matrix.gram_of_products(V, device.to_device(c[:3]), device.to_device(rows))
    assert_allclose(H, ((X[rows] @ V).T * c[:3]) @ (X[rows] @ V), rtol=1e-10, atol=1e-12)
    w = rng.standard_normal(d) / d
    assert_allclose(
        device.to_host(matrix.thinned(3).predict(w)), (X @ w)[spread_rows(len(X), 3)], rtol=1e-11, atol=1e-13
    )


def test_the_formulas_of_every_loss_are_those_of_python(device):
    rng = np.random.default_rng(0)
    names = [cls.__name__ for cls in losses.REGISTERED.values()]
    spaces = [
        f"namespace {name} {{ {source_of(cls)} }}" for name, cls in zip(names, losses.REGISTERED.values(), strict=True)
    ]
    calls = [
        f"if (which == {3 * k + m}) out[i] = {name}::{method}(theta, p[i], y[i]);"
        for k, name in enumerate(names)
        for m, method in enumerate(METHODS)
    ]
    text = "\n".join(
        [
            *spaces,
            'extern "C" __global__ void evaluate(int which, int n, const double* theta, const double* p,'
            " const double* y, double* out) { for (int i = threadIdx.x; i < n; i += blockDim.x) {",
            *calls,
            "} }",
        ]
    )
    p = np.concatenate([rng.standard_normal(20) * 3.0, [0.0, 40.0, -40.0, 800.0, -800.0]])
    for k, cls in enumerate(losses.REGISTERED.values()):
        loss = cls()
        y = rng.choice([-1.0, 1.0] if loss.classes is None else loss.classes, p.size)
        for m, method in enumerate(METHODS):
            out = device.empty(p.size)
            args = (np.int32(3 * k + m), np.int32(p.size), device.to_device(parameters_of(loss)), device.to_device(p))
            device.launch(text, "evaluate", (1, 1), 32, 0, (*args, device.to_device(y), out))
            assert_allclose(
                device.to_host(out), getattr(loss, method)(p, y), rtol=1e-13, atol=1e-300, err_msg=f"{cls} {method}"
            )


@losses.loss
class Looped(NamedTuple):
    """A loss whose formula is no formula."""

    def value(self, p, y):
        """Return the square, after a loop."""
        for _ in range(3):
            p = p + 0.0
        return 0.5 * (p - y) * (p - y)


@losses.loss
class Branched(NamedTuple):
    """A loss with choices of every kind, a constant, and a call of another formula."""

    def value(self, p, y):
        """Return a piecewise formula."""
        e, half = p - y, 0.5
        if e < 0.0 and not e < -LIMIT:
            return half * e**2
        half *= 2.0
        return half * (e if e > 0.0 else -e)

    def derivative(self, p, y):
        """Return the value, which is written before it."""
        return self.value(p, y) + max(0.0, min(p, y)) + where(p > y, np.sqrt(abs(p)), 0.0)

    def second_derivative(self, p, y):
        """Return one."""
        return 1.0


LIMIT = 2.0


def test_choices_and_constants_are_written_in_c():
    text = source_of(Branched)
    assert "if (((e_ < 0.0) && (!(e_ < (-2.0)))))" in text
    assert "pow(e_, 2.0)" in text
    assert "value(theta, p_, y_)" in text


def test_a_formula_that_is_none_is_refused_in_a_sentence():
    with pytest.raises(TypeError, match=r"Looped\.value uses 'for _ in range\(3\).*has no meaning on a device"):
        source_of(Looped)


def test_a_loss_without_source_is_refused_in_a_sentence():
    scope = {"losses": losses}
    exec("class Typed(losses.Squared):\n    def value(self, p, y):\n        return p - y\n", scope)
    with pytest.raises(TypeError, match=r"source of Typed\.value cannot be read"):
        source_of(scope["Typed"])


def test_a_digest_knows_entries_and_places(device):
    a = np.arange(10.0)
    first = digest(device, [device.to_device(a)])
    assert first == digest(device, [device.to_device(a)])
    b = a.copy()
    b[3] = np.nextafter(b[3], 4.0)
    assert first != digest(device, [device.to_device(b)])
    assert first != digest(device, [device.to_device(a[::-1].copy())])


def test_a_text_names_its_stage():
    assert "#define PREDICT 2" in text_of("dense.cu", None, STAGE="PREDICT")
