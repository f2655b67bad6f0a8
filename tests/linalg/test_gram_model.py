"""Quadratics over an l1 ball, or with an l1 penalty, on their Gram matrix: solutions, factors, and what rounds."""

import numpy as np
import pytest

from condgrad.linalg.gram_minimiser import SOLVED, solve_model
from condgrad.linalg.gram_model import empty_model, enter, enter_four, factor, part_of, recentre


def model_of(n, d, seed, is_symmetric=True):
    """Return a model of d atoms whose matrix has rank n at most, the origin being another point than zero."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) + rng.standard_normal((n, 1))
    model = empty_model(d + 3, is_symmetric)
    model.G[:d, :d] = X.T @ X / n
    model.append(d)
    origin = rng.standard_normal(d) * (rng.random(d) < 0.3)
    if not is_symmetric:
        origin = np.abs(origin)
    recentre(model, origin, X.T @ rng.standard_normal(n) / np.sqrt(n))  # in the range of the matrix: it has a minimum
    return model


def exact_correlations(model):
    d = int(model.n_atoms())
    return model.c[:d] - model.G[:d, :d] @ (model.x[:d] - model.origin[:d])


def check_factor(model):
    size = int(model.n_support())
    S, U = model.support[:size], np.triu(model.U[:size, :size])
    np.testing.assert_allclose(U.T @ U, model.G[np.ix_(S, S)], atol=1e-9)
    assert set(S.tolist()) == set(np.flatnonzero(model.is_in[: model.n_atoms()]).tolist())


@pytest.mark.parametrize("is_symmetric", [True, False])
@pytest.mark.parametrize("is_penalised", [True, False])
@pytest.mark.parametrize("caution", [0.0, 0.5])
@pytest.mark.parametrize(("n", "d"), [(60, 30), (25, 40), (90, 70)])
def test_minimisers_fulfil_the_conditions_of_optimality(n, d, caution, is_penalised, is_symmetric):
    for seed in range(8):
        model = model_of(n, d, seed, is_symmetric)
        for target in (0.9, 0.5, 0.1) if is_penalised else (0.3, 1.0, 3.0):
            tol = -np.inf if is_penalised else 1e-12
            status, _, alpha, _ = solve_model(model, 0.0, is_penalised, target, tol, 5000, caution)
            x, correlation = model.x[:d], exact_correlations(model)
            assert status == SOLVED
            np.testing.assert_allclose(model.correlation[:d], correlation, atol=1e-8)
            check_factor(model)
            sizes = np.abs(correlation) if is_symmetric else correlation
            assert sizes.max() <= alpha + 1e-8  # no atom is steeper than the multiplier,
            used = x != 0.0
            np.testing.assert_allclose(
                correlation[used], alpha * np.sign(x[used]), atol=1e-8
            )  # and those in use have it
            assert is_symmetric or x.min() >= -1e-12
            if is_penalised:
                assert alpha == target
            else:
                assert np.abs(x).sum() <= target + 1e-9 and alpha * (target - np.abs(x).sum()) <= 1e-8


def enter_each(model, atoms):
    for k in atoms:
        enter(model, k)


def test_four_atoms_enter_as_one_after_the_other_and_dependent_ones_stay_out():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 12))
    X[:, 9] = X[:, 2] - X[:, 7]  # depends on two that are in before it: one of the support, one of the four
    models = []
    for let_in in (enter_four, enter_each):
        model = empty_model(12)
        model.G[:12, :12] = X.T @ X
        model.append(12)
        factor(model, np.array([2, 5, 0]))
        let_in(model, np.array([7, 9, 1, 11]))
        check_factor(model)
        models.append(model)
    assert models[0].support[: models[0].n_support()].tolist() == [2, 5, 0, 7, 1, 11]
    np.testing.assert_allclose(np.triu(models[0].U[:6, :6]), np.triu(models[1].U[:6, :6]), atol=1e-11)


def test_many_moves_do_not_pile_up_rounding():
    """Along a path of penalties correlations are carried on from model to model, and are made afresh now and then."""
    model = model_of(80, 40, 3)
    for target in np.geomspace(1.0, 1e-3, 400):
        solve_model(model, 0.0, True, target, -np.inf, 5000)
    np.testing.assert_allclose(model.correlation[:40], exact_correlations(model), atol=1e-11)


def test_a_part_of_a_model_keeps_its_origin():
    model = model_of(60, 30, 1)
    solve_model(model, 0.0, True, 0.3, -np.inf, 1000)
    kept = np.flatnonzero(model.is_in[:30] | (model.origin[:30] != 0.0))
    part = part_of(model, kept, 40)
    np.testing.assert_allclose(exact_correlations(part), exact_correlations(model)[kept], atol=1e-12)
    check_factor(part)
