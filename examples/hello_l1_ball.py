"""
Hello, l1 ball
==============

The smallest complete story: data, a loss, a set, an answer, and the proof of how good it is.

The l1 ball of radius r holds the models w with sum_j abs(w_j) <= r. Its corners have a single nonzero entry, and a
Frank-Wolfe method walks from corner to corner: its models are sparse from the first step on.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import scale

import condgrad as cg
from condgrad.plotting import plot_convergence

data = load_diabetes()
X, y = scale(data.data), data.target - data.target.mean()

problem = cg.Problem(X, y, cg.losses.Squared(), cg.constraints.L1Ball(radius=60.0))
result = cg.minimize(problem, tol=1e-8)
print(result)

# %%
# The gap is computed from one fresh pass over all the data. For a convex loss like this one, no model of the ball has
# an objective below the lower bound.

print(f"objective    {result.objective:.9f}")
print(f"lower bound  {result.lower_bound:.9f}")
print(f"l1 norm      {np.abs(result.w).sum():.6f}  (the budget is 60)")

# %%
# Five of ten measurements are enough for this budget.

for j in np.argsort(-np.abs(result.w)):
    if result.w[j] != 0.0:
        print(f"{data.feature_names[j]:>4}  {result.w[j]:+8.3f}")

# %%
# "auto" chose its solver itself. Plain Frank-Wolfe gets there too, in more steps; the slope 1 is its rate, 1/t.

plain = cg.minimize(problem, "fw", tol=1e-2, max_epochs=2000)
plot_convergence({"auto": result, "plain Frank-Wolfe": plain}, x="epoch", slopes=(1.0,))
plt.show()
