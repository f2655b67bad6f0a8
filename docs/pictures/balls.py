"""Unit balls in the plane and the vertices that their oracles return for one gradient."""

import matplotlib.pyplot as plt
import numpy as np

import condgrad as cg

gradient = np.array([-1.0, -0.45])
sets = {
    "l1: one feature": cg.constraints.L1Ball(1.0),
    "l2: all features": cg.constraints.L2Ball(1.0),
    "l-infinity: signs": cg.constraints.LinfBall(1.0),
    "simplex: mixtures": cg.constraints.Simplex(1.0),
}
figure, axes = plt.subplots(1, 4, figsize=(9.0, 2.7))
for ax, (name, one) in zip(axes, sets.items(), strict=True):
    oracle = cg.Problem(np.eye(2), np.zeros(2), cg.losses.Squared(), one).lmo
    turns = np.linspace(0.0, 2 * np.pi, 361)
    border = np.array([oracle(np.array([np.cos(a), np.sin(a)])).to_dense(2) for a in turns])
    ax.fill(*border.T, color="#0072b2", alpha=0.15)
    ax.plot(*border.T, color="#0072b2", linewidth=1.6)
    s = oracle(gradient).to_dense(2)
    ax.annotate("", -0.9 * gradient, (0.0, 0.0), arrowprops={"arrowstyle": "->", "color": "#999999"})
    ax.plot(*s, "o", color="#d55e00", markersize=8)
    ax.set(title=name, xlim=(-1.3, 1.3), ylim=(-1.3, 1.3), aspect="equal")
    ax.title.set_fontsize(12)
    ax.axis("off")
figure.tight_layout()
