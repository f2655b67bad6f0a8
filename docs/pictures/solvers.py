"""The gaps of five solvers on one problem, against passes over the data."""

import condgrad as cg
from condgrad import datasets
from condgrad.plotting import plot_convergence

data = datasets.simulate_classification(2000, 200, n_informative=10, random_state=0)
problem = cg.Problem(data.X, data.y, cg.losses.Logistic(), cg.constraints.L1Ball(radius=8.0))
runs = {
    name: cg.minimize(problem, name, tol=1e-9, max_epochs=200, random_state=0)
    for name in ("corrective", "bpcg", "pairwise", "fw", "sfw")
}
plot_convergence(runs, x="epoch")
