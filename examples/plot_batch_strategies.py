"""
Six strategies for batches
==========================

Similar rows have similar utilities, so the ten rows with the highest scores may be near-duplicates.
Batch strategies take earlier picks into account. Here they are compared on a pool that contains a
cluster of near-duplicates.
"""

# %%
# A pool with near-duplicates
# ---------------------------
# Each blob is one class. The cluster has 40 near-duplicates of one row, in the middle between the
# blobs.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import RandomForestClassifier

from sklearn_ical import (
    BALDQuery,
    BatchBALDQuery,
    FASSQuery,
    FilteredQuery,
    LogDetQuery,
    MaxEntropyQuery,
    StochasticQuery,
)
from sklearn_ical.dependence import bald

rng = np.random.default_rng(2)
centers = np.array([[-2.0, -1.2], [2.0, -1.2], [0.0, 2.0]])
y_blobs = np.repeat([0, 1, 2], 150)
X_blobs = centers[y_blobs] + rng.normal(size=(450, 2))
cluster = rng.normal(scale=0.06, size=(40, 2))

of_class = [np.flatnonzero(y_blobs == label) for label in range(3)]
labeled = np.concatenate([rng.choice(rows, 8, replace=False) for rows in of_class])
X_labeled, y_labeled = X_blobs[labeled], y_blobs[labeled]
rest = np.delete(X_blobs, labeled, axis=0)
X_pool = np.vstack([rest, cluster])
in_cluster = np.repeat([False, True], [len(rest), len(cluster)])

# %%
# One forest, six strategies
# --------------------------
# BALD scores each row on its own. BatchBALD scores batches, by the information of their *joint*
# labels about which tree is right; the log determinant uses the covariance of the trees'
# probabilities instead. The stochastic strategy samples rows with probabilities proportional to
# their BALD scores. The last two only consider uncertain rows: FASS picks those that represent many
# others in the input space, and the filter chooses among them by another strategy.

forest = RandomForestClassifier(200, min_samples_leaf=2, random_state=0)
forest.fit(X_labeled, y_labeled)

strategies = {
    "BALD": BALDQuery(),
    "BatchBALD": BatchBALDQuery(random_state=0),
    "Log determinant": LogDetQuery(),
    "Stochastic BALD": StochasticQuery(BALDQuery(), random_state=0),
    "FASS": FASSQuery(factor=10),
    "Filtered log det": FilteredQuery(MaxEntropyQuery(), LogDetQuery(), factor=10),
}
picks = {name: strategy.query(forest, X_pool, 10) for name, strategy in strategies.items()}

# %%
# The picks
# ---------
# The darker the background, the more the trees disagree: the BALD score at each point, in nats.

axis = np.linspace(-5, 5, 101)
grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
proba = np.stack([tree.predict_proba(grid) for tree in forest.estimators_], axis=1)
disagreement = bald(proba).reshape(len(axis), len(axis))

figure, axes = plt.subplots(2, 3, figsize=(12, 8.6), sharex=True, sharey=True, layout="constrained")
for ax, (name, indices) in zip(axes.flat, picks.items(), strict=True):
    ax.pcolormesh(axis, axis, disagreement, cmap="Greys", vmin=0, vmax=1.2, rasterized=True)
    ax.scatter(*X_pool.T, s=10, color="#0072B2", linewidths=0, label="pool")
    edge = {"edgecolors": "white", "linewidths": 0.8}
    for label, marker in enumerate("s^D"):
        x, y = X_labeled[y_labeled == label].T
        ax.scatter(x, y, 44, "#009E73", marker=marker, label=f"labeled, class {label}", **edge)
    x, y = X_pool[indices].T
    ax.scatter(x, y, 75, "#E69F00", alpha=0.8, edgecolors="black", label="picked")
    ax.set_title(f"{name}: {in_cluster[indices].sum()} of 10 in the cluster", size=11)
    ax.set_aspect("equal")
figure.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=5)
plt.show()

# %%
# BALD picks rows of the cluster repeatedly, as the trees disagree most there. For BatchBALD, the
# first pick in the cluster already provides the information of the others. BatchBALD and the log
# determinant pick rows on which the trees disagree in different ways; the stochastic strategy picks
# rows everywhere that they disagree. FASS and the filter stay where the entropy is large, and pick
# rows there that differ from each other: FASS in their features, the filtered log determinant in
# the predictions of the trees.
