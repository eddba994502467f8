"""
ICAL and its variants for batches
=================================

ICAL picks rows that are informative about many others. It scores each row on its own, though, so it
may pick redundant rows. Its variants take the batch into account. Here they are compared on a pool
that has a cluster of near-duplicates between two classes, and outliers that are not informative
about other rows.
"""

# %%
# Near-duplicates and outliers
# ----------------------------
# There are three classes with five labeled rows each. The cluster has 40 near-duplicates of one
# row. The outliers are far from all other rows, and from each other.

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from sklearn_ical import (
    BatchBALDQuery,
    ICALCoverageQuery,
    ICALPointwiseQuery,
    ICALQuery,
    MarginQuery,
)
from sklearn_ical.samplers import get_sampler

rng = np.random.default_rng(0)
centers = np.array([[-1.7, -1.2], [1.7, -1.2], [0.0, 1.8]])
y = np.repeat([0, 1, 2], 110)
X = centers[y] + rng.normal(scale=0.8, size=(330, 2))
labeled = np.concatenate([rng.choice(np.flatnonzero(y == c), 5, replace=False) for c in range(3)])
rest = np.delete(X, labeled, axis=0)
cluster = np.array([0.0, -1.0]) + rng.normal(scale=0.05, size=(40, 2))
angles = np.linspace(0, 1.5 * np.pi, 12)
outliers = 5.6 * np.stack([np.cos(angles), np.sin(angles)], axis=1)
outliers += rng.normal(scale=0.3, size=(12, 2))
X_pool = np.vstack([rest, cluster, outliers])
part = np.repeat([0, 1, 2], [len(rest), len(cluster), len(outliers)])

# %%
# One posterior, five strategies
# ------------------------------
# A draw of a Gaussian process is one function on all rows. The draws agree near labeled rows; far
# from them, predictions are independent. All strategies get the same 100 draws.

kernel = ConstantKernel(30.0) * RBF(1.5)
model = GaussianProcessClassifier(kernel, optimizer=None).fit(X[labeled], y[labeled])
samples = get_sampler(model).sample(X_pool, n_draws=100, random_state=0)

strategies = {
    "Margin": MarginQuery(),
    "BatchBALD": BatchBALDQuery(random_state=0),
    "ICAL": ICALQuery(random_state=0),
    "ICAL, pointwise": ICALPointwiseQuery(random_state=0),
    "ICAL, coverage": ICALCoverageQuery(random_state=0),
}
picks = {name: strategy.select(samples, 10) for name, strategy in strategies.items()}

# %%
# The picks
# ---------
# The background has the color of the predicted class, and is grayer where the model is less
# certain. Numbers are the order of the picks; the inset shows the cluster, enlarged.

COLORS, MARKERS = ("#0072B2", "#E69F00", "#009E73"), "s^D"
CLUSTER = (-0.16, 0.16, -1.16, -0.84)
axis = np.linspace(-7, 7, 113)
grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
proba = model.predict_proba(grid)
rgb = np.array([[int(c[i : i + 2], 16) / 255 for i in (1, 3, 5)] for c in COLORS])
certainty = (proba.max(axis=1, keepdims=True) - 1 / 3) * 1.5
tint = 1 - 0.7 * (1 - proba @ rgb)
background = (0.82 + certainty * (tint - 0.82)).reshape(len(axis), len(axis), 3)


def draw_pool(ax: Any, size: float = 9) -> None:
    """Draw the background and all rows."""
    ax.imshow(background, extent=(-7, 7, -7, 7), origin="lower", interpolation="bilinear")
    ax.scatter(*rest.T, size, "#555555", linewidths=0, label="pool")
    ax.scatter(*cluster.T, size, "#CC79A7", linewidths=0, label="cluster of near-duplicates")
    ax.scatter(*outliers.T, 3 * size, "#000000", marker="x", linewidths=1.2, label="outliers")


def draw_picks(ax: Any, indices: np.ndarray) -> None:
    """Draw the picks as numbered circles."""
    ax.scatter(*X_pool[indices].T, 95, "white", edgecolors="black", label="picked", zorder=3)
    for number, (x, y) in enumerate(X_pool[indices], start=1):
        ax.text(x, y, number, ha="center", va="center_baseline", size=7, zorder=4, clip_on=True)


figure, axes = plt.subplots(2, 3, figsize=(12, 8.8), layout="constrained")
for ax in axes.flat:
    draw_pool(ax)
    ax.set(xlim=(-7, 7), ylim=(-7, 7), xticks=[], yticks=[])
for label, (color, marker) in enumerate(zip(COLORS, MARKERS, strict=True)):
    x = X[labeled][y[labeled] == label]
    name = f"labeled, class {label}"
    axes[0, 0].scatter(*x.T, 44, color, marker=marker, edgecolors="white", label=name)
axes[0, 0].set_title("Rows labeled so far", size=12)
for ax, (name, indices) in zip(axes.flat[1:], picks.items(), strict=True):
    draw_picks(ax, indices)
    of_part = np.bincount(part[indices], minlength=3)
    ax.set_title(f"{name}: {of_part[1]} in the cluster, {of_part[2]} outliers", size=12)
    inset = ax.inset_axes((0.7, 0.01, 0.29, 0.29), xticks=[], yticks=[])
    draw_pool(inset, 14)
    draw_picks(inset, indices)
    inset.set(xlim=CLUSTER[:2], ylim=CLUSTER[2:])
    ax.indicate_inset_zoom(inset, edgecolor="black")
handles = {
    name: handle
    for ax in (axes[0, 0], axes[0, 1])
    for handle, name in zip(*ax.get_legend_handles_labels(), strict=True)
}
figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=7)
plt.show()

# %%
# Margin and BatchBALD pick rows for which the model is least certain, far from all labels. Margin
# picks seven outliers; BatchBALD, which avoids copies, picks eight, as the outliers are not
# redundant. ICAL picks none, as they are hardly informative about other rows; but the forty
# near-duplicates are informative about each other, and all ten picks are in the cluster. The
# pointwise form looks for rows about which a pick is more informative than the batch is on average,
# and picks three rows of the cluster. Coverage counts for each row of the pool the most informative
# pick: one pick is enough for the cluster, and the others are spread over the classes.
