"""
Times of events
===============

Which genes shorten the time to a relapse? Some patients have none before the study ends, or move away: all that is
known is how long they went without. Cox's model compares, at each relapse, the patient who had it with all who might
have had it. Hospitals differ in ways that nobody recorded, so each is a stratum with a hazard of its own, and age stays
in the model whatever it costs.
"""

import matplotlib.pyplot as plt
import numpy as np

import condgrad as cg

# %%
# 400 patients of three hospitals, age and 300 genes; five genes matter. Times are in whole months, so that many
# relapses have the same one: ``ties="efron"`` treats them well. The data are simulated; public ones of this shape are
# the breast tumours of METABRIC (Curtis et al., 2012).

rng = np.random.default_rng(0)
n, n_genes = 400, 300
hospital = rng.choice(["Bern", "Lyon", "Turin"], n)
age, genes = rng.standard_normal(n), rng.standard_normal((n, n_genes))
risk = 0.6 * age + genes[:, :5] @ np.array([0.8, -0.8, 0.6, -0.6, 0.5])
pace = np.select([hospital == "Bern", hospital == "Lyon"], [1.0, 3.0], 0.5)
due = np.ceil(30.0 * rng.exponential(np.exp(-risk) / pace))
left = np.ceil(rng.uniform(1.0, 60.0, n))
y = np.column_stack([np.minimum(due, left), due <= left])  # times, and whether the relapse was seen
X = np.column_stack([age, genes])
print(f"{int(y[:, 1].sum())} relapses in {n} patients")

# %%
# Cross-validation chooses the budget of the genes, by what the patients left out add to the partial likelihood.

price = np.append(0.0, np.ones(n_genes))  # age is free
model = cg.ConstrainedCoxRegressionCV(ties="efron", feature_weight=price, n_radii=8, eps=0.2, cv=3)
model.fit(X, y, strata=hospital)
chosen = np.flatnonzero(model.coef_[1:])
largest = np.argsort(-np.abs(model.coef_[1:]))[:5]
print(f"budget {model.radius_:.2g}: {chosen.size} genes, the five largest are {sorted(largest.tolist())}")
print(f"age {model.coef_[0]:.2f}, concordance {model.score(X, y, strata=hospital):.2f}")
print(f"no model of this budget has a loss that is lower by more than {model.gap_ + model.rounding_:.0e}")

# %%
# Each hospital has its own hazard. The survival functions of two patients, one at low and one at high risk:

months = np.arange(0, 60)
low, high = np.argsort(model.predict(X))[[100, -100]]
figure, (left_ax, right_ax) = plt.subplots(1, 2, figsize=(8.5, 3.6), layout="constrained")
for label, baseline in model.baseline_.items():
    left_ax.step(baseline.times, baseline.cumulative_hazard, where="post", label=label)
left_ax.set(xlabel="months", ylabel="cumulative hazard", title="hospitals")
left_ax.legend()
for place, name, colour in ((low, "low risk", "#009e73"), (high, "high risk", "#d55e00")):
    own = model.predict_survival_function(X[[place]], months, strata=hospital[[place]])[0]
    right_ax.step(months, own, where="post", color=colour, label=name)
right_ax.set(xlabel="months", ylabel="share without relapse", ylim=(0.0, 1.02), title="two patients")
right_ax.legend()
plt.show()
