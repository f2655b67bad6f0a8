"""The gap and what it bounds, along a run, with the lower bound of the optimum that follows from it."""

import matplotlib.pyplot as plt
import numpy as np

import condgrad as cg
from condgrad import datasets

data = datasets.simulate_classification(500, 100, n_informative=8, random_state=0)
problem = cg.Problem(data.X, data.y, cg.losses.Logistic(), cg.constraints.L1Ball(radius=6.0))
best = cg.minimize(problem, tol=1e-12).objective
trace = cg.minimize(problem, "pairwise", tol=1e-7, evaluate_every=1).trace
figure, ax = plt.subplots(figsize=(5.4, 3.4))
ax.semilogy(trace["epoch"], trace["gap"], color="#0072b2", label="the gap, which the run knows")
excess = np.maximum(trace["objective"] - best, 1e-16)
ax.semilogy(trace["epoch"], excess, color="#d55e00", label="F(w) − F*, which nobody knows")  # noqa: RUF001
ax.set_xlabel("epochs (passes over the samples)")
ax.set_ylim(1e-11, None)
ax.legend(frameon=False)
figure.tight_layout()
