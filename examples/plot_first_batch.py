"""
The first batch of four strategies
==================================

A forest was fitted on a few labels, and ten more rows can be labeled. Which ones? The pool is
designed to show how strategies choose: it has three overlapping classes, a cluster of
near-duplicates where they meet, and a few outliers. How much a model improves by these choices is a
different question, which a single batch cannot answer.
"""

# %%
# A pool with near-duplicates and outliers
# ----------------------------------------
# Each blob is one class. The cluster has 40 near-duplicates of one row, in the middle between the
# blobs; the outliers are far from all other rows.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import RandomForestClassifier

from sklearn_ical import BALDQuery, ICALQuery, MarginQuery, RandomQuery
from sklearn_ical.dependence import predictive_entropy

rng = np.random.default_rng(2)
centers = np.array([[-2.0, -1.2], [2.0, -1.2], [0.0, 2.0]])
y_blobs = np.repeat([0, 1, 2], 150)
X_blobs = centers[y_blobs] + rng.normal(size=(450, 2))
cluster = rng.normal(scale=0.06, size=(40, 2))
outliers = np.array([[-4.8, 4.2], [4.8, 4.0], [4.9, -4.2], [-4.7, -4.4], [0.3, -4.6]])

of_class = [np.flatnonzero(y_blobs == label) for label in range(3)]
labeled = np.concatenate([rng.choice(rows, 8, replace=False) for rows in of_class])
X_labeled, y_labeled = X_blobs[labeled], y_blobs[labeled]
rest = np.delete(X_blobs, labeled, axis=0)
X_pool = np.vstack([rest, cluster, outliers])
in_cluster = np.repeat([False, True, False], [len(rest), len(cluster), len(outliers)])

# %%
# One fitted model, four strategies
# ---------------------------------
# The trees of the forest are the posterior draws. With at least two rows in each leaf, some of
# their probabilities are not 0 or 1.

forest = RandomForestClassifier(200, min_samples_leaf=2, random_state=0)
forest.fit(X_labeled, y_labeled)

strategies = {
    "ICAL": ICALQuery(random_state=0),
    "BALD": BALDQuery(),
    "Margin": MarginQuery(),
    "Random": RandomQuery(random_state=0),
}
picks = {name: strategy.query(forest, X_pool, 10) for name, strategy in strategies.items()}

# %%
# The picks
# ---------
# The darker the background, the less certain the forest is of the class: the entropy of its mean
# prediction, in nats.

axis = np.linspace(-5.5, 5.5, 121)
grid = np.stack(np.meshgrid(axis, axis), axis=-1)
proba = forest.predict_proba(grid.reshape(-1, 2))
entropy = predictive_entropy(proba[:, None, :]).reshape(grid.shape[:2])

figure, axes = plt.subplots(2, 2, figsize=(9, 9.4), sharex=True, sharey=True, layout="constrained")
for ax, (name, indices) in zip(axes.flat, picks.items(), strict=True):
    ax.pcolormesh(axis, axis, entropy, cmap="Greys", vmin=0, vmax=2, rasterized=True)
    ax.scatter(*X_pool.T, s=10, color="#0072B2", linewidths=0, label="pool")
    edge = {"edgecolors": "white", "linewidths": 0.8}
    for label, marker in enumerate("s^D"):
        x, y = X_labeled[y_labeled == label].T
        ax.scatter(x, y, 44, "#009E73", marker=marker, label=f"labeled, class {label}", **edge)
    x, y = X_pool[indices].T
    ax.scatter(x, y, 75, "#E69F00", alpha=0.8, edgecolors="black", label="picked")
    ax.set_title(f"{name}: {in_cluster[indices].sum()} of 10 picks in the cluster", size=11)
    ax.set_aspect("equal")
figure.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=5)
plt.show()

# %%
# Random picks are in dense regions. The other three strategies look for different kinds of
# uncertainty, and here all three pick many rows of the cluster: near-duplicates have nearly the
# same utility, and none of the three lowers the utility of a row after a similar one was picked.
# ICAL in particular looks for rows that are informative about the rest of the pool, and the 40
# near-duplicates are a considerable part of it. If near-duplicates should not all be labeled, pass
# one row of each group as ``candidates=``; ICAL still compares them with the whole pool.
