"""Sets of two features, each drawn by its own oracle."""

import matplotlib.pyplot as plt
import numpy as np

import condgrad as cg

c = cg.constraints
sets = {
    "L1Ball": c.L1Ball(1.0),
    "WeightedL1Ball": c.WeightedL1Ball(1.0, np.array([1.0, 1.6])),
    "NonnegativeL1Ball": c.NonnegativeL1Ball(1.0),
    "OrderedWeightedL1Ball": c.OrderedWeightedL1Ball(1.0, np.array([1.0, 0.4])),
    "L2Ball": c.L2Ball(1.0),
    "LpBall(1.5)": c.LpBall(1.5, 1.0),
    "LinfBall": c.LinfBall(0.9),
    "Box": c.Box(np.array([-0.4, -0.9]), np.array([0.9, 0.5])),
    "LinearlyConstrained": c.LinearlyConstrained(c.L1Ball(1.0), np.array([[1.0, 1.0]]), [0.4]),
    "FusedBall": c.FusedBall(1.0, 0.6),
    "IsotonicBox": c.IsotonicBox(-0.8, 0.8),
    "MinkowskiSum": c.MinkowskiSum([c.L1Ball(0.7), c.L2Ball(0.3)]),
}
figure, axes = plt.subplots(3, 4, figsize=(9.0, 7.0), layout="constrained")
turns = np.linspace(0.0, 2 * np.pi, 361)
for ax, (name, one) in zip(axes.ravel(), sets.items(), strict=True):
    oracle = cg.Problem(np.eye(2), np.zeros(2), cg.losses.Squared(), one).lmo
    border = np.array([oracle(np.array([np.cos(turn), np.sin(turn)])).to_dense(2) for turn in turns])
    ax.axhline(0.0, color="0.85", linewidth=0.8)
    ax.axvline(0.0, color="0.85", linewidth=0.8)
    ax.fill(*border.T, color="#0072b2", alpha=0.2)
    ax.plot(*border.T, color="#0072b2", linewidth=1.4)
    ax.set_title(name, fontsize=11)
    ax.set(xlim=(-1.2, 1.2), ylim=(-1.2, 1.2), aspect="equal")
    ax.axis("off")
