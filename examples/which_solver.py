"""
Which solver?
=============

The short answer is ``solver="auto"``: it weighs the estimated work and says why it chose. This page lets some of the
others run on one problem, and reads the picture.
"""

import matplotlib.pyplot as plt

import condgrad as cg
from condgrad import datasets
from condgrad.plotting import plot_comparison, plot_convergence

data = datasets.simulate_classification(3000, 200, n_informative=15, correlation=0.5, random_state=0)
problem = cg.Problem(data.X, data.y, cg.losses.Logistic(), cg.constraints.L1Ball(radius=6.0))

chosen = cg.minimize(problem, tol=1e-8)
print(chosen.solver)

# %%
# Methods of full passes: every step sees the whole gradient. "away" and "pairwise" also take weight from bad corners,
# and converge linearly on polytopes; "bpcg" asks for a new corner only where the old ones no longer pay.
#
# Stochastic methods see a few samples a step. They are good at the start, for rough answers on many samples.

solvers = {
    "fw": "fw",
    "pairwise": "pairwise",
    "bpcg": "bpcg",
    "corrective": "corrective",
    "sfw": cg.solvers.SFW(batch_size=100),
    "svrf": "svrf",
}
runs = {}
for name, solver in solvers.items():
    cg.minimize(problem, solver, max_epochs=2, random_state=0)  # compiles, so that the clock sees the solver alone
    runs[name] = cg.minimize(problem, solver, tol=1e-7, max_epochs=150, random_state=0)
    run = runs[name]
    print(f"{name:>10}: gap {run.gap:.1e} after {run.n_epochs:5.0f} epochs, {run.seconds:.2f} s; {run.status.name}")

# %%
# The strong line is the best gap so far, exact at every record.

figure, (left, right) = plt.subplots(1, 2, figsize=(11.0, 4.0), layout="constrained")
plot_convergence(runs, x="epoch", ax=left)
plot_comparison(runs, goals=(1e-2, 1e-4, 1e-6), ax=right)
plt.show()

# %%
# Rules of thumb:
#
# * leave it at "auto" for an answer;
# * "corrective" for many digits over l1, group and other balls;
# * "bpcg" or "pairwise" for polytopes whose oracle is dear;
# * "sfw" for a first answer on data that hardly fit into memory, and for ``partial_fit``;
# * "fw" to compare a paper with.
