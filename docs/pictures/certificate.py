"""Objective and lower bound of a run: F* is between them, and they meet."""

import matplotlib.pyplot as plt
import numpy as np

import condgrad as cg
from condgrad import datasets

data = datasets.simulate_classification(500, 100, n_informative=8, random_state=0)
problem = cg.Problem(data.X, data.y, cg.losses.Logistic(), cg.constraints.L1Ball(radius=6.0))
best = cg.minimize(problem, tol=1e-12).objective
trace = cg.minimize(problem, "pairwise", tol=1e-4, evaluate_every=1).trace
bound = np.maximum.accumulate(trace["objective"] - trace["gap"])
figure, ax = plt.subplots(figsize=(6.0, 3.4), layout="constrained")
ax.plot(trace["epoch"], trace["objective"], color="#d55e00", label="objective F(w)")
ax.plot(trace["epoch"], bound, color="#0072b2", label="lower bound, F(w) − gap, the best so far")  # noqa: RUF001
ax.fill_between(trace["epoch"], bound, trace["objective"], color="0.9")
ax.axhline(best, color="black", linewidth=0.8, linestyle=":")
ax.annotate("F*", (0.0, best), xytext=(2, 3), textcoords="offset points")
ax.set(xlabel="epochs (passes over the samples)", ylim=(best - 0.25, best + 0.3))
ax.legend(frameon=False)
