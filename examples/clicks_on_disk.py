"""
A model of 40 million clicks on a laptop
========================================

Logs of clicks have few numbers and many categories: the site, the advertisement, the device, the hour. As indicators
they are a million features, of which each sample has a few dozen. Here such data are written to disk once, as codes of
one, two or four bytes, and a sparse logistic regression is fitted to them without ever being loaded: every pass reads
the codes once, a few chunks at a time. This page uses a small simulation; its last section has the figures for 40
million samples.
"""

# %%
# The data
# --------
# Each column is a field of categories, and frequent categories are few. ``categories="all"`` turns the values of every
# column into codes, numbered by how frequent they are.

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import condgrad as cg

rng = np.random.default_rng(0)
n, n_categories = 60_000, [30, 24, 100, 1_000, 3_000]
codes = np.column_stack([np.exp(rng.random(n) * np.log(size)).astype(int) - 1 for size in n_categories])
effects = [np.where(np.arange(size) < 12, rng.standard_normal(size), 0.0) for size in n_categories]
score = -1.0 + sum(effect[code] for effect, code in zip(effects, codes.T, strict=True))
clicked = np.where(rng.random(n) < 1.0 / (1.0 + np.exp(-score)), 1.0, -1.0)

folder = Path(tempfile.mkdtemp()) / "clicks"
rows = cg.rows.convert((codes, clicked), folder, categories="all", chunk_bytes=2**17)
print(rows)
print(f"{rows.n_bytes / n:.0f} bytes a sample")

# %%
# The model
# ---------
# ``rows`` takes the place of X, and brings its targets. The first passes use a sample in memory; between two reads of
# all chunks the model is improved on the largest sample that memory allows, tilted so that its gradient is that of all.

problem = cg.Problem(rows, loss=cg.losses.Logistic(), constraint=cg.constraints.L1Ball(40.0), intercept=True)
result = cg.minimize(problem, tol=1e-5)
print(result)
print(f"{result.n_reads:g} reads of all rows; F(w) - F* <= {result.gap + result.rounding:.1e}")

# %%
# How far each read leads:

trace = result.trace
fig, ax = plt.subplots(figsize=(6.0, 3.5), layout="constrained")
ax.semilogy(np.arange(1, len(trace.gap) + 1), trace.gap, "o-")
ax.set_xlabel("reads of all rows")
ax.set_ylabel("certified gap")
ax.set_xticks(np.arange(1, len(trace.gap) + 1))
plt.show()

# %%
# Which categories matter
# -----------------------
# Features have the names of their fields and categories.

names = rows.feature_names or [f"feature {j}" for j in range(rows.shape[1])]
for j in np.argsort(-np.abs(result.w))[:5]:
    print(f"{names[j]:>12}  {result.w[j]:+.3f}")

# %%
# Estimators take rows too, and predictions are computed chunk by chunk.

model = cg.ConstrainedLogisticRegression(radius=40.0, tol=1e-4).fit(rows)
print(f"accuracy {np.mean(model.predict(rows) == rows.y):.3f}")

# %%
# Forty million samples
# ---------------------
# ``python benchmarks/scale/disk.py full --kind one-hot`` makes data like these in full size: 40 million samples of 39
# fields with a million categories, 2.9 GB of codes, and an l1 ball of radius 60. On a machine with 16 cores
#
# - a gap of 1e-4, relative to the first one, took 4 reads of the data and 21 seconds;
# - a gap of 1e-6 took 6 reads and 31 seconds, in 2.4 GB of memory;
# - one epoch of scikit-learn's ``SGDClassifier.partial_fit`` over the same chunks, without a certificate, 73 seconds.
#
# Five times more samples took three times longer: more samples do not mean more reads. From a shell, with data of your
# own:
#
# .. code-block:: bash
#
#    condgrad convert clicks.parquet clicks --target clicked
#    condgrad fit clicks --loss logistic --set l1 --radius 60 --intercept --out model.npz
#    condgrad predict model.npz new_clicks --out predictions.csv
