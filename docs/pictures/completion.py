"""A matrix of rank three: what is known of it, what completion makes of it, and its singular values by radius."""

import matplotlib.pyplot as plt
import numpy as np

import condgrad as cg
from condgrad import datasets

data = datasets.simulate_low_rank(60, 40, 3, 1000, noise=0.1, random_state=0)
known = np.full((60, 40), np.nan)
known[data.rows, data.cols] = data.values
everywhere = np.indices((60, 40)).reshape(2, -1)
figure, axes = plt.subplots(1, 3, figsize=(9.0, 3.6), layout="constrained", width_ratios=[1, 1, 1.5])
limit = np.nanmax(np.abs(known))
axes[0].imshow(known, cmap="RdBu", vmin=-limit, vmax=limit, aspect="auto")
axes[0].set_title("known: 1,000 of 2,400", fontsize=10)
for radius, colour in zip((30.0, 50.0, 80.0), ("#56b4e9", "#0072b2", "#d55e00"), strict=True):
    model = cg.MatrixCompletion(radius=radius, biases=False).fit(data.rows, data.cols, data.values, shape=(60, 40))
    full = model.predict(*everywhere).reshape(60, 40)
    axes[2].plot(np.arange(1, 13), np.linalg.svd(full, compute_uv=False)[:12], "o-", color=colour, markersize=4,
                 label=f"radius {radius:g}")  # fmt: skip
    if radius == 80.0:
        axes[1].imshow(full, cmap="RdBu", vmin=-limit, vmax=limit, aspect="auto")
        axes[1].set_title("completed, radius 80", fontsize=10)
for ax in axes[:2]:
    ax.set(xticks=[], yticks=[])
axes[2].set_title("singular values", fontsize=10)
axes[2].legend(frameon=False)
