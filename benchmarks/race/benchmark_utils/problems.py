"""The problems of the race: the data of the papers, and two simulated ones, over l1 balls that bind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import condgrad as cg
from condgrad import datasets


class Entry(NamedTuple):
    """One problem: where its data come from, its loss, and the paper that used it."""

    read: Callable[[], Any]
    loss: Any
    paper: str


def _stored(name: str) -> Callable[[], Any]:
    return lambda: datasets.load(name)


# The radius of each is that at which the multiplier is a tenth of its largest value, as estimators choose it. It binds,
# and leaves a sparse solution.
PROBLEMS = {
    "breast-cancer": Entry(_stored("breast-cancer"), cg.losses.Logistic(), "Negiar et al."),
    "california-housing": Entry(_stored("california-housing"), cg.losses.Squared(), "Negiar et al."),
    "news20-binary": Entry(_stored("news20-binary"), cg.losses.Logistic(), "Negiar et al. (in place of RCV1)"),
    "a1a": Entry(_stored("a1a"), cg.losses.Logistic(), "Xiong & Freund"),
    "a9a": Entry(_stored("a9a"), cg.losses.Logistic(), "Xiong & Freund"),
    "w1a": Entry(_stored("w1a"), cg.losses.Logistic(), "Xiong & Freund"),
    "w8a": Entry(_stored("w8a"), cg.losses.Logistic(), "Xiong & Freund"),
    "ijcnn1": Entry(_stored("ijcnn1"), cg.losses.Logistic(), "Xiong & Freund"),
    "phishing": Entry(_stored("phishing"), cg.losses.Logistic(), "Xiong & Freund"),
    "svmguide3": Entry(_stored("svmguide3"), cg.losses.Logistic(), "Xiong & Freund"),
    "covtype-subset": Entry(_stored("covtype-subset"), cg.losses.Logistic(), "Xiong & Freund"),
    "dorothea": Entry(_stored("dorothea"), cg.losses.Squared(), "Frandi et al."),
    "pyrim": Entry(_stored("pyrim"), cg.losses.Squared(), "Frandi et al."),
    "dense": Entry(
        lambda: datasets.simulate_classification(5000, 500, random_state=0), cg.losses.Logistic(), "simulated"
    ),
    "sparse": Entry(
        lambda: datasets.simulate_sparse(20_000, 50_000, density=5e-4, random_state=0),
        cg.losses.Logistic(),
        "simulated",
    ),
}


def problem(name: str) -> cg.Problem:
    """Return the problem of that name; FileNotFoundError says which file is missing."""
    entry = PROBLEMS[name]
    data = entry.read()
    radius = cg.radius_max(data.X, data.y, loss=entry.loss, eps=0.1)
    return cg.Problem(data.X, data.y, entry.loss, cg.constraints.L1Ball(radius))
