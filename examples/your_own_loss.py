"""
Your own loss
=============

A loss is a function f(p, y) of one prediction and one target. Here is one that asks for predictions within a tolerance:
zero inside a tube around the target, quadratic outside, as support vector regression has it (with squares).
"""

from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np

import condgrad as cg
from condgrad import datasets
from condgrad.testing import check_loss


@cg.losses.loss
class Tube(NamedTuple):
    """max(0, |p - y| - width)^2 / 2."""

    width: float = 0.5

    def value(self, p, y):
        excess = np.maximum(np.abs(p - y) - self.width, 0.0)
        return 0.5 * excess * excess

    def derivative(self, p, y):
        return np.sign(p - y) * np.maximum(np.abs(p - y) - self.width, 0.0)

    def second_derivative(self, p, y):
        return 1.0 * (np.abs(p - y) > self.width)

    def smoothness(self):  # L: how fast the derivative can change
        return 1.0


# %%
# ``check_loss`` compares derivatives with differences of values, tries convexity, the constant and huge numbers, and
# whether the compiled loss is the interpreted one.

check_loss(Tube())
check_loss(Tube(width=2.0))

# %%
# Nothing has to be registered: solvers and estimators take the object.

data = datasets.simulate_regression(400, 50, n_informative=5, noise=0.3, random_state=0)
model = cg.ConstrainedRegressor(Tube(width=0.5), radius=6.0).fit(data.X, data.y)
plain = cg.ConstrainedRegressor("squared", radius=6.0).fit(data.X, data.y)
print(f"gap {model.gap_:.1e}; {model.result_.solver}")

# %%
# Errors inside the tube cost nothing, so more of them lie there.

figure, ax = plt.subplots(layout="constrained")
bins = np.linspace(-3.0, 3.0, 61)
for name, fitted in {"tube": model, "squared": plain}.items():
    errors = fitted.predict(data.X) - data.y
    ax.hist(errors, bins=bins, histtype="step", label=f"{name}: {np.mean(np.abs(errors) <= 0.5):.0%} within 0.5")
ax.axvspan(-0.5, 0.5, alpha=0.1)
ax.set_xlabel("error")
ax.legend()
plt.show()
