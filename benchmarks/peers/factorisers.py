"""Libraries that factorise ratings, as `completion.py` runs them: each fit returns a function that predicts places.

cmfrec is alternating least squares. It needs a rank and a penalty: those shown are its defaults (rank 40, lambda 10),
other ranks, and the penalty that its documentation names for ratings of films, lambda 0.05 times the ratings of a row.

LibMF is stochastic gradient descent, here by the package `libmf`. Its `fit` reads an array of triples by rows, and its
`predict` reads an array of pairs by *columns*: an array in the usual order gives predictions of other places. The
package is built without vector instructions and threads. Shown are its defaults (rank 8), and a higher rank with a
squared penalty.

`als` is alternating least squares in NumPy, for the parts that show what the model alone gives.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse

import condgrad as cg

Predict = Callable[[np.ndarray, np.ndarray], np.ndarray]
BY_COUNT = {"lambda_": 0.05, "scale_lam": True}
SQUARED = {"lambda_p1": 0.0, "lambda_q1": 0.0, "lambda_p2": 0.05, "lambda_q2": 0.05}


def cmfrec(train: Any, shape: tuple[int, int], **settings: Any) -> Predict:
    """Fit alternating least squares with biases on one thread."""
    from cmfrec import CMF

    X = scipy.sparse.coo_matrix((train.values, (train.rows, train.cols)), shape=shape)
    return CMF(nthreads=1, verbose=False, **settings).fit(X).predict


def libmf(train: Any, shape: tuple[int, int], **settings: Any) -> Predict:
    """Fit factors by stochastic gradients on one thread; the mean of the ratings predicts what it does not know."""
    with contextlib.redirect_stdout(io.StringIO()):  # it tells where its library lies
        from libmf import mf

    model = mf.MF(nr_threads=1, quiet=True, **settings)
    model.fit(np.column_stack([train.rows, train.cols, train.values]).astype(np.float32))
    mean = float(train.values.mean())

    def predict(rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        inside = (rows < model.model.m) & (cols < model.model.n)
        p = np.full(len(rows), mean)
        places = np.column_stack([rows[inside], cols[inside]]).astype(np.float32)
        p[inside] = model.predict(np.asfortranarray(places))
        return np.where(np.isfinite(p), p, mean)

    return predict


def als(train: Any, test: Any, shape: tuple[int, int], rank: int, penalty: float, sweeps: int = 12) -> np.ndarray:
    """Return predictions of biases and alternating ridge regressions, penalised by the number of ratings of a row."""
    m, n = shape
    start = cg.CompletionProblem(
        train.rows,
        train.cols,
        train.values,
        cg.losses.Squared(),
        cg.constraints.NuclearBall(1.0),
        shape=shape,
        biases=True,
    )
    a, b = start.best_biases(np.zeros(start.n_samples))  # type: ignore[misc]
    residual = train.values - a[train.rows] - b[train.cols]
    R = scipy.sparse.csr_matrix((residual, (train.rows, train.cols)), shape=shape)
    Rt = R.T.tocsr()
    B = np.random.default_rng(0).standard_normal((n, rank)) * 0.1
    A = np.zeros((m, rank))
    eye = np.eye(rank)
    for _ in range(sweeps):
        for X, Y, M in ((A, B, R), (B, A, Rt)):
            for i in range(M.shape[0]):
                part = slice(M.indptr[i], M.indptr[i + 1])
                if part.stop > part.start:
                    Q = Y[M.indices[part]]
                    X[i] = np.linalg.solve(Q.T @ Q + penalty * (part.stop - part.start) * eye, Q.T @ M.data[part])
    return a[test.rows] + b[test.cols] + np.einsum("ij,ij->i", A[test.rows], B[test.cols])


PEERS: dict[str, tuple[Callable[..., Predict], dict[str, Any]]] = {
    "cmfrec, as it comes": (cmfrec, {}),
    "cmfrec, rank 20": (cmfrec, {"k": 20}),
    "cmfrec, rank 10": (cmfrec, {"k": 10}),
    "cmfrec, lambda by count": (cmfrec, BY_COUNT),
    "cmfrec, rank 20, lambda by count": (cmfrec, {"k": 20, **BY_COUNT}),
    "cmfrec, rank 10, lambda by count": (cmfrec, {"k": 10, **BY_COUNT}),
    "LibMF, as it comes": (libmf, {}),
    "LibMF, rank 32, squared penalty": (libmf, {"k": 32, **SQUARED}),
}


def installed() -> dict[str, tuple[Callable[..., Predict], dict[str, Any]]]:
    """Return the peers whose package is installed."""
    return {name: peer for name, peer in PEERS.items() if importlib.util.find_spec(peer[0].__name__) is not None}
