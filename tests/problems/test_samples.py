"""The outer function of all predictions: its expansion in pieces, beside its parts one by one."""

import numpy as np
import pytest

import condgrad as cg
from condgrad.problems import samples as module
from condgrad.problems.samples import total_block
from condgrad.problems.totals import Totals


def samples_of(loss, n):
    rng = np.random.default_rng(n)
    y = rng.choice([-1.0, 1.0], n) if loss.classes else rng.random(n) + 0.01
    weight = np.where(rng.random(n) < 0.2, 0.0, rng.random(n))
    X = rng.standard_normal((n, 2))
    problem = cg.Problem(X, y, loss, cg.constraints.L1Ball(1.0), sample_weight=weight)
    return problem.samples, 3.0 * rng.standard_normal(n)


@pytest.mark.parametrize("loss", [cg.losses.Logistic(), cg.losses.Squared(), cg.losses.Gamma()], ids=str)
@pytest.mark.parametrize("n", [3, module._PIECE, 2 * module._PIECE + 7])
def test_an_expansion_has_the_derivatives_the_curvatures_and_the_sums(loss, n):
    samples, p = samples_of(loss, n)
    totals, alpha, d = samples.expand(p, 0.25)
    np.testing.assert_allclose(alpha, samples.derivatives(p, 0.25), rtol=1e-14)
    np.testing.assert_allclose(d, samples.curvatures(p, 0.25), rtol=1e-14)
    assert totals.value == pytest.approx(samples.value(p, 0.25), rel=1e-13)
    assert totals.size == pytest.approx(samples.mean_size(p, 0.25), rel=1e-13)
    assert totals.balance == pytest.approx(alpha.sum(), abs=1e-13)
    assert totals.prediction == pytest.approx(samples.weight @ (p + 0.25) ** 2, rel=1e-13)
    alone = np.zeros(len(totals))
    total_block(samples, 0, p, 0.25, alpha, d, alone)
    np.testing.assert_allclose(alone, totals, rtol=1e-12, atol=1e-14)


def test_ranges_of_samples_add_up_to_all_of_them(monkeypatch):
    samples, p = samples_of(cg.losses.Logistic(), 1500)
    whole = samples.expand(p, -0.5)
    monkeypatch.setattr(module.threads, "cut", lambda n, *_: np.array([0, 400, 401, n]))
    parts = samples.expand(p, -0.5)
    np.testing.assert_allclose(Totals(*parts.totals), whole.totals, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(parts.alpha, whole.alpha, rtol=1e-14)
