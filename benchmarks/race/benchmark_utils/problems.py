"""The problems of the race: the data of the papers, and two simulated ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import condgrad as cg
from condgrad import datasets


class Entry(NamedTuple):
    """One problem: how it is made, and the paper that used its data."""

    make: Callable[[], Any]
    paper: str


def over_l1(X: Any, y: Any, loss: Any) -> cg.Problem:
    """Return the problem over the l1 ball at which the multiplier is a tenth of its largest value.

    Estimators choose their radius so by default: it binds, and leaves a sparse solution.
    """
    radius = cg.radius_max(X, y, loss=loss, eps=0.1)
    return cg.Problem(X, y, loss, cg.constraints.L1Ball(radius))


def _stored(name: str, loss: Any = None) -> Callable[[], Any]:
    def make() -> cg.Problem:
        data = datasets.load(name)
        return over_l1(data.X, data.y, cg.losses.Logistic() if loss is None else loss)

    return make


def _expanded(name: str, degree: int) -> Callable[[], Any]:
    """All products of up to ``degree`` features, scaled to columns of unit length, as Frandi et al. have them."""

    def make() -> cg.Problem:
        from sklearn.preprocessing import PolynomialFeatures, minmax_scale

        data = datasets.load(name)
        X = PolynomialFeatures(degree, include_bias=False).fit_transform(minmax_scale(data.X, (-1.0, 1.0)))
        X -= X.mean(axis=0)
        lengths = np.sqrt(np.square(X).sum(axis=0))
        return over_l1(X / np.where(lengths > 0.0, lengths, 1.0), data.y - data.y.mean(), cg.losses.Squared())

    return make


def _housing() -> cg.Problem:
    """House prices; the columns have very different units, so they are standardised."""
    from sklearn.preprocessing import scale

    data = datasets.load("california-housing")
    return over_l1(scale(data.X), scale(data.y), cg.losses.Squared())


def _movielens() -> Any:
    """Robust completion in a nuclear ball; the solvers that keep matrices in factors take it."""
    data = datasets.load_movielens("100k")
    values, ball = data.values - data.values.mean(), cg.constraints.NuclearBall(540.0)
    return cg.CompletionProblem(data.rows, data.cols, values, cg.losses.Huber(1.0), ball, shape=data.shape)


def _dense() -> cg.Problem:
    data = datasets.simulate_classification(5000, 500, random_state=0)
    return over_l1(data.X, data.y, cg.losses.Logistic())


def _sparse() -> cg.Problem:
    data = datasets.simulate_sparse(20_000, 50_000, 25, random_state=0)
    return over_l1(data.X, data.y, cg.losses.Logistic())


# In the order of their cost: the time that small ones leave over goes to the large ones.
PROBLEMS = {
    "breast-cancer": Entry(_stored("breast-cancer"), "Negiar et al."),
    "svmguide3": Entry(_stored("svmguide3"), "Xiong & Freund"),
    "a1a": Entry(_stored("a1a"), "Xiong & Freund"),
    "a2a": Entry(_stored("a2a"), "Xiong & Freund"),
    "w1a": Entry(_stored("w1a"), "Xiong & Freund"),
    "duke": Entry(_stored("duke", cg.losses.Squared()), "Frandi et al."),
    "pyrim^4": Entry(_expanded("pyrim", 4), "Frandi et al. (degree 4 in place of 5)"),
    "triazines^3": Entry(_expanded("triazines", 3), "Frandi et al. (degree 3 in place of 4)"),
    "california-housing": Entry(_housing, "Negiar et al."),
    "phishing": Entry(_stored("phishing"), "Xiong & Freund"),
    "a8a": Entry(_stored("a8a"), "Xiong & Freund"),
    "a9a": Entry(_stored("a9a"), "Xiong & Freund"),
    "ijcnn1": Entry(_stored("ijcnn1"), "Xiong & Freund"),
    "w8a": Entry(_stored("w8a"), "Xiong & Freund"),
    "dorothea": Entry(_stored("dorothea", cg.losses.Squared()), "Frandi et al."),
    "covtype-subset": Entry(_stored("covtype-subset"), "Xiong & Freund"),
    "news20-binary": Entry(_stored("news20-binary"), "Negiar et al. (in place of RCV1)"),
    "movielens-100k": Entry(_movielens, "Negiar et al. (slides)"),
    "dense": Entry(_dense, "simulated: 5,000 x 500"),
    "sparse": Entry(_sparse, "simulated: 20,000 x 50,000, 25 entries a row"),
}


def problem(name: str) -> Any:
    """Return the problem of that name; FileNotFoundError says which file is missing."""
    return PROBLEMS[name].make()


def value_at_zero(F: Any) -> float:
    """Return F(0), to which gaps are relative."""
    if isinstance(F, cg.CompletionProblem):
        return float(np.mean(F.loss.value(np.zeros(F.n_samples), F.samples.y)))
    return float(F.objective(np.zeros(F.n_features)))
