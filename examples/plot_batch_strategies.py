"""
Six ways to fill a batch
========================

Rows that are alike have like utilities, so the ten best rows taken one by one may be ten times the
same question. Strategies that choose a batch together know what was picked before. Here they choose
from a pool with a knot of near-duplicates in it.
"""

# %%
# A pool with a knot
# ------------------
# Each blob is one class. The knot is 40 times nearly the same row, in the middle between the blobs.

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
knot = rng.normal(scale=0.06, size=(40, 2))

of_class = [np.flatnonzero(y_blobs == label) for label in range(3)]
labeled = np.concatenate([rng.choice(rows, 8, replace=False) for rows in of_class])
X_labeled, y_labeled = X_blobs[labeled], y_blobs[labeled]
rest = np.delete(X_blobs, labeled, axis=0)
X_pool = np.vstack([rest, knot])
in_knot = np.repeat([False, True], [len(rest), len(knot)])

# %%
# One forest, six strategies
# --------------------------
# BALD scores each row alone. BatchBALD scores batches, by what their labels say *together* about
# which tree is right; the log determinant does so by the covariance of the trees' probabilities.
# The stochastic strategy draws rows with probabilities in proportion to their BALD scores. The last
# two look at uncertain rows only: FASS takes those that stand for many others in the input space,
# and the filter leaves the choice among them to a strategy of your own liking.

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
# Where the labels would go
# -------------------------
# The darker the background, the more the trees disagree: the BALD score of each place, in nats.

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
    ax.set_title(f"{name}: {in_knot[indices].sum()} of 10 in the knot", size=11)
    ax.set_aspect("equal")
figure.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=5)
plt.show()

# %%
# BALD comes back to the knot, where the trees disagree most. BatchBALD has learned from its first
# pick there what the others would tell. It and the log determinant spread over the ways in which
# trees can disagree, chance spreads over wherever they do. FASS and the filter stay where entropy
# is large, and there take rows that differ from each other: FASS in what they are, the filtered log
# determinant in what the trees say of them.
