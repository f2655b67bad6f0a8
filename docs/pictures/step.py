"""Steps of Frank-Wolfe on a triangle: the vertex that is best for the gradient, and the way towards it."""

import matplotlib.pyplot as plt
import numpy as np

corners = np.array([[0.0, 0.0], [4.0, 0.0], [1.0, 3.0]])
goal = np.array([3.0, 2.4])
w = np.array([0.4, 0.3])
figure, ax = plt.subplots(figsize=(5.4, 3.8))
ax.fill(*corners.T, color="#0072b2", alpha=0.12, zorder=0)
across, up = np.meshgrid(np.linspace(-0.2, 4.2, 200), np.linspace(-0.2, 3.3, 200))
ax.contour(across, up, (across - goal[0]) ** 2 + 2 * (up - goal[1]) ** 2, levels=12, colors="#999999", linewidths=0.5)
places = [(-16, -12), (-18, 0), (8, 0)]
for t in range(3):
    gradient = np.array([2.0, 4.0]) * (w - goal)
    s = corners[np.argmin(corners @ gradient)]
    ax.annotate("", s, w, arrowprops={"arrowstyle": "->", "color": "#d55e00", "linestyle": "--", "alpha": 0.5})
    d = s - w
    gamma = min(1.0, -(gradient @ d) / (2 * d[0] ** 2 + 4 * d[1] ** 2))
    ax.plot(*np.array([w, w + gamma * d]).T, color="#d55e00", linewidth=2.5)
    ax.annotate(f"$w_{t}$", w, xytext=places[t], textcoords="offset points")
    ax.plot(*w, "o", color="#d55e00")
    w = w + gamma * d
ax.plot(*goal, "*", color="black", markersize=11)
ax.annotate("unconstrained optimum", goal, xytext=(6, 6), textcoords="offset points", fontsize=9)
ax.set_aspect("equal")
ax.axis("off")
figure.tight_layout()
