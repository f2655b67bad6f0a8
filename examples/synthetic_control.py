"""
Synthetic control
=================

What would have happened to a region without the new law? Mix other regions, by weights that are at least 0 and sum to
one, so that the mixture follows the region *before* the law; afterwards it shows the course without. Such weights are
points of a simplex, whose corners are the single regions: no mixture can extrapolate, and few regions take part.
"""

import matplotlib.pyplot as plt
import numpy as np

import condgrad as cg

# %%
# Sales in 31 regions over 60 months, made of three common trends and noise. From month 40 on a tax lowers the sales of
# the first region by 8. The data are simulated; public ones of this shape are the cigarette sales of 39 American states
# (Abadie, Diamond and Hainmueller, 2010).

rng = np.random.default_rng(3)
months, n_regions, start = np.arange(60), 31, 40
trends = np.column_stack([0.3 * months, 4.0 * np.sin(months / 6.0), np.cumsum(rng.standard_normal(60))])
sales = 60.0 + trends @ rng.dirichlet(np.ones(3), n_regions).T * 3.0 + 0.7 * rng.standard_normal((60, n_regions))
sales[start:, 0] -= 8.0


def weights_for(region, donors):
    """Return the certified weights of the donors, from the months before the law."""
    problem = cg.Problem(sales[:start, donors], sales[:start, region], cg.losses.Squared(), cg.constraints.Simplex())
    return cg.minimize(problem, tol=1e-8)


donors = np.arange(1, n_regions)
result = weights_for(0, donors)
print(result)
print({int(donors[j]): round(float(result.w[j]), 3) for j in np.flatnonzero(result.w > 1e-6)})

# %%
# Is the difference larger than chance? Treat every other region as if it had the law, too (a placebo): what their
# controls miss is the noise of the method.

effect = sales[:, 0] - sales[:, donors] @ result.w
placebos = []
for region in donors:
    others = donors[donors != region]
    placebos.append(sales[:, region] - sales[:, others] @ weights_for(region, others).w)
estimate = effect[start:].mean()
rank = sum(abs(placebo[start:].mean()) >= abs(estimate) for placebo in placebos)
print(f"effect {estimate:.2f} (the truth is -8); {rank} of {len(placebos)} placebos are as large")

figure, (left, right) = plt.subplots(1, 2, figsize=(10.0, 3.8), layout="constrained")
left.plot(months, sales[:, 0], color="#d55e00", label="region with the law")
left.plot(months, sales[:, donors] @ result.w, color="#0072b2", linestyle="--", label="its synthetic control")
right.plot(months, np.transpose(placebos), color="0.8", linewidth=0.8)
right.plot(months, effect, color="#d55e00", label="difference (placebos in grey)")
for ax in (left, right):
    ax.axvline(start, color="0.4", linestyle=":")
    ax.set_xlabel("month")
    ax.legend(frameon=False)
plt.show()
