"""
A fair classifier
=================

May the mean score of two groups differ? A classifier that never saw the group can still treat it differently, through
features that go with it. The difference of the mean scores is linear in w, so that "at most c" is **two linear rows**
beside the budget of the l1 norm (Zafar et al., 2017). Their multiplier is the price: what the loss would gain if c
grew.
"""

import matplotlib.pyplot as plt
import numpy as np

import condgrad as cg

rng = np.random.default_rng(0)
n, d = 4000, 15
group = rng.random(n) < 0.4
X = rng.standard_normal((n, d))
X[:, :3] += 0.9 * group[:, None]  # three features go with the group
score = X[:, 0] + X[:, 4] - 0.8 * X[:, 5] + 0.5 * X[:, 6]
y = np.where(score + rng.logistic(size=n) > 0.4, 1.0, -1.0)
train, test = np.arange(n) < 3000, np.arange(n) >= 3000
difference = X[train & group].mean(axis=0) - X[train & ~group].mean(axis=0)


def fair(limit):
    """Return models of l1 norm at most 4 whose mean scores differ by at most the limit."""
    return cg.constraints.LinearlyConstrained(
        cg.constraints.L1Ball(4.0), A_ub=np.vstack([difference, -difference]), b_ub=[limit, limit]
    )


# %%
# From no difference at all to as much as the data suggest. Every model is certified, so a loss of accuracy is the price
# of the limit and not of a solver that stopped early.

limits = np.linspace(0.0, 1.2, 9)
accuracy, differences, prices = [], [], []
for limit in limits:
    problem = cg.Problem(X[train], y[train], cg.losses.Logistic(), fair(limit), intercept=True)
    result = cg.minimize(problem, tol=1e-7)
    says_yes = X[test] @ result.w + result.intercept > 0.0
    accuracy.append(np.mean(says_yes == (y[test] > 0.0)))
    differences.append(says_yes[group[test]].mean() - says_yes[~group[test]].mean())
    prices.append(result.multipliers.ub.sum())
    print(
        f"limit {limit:.2f}: accuracy {accuracy[-1]:.3f}, {100 * differences[-1]:+5.1f}% more yes in the group, "
        f"price {prices[-1]:.4f}, gap {result.gap:.0e}"
    )

# %%
# The multiplier falls to zero where the limit ceases to bind.

figure, (left, right) = plt.subplots(1, 2, figsize=(10.0, 3.6), layout="constrained")
left.plot(limits, accuracy, "o-", color="#0072b2", label="test accuracy")
left.plot(limits, np.abs(differences), "s--", color="#d55e00", label="difference of the shares of yes")
left.set(xlabel="limit of the difference of mean scores", ylim=(0, 1))
left.legend(frameon=False)
right.plot(limits, prices, "o-", color="#009e73")
right.set(xlabel="limit of the difference of mean scores", ylabel="price: loss saved per unit of the limit")
plt.show()
