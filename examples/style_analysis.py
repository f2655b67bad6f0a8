"""
Returns-based style analysis
============================

What does a fund really hold? Sharpe (1992) explains its returns by a portfolio of indices with weights that are at
least 0 and sum to one: the simplex again. A window that moves over the months shows how the style changes, and every
window is certified, so that no change of style is an accident of the optimiser.
"""

import matplotlib.pyplot as plt
import numpy as np

import condgrad as cg

# %%
# Monthly returns of six indices with common market risk, and a fund that moves from growth shares to bonds over ten
# years, with a little return of its own. The data are simulated; public returns of such indices are in the data library
# of Kenneth French, and funds publish theirs.

names = ["bills", "bonds", "value", "growth", "small", "abroad"]
rng = np.random.default_rng(1)
n_months = 120
market = 0.6 + 4.0 * rng.standard_normal(n_months)
beta = np.array([0.0, 0.1, 0.9, 1.1, 1.2, 0.8])
own = np.array([0.05, 1.2, 1.5, 1.8, 2.5, 2.2])
indices = 0.2 + market[:, None] * beta + own * rng.standard_normal((n_months, 6))
share = np.linspace(0.0, 1.0, n_months)[:, None]
true = (1 - share) * np.array([0.0, 0.1, 0.2, 0.6, 0.1, 0.0]) + share * np.array([0.1, 0.6, 0.2, 0.1, 0.0, 0.0])
fund = (true * indices).sum(axis=1) + 0.1 + 0.4 * rng.standard_normal(n_months)

# %%
# One fit for each window of 36 months, each starting at the last weights. The intercept is free: it is the return of
# the manager's own choices.

width, result, styles, gaps, alphas = 36, None, [], [], []
for end in range(width, n_months + 1):
    window = slice(end - width, end)
    problem = cg.Problem(indices[window], fund[window], cg.losses.Squared(), cg.constraints.Simplex(), intercept=True)
    result = cg.minimize(problem, "pairwise", tol=1e-7, w0=None if result is None else result.w)
    styles.append(result.w)
    gaps.append(result.gap)
    alphas.append(result.intercept)
styles = np.array(styles)
print(f"{len(styles)} windows, the largest gap is {max(gaps):.1e}")
print("first window:", dict(zip(names, styles[0].round(2).tolist(), strict=True)))
print("last window: ", dict(zip(names, styles[-1].round(2).tolist(), strict=True)))
print(f"own return: {np.mean(alphas):.2f} per month (the truth is 0.10)")

# %%
# The weights never leave the simplex, so that they can be drawn as areas.

ends = np.arange(width, n_months + 1)
figure, ax = plt.subplots(figsize=(7.0, 4.0), layout="constrained")
colours = ["#999999", "#0072b2", "#56b4e9", "#d55e00", "#e69f00", "#009e73"]
ax.stackplot(ends, styles.T, labels=names, colors=colours, alpha=0.85)
ax.set(xlabel="last month of the window", ylabel="share of the portfolio", ylim=(0, 1), xlim=(ends[0], ends[-1]))
ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
plt.show()
