"""
A tariff with monotone factors
==============================

How often does a policy claim? An insurer's model is a Poisson regression: policies were insured for different times
(the exposure, whose logarithm is an offset), and some effects must not go down, because a tariff has to be explained:
more claims in the past must not make insurance cheaper. Order is a set of linear rows, and the answer is certified
like any other.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.preprocessing import OneHotEncoder

import condgrad as cg

# %%
# 20,000 simulated policies: a bonus class from 0 to 11, few policies in the worst ones; a band of the driver's age; the
# exposure in years.

rng = np.random.default_rng(0)
n = 20_000
bonus = np.minimum(rng.geometric(0.35, n) - 1, 11)
age = rng.integers(0, 6, n)
exposure = rng.uniform(0.05, 1.0, n)
age_effect = np.array([0.7, 0.25, 0.0, -0.1, 0.0, 0.2])
claims = rng.poisson(exposure * np.exp(-2.4 + 0.13 * bonus + age_effect[age]))
X = OneHotEncoder(sparse_output=False).fit_transform(np.column_stack([bonus, age]))

# %%
# Rows w_k - w_(k+1) <= 0 for the twelve bonus classes; ages may do as they like, within wide bounds. One level of each
# factor is fixed at 0, so that the others are relative to it and the intercept is the base rate.

n_bonus, n_age = 12, 6
d = n_bonus + n_age
rises = np.zeros((n_bonus - 1, d))
rises[:, :n_bonus] = np.eye(n_bonus)[:-1] - np.eye(n_bonus, k=1)[:-1]
lower, upper = np.full(d, -4.0), np.full(d, 4.0)
for base in (0, n_bonus + 2):
    lower[base] = upper[base] = 0.0
sets = {
    "free": cg.constraints.Polytope(bounds=list(zip(lower, upper, strict=True))),
    "not falling": cg.constraints.Polytope(
        A_ub=rises, b_ub=np.zeros(n_bonus - 1), bounds=list(zip(lower, upper, strict=True))
    ),
}
fits = {}
for name, constraint in sets.items():
    problem = cg.Problem(X, claims, cg.losses.Poisson(), constraint, offset=np.log(exposure), intercept=True)
    fits[name] = cg.minimize(problem, tol=1e-8)
    print(f"{name:>12}: objective {fits[name].objective:.6f}, gap {fits[name].gap:.1e}, {fits[name].status.name}")

# %%
# The order costs almost nothing in the objective, and repairs what few claims had made of the rare classes. Multipliers
# tell where it acts: classes whose row has one are pooled.

multipliers = fits["not falling"].multipliers.ub
print("pooled with the next class:", np.flatnonzero(multipliers > 1e-7).tolist())

figure, (left, right) = plt.subplots(1, 2, figsize=(10.0, 3.8), layout="constrained")
for (name, fit), style in zip(fits.items(), ("o--", "s-"), strict=True):
    left.plot(np.arange(n_bonus), np.exp(fit.w[:n_bonus]), style, label=name, markersize=4)
    right.plot(np.arange(n_age), np.exp(fit.w[n_bonus:]), style, label=name, markersize=4)
left.plot(np.arange(n_bonus), np.exp(0.13 * np.arange(n_bonus)), "k:", label="truth")
right.plot(np.arange(n_age), np.exp(age_effect), "k:", label="truth")
left.set(xlabel="bonus class", ylabel="rate relative to class 0")
right.set(xlabel="age band", ylabel="rate relative to band 2")
left.legend(frameon=False)
right.legend(frameon=False)
plt.show()
