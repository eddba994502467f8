"""
The first batch of four strategies
==================================

A forest has seen a few labels, and ten more can be bought. Which rows are they spent on? The pool
is made to show how strategies choose: three overlapping classes, a knot of near-duplicates where
they meet, and a few outliers. How well a model learns from such choices is another question, which
one batch cannot answer.
"""

# %%
# A pool with a knot and outliers
# -------------------------------
# Each blob is one class. The knot is 40 times nearly the same row, in the middle between the blobs;
# the outliers lie far from everything.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import RandomForestClassifier

from sklearn_ical import BALDQuery, ICALQuery, MarginQuery, RandomQuery
from sklearn_ical.dependence import predictive_entropy

rng = np.random.default_rng(2)
centers = np.array([[-2.0, -1.2], [2.0, -1.2], [0.0, 2.0]])
y_blobs = np.repeat([0, 1, 2], 150)
X_blobs = centers[y_blobs] + rng.normal(size=(450, 2))
knot = rng.normal(scale=0.06, size=(40, 2))
outliers = np.array([[-4.8, 4.2], [4.8, 4.0], [4.9, -4.2], [-4.7, -4.4], [0.3, -4.6]])

of_class = [np.flatnonzero(y_blobs == label) for label in range(3)]
labeled = np.concatenate([rng.choice(rows, 8, replace=False) for rows in of_class])
X_labeled, y_labeled = X_blobs[labeled], y_blobs[labeled]
rest = np.delete(X_blobs, labeled, axis=0)
X_pool = np.vstack([rest, knot, outliers])
in_knot = np.repeat([False, True, False], [len(rest), len(knot), len(outliers)])

# %%
# One fitted model, four strategies
# ---------------------------------
# The trees of the forest are the posterior draws. Leaves of two rows or more keep some of their
# probabilities away from 0 and 1.

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
# Where the labels would go
# -------------------------
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
    ax.set_title(f"{name}: {in_knot[indices].sum()} of 10 picks in the knot", size=11)
    ax.set_aspect("equal")
figure.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=5)
plt.show()

# %%
# Random takes rows where they are dense. The other three look for doubt, each in its own sense, and
# here all three come back to the knot: rows that are nearly alike are nearly equally useful, and
# none of the three lowers the value of a row because one like it was picked before. ICAL in
# particular asks which rows tell most about the rest of the pool, and 40 rows that share one doubt
# are a good part of it. Where near-duplicates are not worth a label each, offer one row of each
# group with ``candidates=``; the pool that ICAL compares with stays whole.
