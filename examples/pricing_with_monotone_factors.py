"""
A tariff with monotone factors
==============================

How often does a policy claim? An insurer's model is a Poisson regression: policies were insured for different times
(the exposure, whose logarithm is an offset), and some effects must not go down, because a tariff has to be explained:
more claims in the past must not make insurance cheaper. Order is a set of linear rows, and the answer is certified
like any other.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import condgrad as cg

# %%
# 20,000 policies: a bonus class from 0 to 11, few policies in the worst ones; a band of the driver's age; the exposure
# in years. The data are simulated; public ones of this shape are the French motor policies ``freMTPL2freq`` of OpenML.

rng = np.random.default_rng(0)
n = 20_000
bonus = np.minimum(rng.geometric(0.35, n) - 1, 11)
age = rng.integers(0, 6, n)
exposure = rng.uniform(0.05, 1.0, n)
age_effect = np.array([0.7, 0.25, 0.0, -0.1, 0.0, 0.2])
claims = rng.poisson(exposure * np.exp(-2.4 + 0.13 * bonus + age_effect[age]))
bonus_names, age_names = [f"bonus {k}" for k in range(12)], [f"age {k}" for k in range(6)]
columns = np.column_stack([bonus[:, None] == np.arange(12), age[:, None] == np.arange(6)])
table = pd.DataFrame(columns.astype(float), columns=bonus_names + age_names)

# %%
# The order is a sentence about coefficients. One level of each factor is fixed at 0, so that the others are relative to
# it and the intercept is the base rate; the radius is so large that it does not bind.

base = {"bonus 0": 0.0, "age 2": 0.0}
order = " <= ".join(f"`{name}`" for name in bonus_names)
models = {
    "free": cg.ConstrainedRegressor("poisson", radius=50.0, lower=base, upper=base),
    "not falling": cg.ConstrainedRegressor("poisson", radius=50.0, lower=base, upper=base, rows=order),
}
with warnings.catch_warnings():
    warnings.simplefilter("ignore", cg.RadiusWarning)  # it says that the radius does not bind
    for name, model in models.items():
        model.fit(table, claims, offset=np.log(exposure))
        print(f"{name:>12}: objective {model.result_.objective:.6f}, gap {model.gap_:.0e}")

# %%
# The order costs almost nothing in the objective, and repairs what few claims had made of the rare classes. Multipliers
# tell where it acts: classes whose row has one are pooled.

multipliers = models["not falling"].multipliers_.ub
print("pooled with the next class:", np.flatnonzero(multipliers > 1e-7).tolist())

figure, (left, right) = plt.subplots(1, 2, figsize=(10.0, 3.8), layout="constrained")
for (name, model), style in zip(models.items(), ("o--", "s-"), strict=True):
    left.plot(np.arange(12), np.exp(model.coef_[:12]), style, label=name, markersize=4)
    right.plot(np.arange(6), np.exp(model.coef_[12:]), style, label=name, markersize=4)
left.plot(np.arange(12), np.exp(0.13 * np.arange(12)), "k:", label="truth")
right.plot(np.arange(6), np.exp(age_effect), "k:", label="truth")
left.set(xlabel="bonus class", ylabel="rate relative to class 0")
right.set(xlabel="age band", ylabel="rate relative to band 2")
left.legend(frameon=False)
right.legend(frameon=False)
plt.show()
