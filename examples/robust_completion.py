"""
Robust completion
=================

A matrix of low rank can be completed from some of its entries. But some of what is observed may be nonsense: slips of a
finger, broken sensors, ratings of jokers. The squared loss bends the whole matrix towards them; Huber's loss, which
grows only linearly, lets them be.
"""

import matplotlib.pyplot as plt
import numpy as np

import condgrad as cg
from condgrad import datasets

# %%
# A third of the entries of a 120 x 100 matrix of rank 2 is observed, and 5% of these are plus or minus 10, where an
# honest entry has variance one. A fifth is kept for testing; of that the honest ones count.

data = datasets.simulate_low_rank(120, 100, 2, 4500, noise=0.2, outliers=0.05, outlier_size=10.0, random_state=0)
is_test = np.random.default_rng(0).random(data.values.size) < 0.2
is_clean = is_test & ~data.is_outlier
train = data.rows[~is_test], data.cols[~is_test], data.values[~is_test]
test = data.rows[is_clean], data.cols[is_clean]
truth = (data.U[test[0]] * data.V[test[1]]).sum(axis=1)

# %%
# Every answer is certified: no matrix of the ball has a loss that is lower by more than ``gap_``.

radii = np.geomspace(20.0, 160.0, 7)
losses = {"squared": cg.losses.Squared(), "huber": cg.losses.Huber(delta=0.5)}
errors = {name: [] for name in losses}
for name, loss in losses.items():
    model = cg.MatrixCompletion(loss=loss, tol=1e-3, warm_start=True)
    for radius in radii:
        model.set_params(radius=radius).fit(*train, shape=data.shape)
        errors[name].append(np.sqrt(np.mean((model.predict(*test) - truth) ** 2)))
    best = int(np.argmin(errors[name]))
    print(f"{name:7s}  error {errors[name][best]:.3f} at its best radius, {radii[best]:.0f}; last gap {model.gap_:.1e}")

# %%
# The squared loss spends the ball on the nonsense, and predicts worse than zero would, whose error is about one.

for name, error in errors.items():
    plt.plot(radii, error, "o-", label=name)
plt.xlabel("radius of the nuclear-norm ball")
plt.ylabel("error at clean test entries")
plt.legend()
plt.show()

# %%
# Nobody knows the truth in practice. Without a radius, held-out entries choose it, judged by the loss itself: Huber's
# is not led astray there either. And the residuals of the robust fit tell which entries were nonsense.

model = cg.MatrixCompletion(loss=losses["huber"], random_state=0).fit(*train, shape=data.shape)
error = np.sqrt(np.mean((model.predict(*test) - truth) ** 2))
suspects = np.abs(model.predict(*train[:2]) - train[2]) > 3.0
honest = ~data.is_outlier[~is_test]
print(f"huber, radius {model.radius_:.0f} of its own choice: error {error:.3f}")
print(f"{suspects.sum()} entries look wrong, {(suspects & honest).sum()} of them wrongly; {(~honest).sum()} are")
