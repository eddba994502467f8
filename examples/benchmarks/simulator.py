"""Score strategies in worlds of known hypotheses, where Bayes' rule replaces the training.

Run it with ``python examples/benchmarks/simulator.py``. A world has a pool of 300 rows and 2 500
softmax models, the hypotheses, around common weights. A strategy sees the predictions of 50 of them
and picks a batch of 10 at once. One hypothesis is the truth and gives the labels; the exact
posterior over all 2 500 then predicts the pool. No training, so no noise of training; but the model
is right, which favors strategies that trust the posterior. Three pools:

- std: rows of independent normal features;
- dup: 100 such rows, each three times with a little noise;
- outl: rows near the origin, and one in ten of them ten times farther away.

It prints a line per strategy and, for each pool, the mean Kullback-Leibler divergence of the
prediction from the truth in nats (lower is better) and its standard error over the seeds, the mean
entropy of the prediction in nats, and how often its likeliest class is that of the truth. All
strategies meet the same worlds, truths and labels. ``--rst`` prints the divergences as a table for
the documentation; ``--only lcmd tau`` runs the strategies whose names contain a word.
"""

import argparse
import inspect
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from scipy import special

from sklearn_ical import (
    BALDQuery,
    BatchBALDQuery,
    BayesianCoresetQuery,
    EPIGQuery,
    FASSQuery,
    FilteredQuery,
    ICALCoverageQuery,
    ICALJointQuery,
    ICALPointwiseQuery,
    ICALQuery,
    ICALSequentialQuery,
    KernelBatchQuery,
    LeastConfidentQuery,
    LogDetQuery,
    MarginQuery,
    MaxEntropyQuery,
    MRMRQuery,
    PredictionSamples,
    RandomQuery,
    StochasticQuery,
)

N_HYPOTHESES, N_POINTS, N_FEATURES, N_CLASSES = 2500, 300, 6, 5
POOLS = ("std", "dup", "outl")


@dataclass(frozen=True)
class World:
    """A pool, what every hypothesis predicts for it, and what may turn out to be true.

    Attributes
    ----------
    X : array of shape (n_points, n_features)
    proba, log_proba : arrays of shape (n_hypotheses, n_points, n_classes)
    seen : int array of shape (n_draws,)
        The hypotheses that strategies see.
    truths : int array of shape (n_truths,)
        Hypotheses, each of them the truth in a trial of its own.
    labels : int array of shape (n_truths, n_points)
        The label of each row in each trial, whoever asks for it.
    """

    X: np.ndarray
    proba: np.ndarray
    log_proba: np.ndarray
    seen: np.ndarray
    truths: np.ndarray
    labels: np.ndarray


def make_features(pool: str, rng: np.random.Generator) -> np.ndarray:
    """Return the rows of a pool of the given name."""
    if pool == "dup":
        X = np.repeat(rng.normal(size=(N_POINTS // 3, N_FEATURES)), 3, axis=0)
        return X + rng.normal(scale=0.01, size=X.shape)
    X = rng.normal(size=(N_POINTS, N_FEATURES))
    if pool == "outl":
        X *= 0.6
        X[rng.choice(N_POINTS, N_POINTS // 10, replace=False)] *= 10
    return X


def make_world(pool: str, seed: int, n_draws: int, n_truths: int) -> World:
    """Return the world of a seed."""
    rng = np.random.default_rng((seed, POOLS.index(pool)))
    X = make_features(pool, rng)
    mean = rng.normal(size=(N_FEATURES, N_CLASSES))
    weights = mean + rng.normal(size=(N_HYPOTHESES, N_FEATURES, N_CLASSES))
    log_proba = special.log_softmax(X @ weights, axis=2)
    proba = np.exp(log_proba)
    seen = rng.choice(N_HYPOTHESES, n_draws, replace=False)
    truths = rng.integers(N_HYPOTHESES, size=n_truths)
    uniforms = rng.random((n_truths, N_POINTS))
    running = proba[truths].cumsum(axis=2)[..., :-1]
    labels = np.sum(running <= uniforms[..., None], axis=2)
    return World(X, proba, log_proba, seen, truths, labels)


def pick(strategy: Any, world: World, batch_size: int) -> np.ndarray:
    """Return the batch that a strategy chooses; those that look at features get them."""
    samples = PredictionSamples(world.proba[world.seen].swapaxes(0, 1))
    features = {}
    if "X_pool" in inspect.signature(strategy.select).parameters:
        features["X_pool"] = world.X
    return strategy.select(samples, batch_size, **features)


def scores(world: World, picks: np.ndarray) -> tuple[float, float, float]:
    """Return divergence, entropy and agreement after the labels of a batch: means over all."""
    log_likelihood = np.zeros((len(world.truths), N_HYPOTHESES))
    for row in picks:
        log_likelihood += world.log_proba[:, row][:, world.labels[:, row]].T
    posterior = np.exp(special.log_softmax(log_likelihood, axis=1))
    true = world.proba[world.truths]
    predicted = (posterior @ world.proba.reshape(N_HYPOTHESES, -1)).reshape(true.shape)
    agree = predicted.argmax(axis=2) == true.argmax(axis=2)
    divergence = special.rel_entr(true, predicted).sum(axis=2).mean()
    return float(divergence), float(special.entr(predicted).sum(axis=2).mean()), float(agree.mean())


def baselines(seed: int) -> dict[str, Any]:
    """Return the strategies that know nothing of dependence."""
    return {
        "Random": RandomQuery(random_state=seed),
        "MaxEntropy": MaxEntropyQuery(),
        "LeastConfident": LeastConfidentQuery(),
        "Margin": MarginQuery(),
        "BALD": BALDQuery(),
        "Stochastic(BALD)": StochasticQuery(BALDQuery(), random_state=seed),
        "BatchBALD": BatchBALDQuery(n_configurations=2000, random_state=seed),
        "EPIG": EPIGQuery(random_state=seed),
        "EPIG, pseudo-label": EPIGQuery(batch="pseudo-label", random_state=seed),
        "LogDet": LogDetQuery(random_state=seed),
        "KernelBatch, maxdist": KernelBatchQuery("maxdist", random_state=seed),
        "KernelBatch, lcmd": KernelBatchQuery("lcmd", random_state=seed),
        "KernelBatch, kmeans++": KernelBatchQuery("kmeans++", random_state=seed),
        "KernelBatch, bait": KernelBatchQuery("bait", random_state=seed),
        "BayesianCoreset": BayesianCoresetQuery(random_state=seed),
        "FASS": FASSQuery(random_state=seed),
    }


def relatives(seed: int) -> dict[str, Any]:
    """Return ICAL and the strategies that share its dependence, but for those of coverage."""
    proba: dict[str, Any] = {"prediction": "proba", "random_state": seed}
    sampled: dict[str, Any] = {"prediction": "sampled", "random_state": seed}
    pool: dict[str, Any] = {"n_reference": N_POINTS, "resample": False}
    return {
        "ICAL": ICALQuery(random_state=seed),
        "ICAL, proba": ICALQuery(**proba),
        "ICAL, proba, whole pool": ICALQuery(**pool, **proba),
        "ICAL, information .5": ICALQuery(information_weight=0.5, random_state=seed),
        "ICAL, proba, information .5": ICALQuery(information_weight=0.5, **proba),
        "ICALPointwise": ICALPointwiseQuery(random_state=seed),
        "ICALPointwise, proba": ICALPointwiseQuery(**proba),
        "MRMR": MRMRQuery(random_state=seed),
        "ICALJoint, scaled": ICALJointQuery(**sampled),
        "ICALJoint, scaled, raw": ICALJointQuery(normalize=False, **sampled),
        "ICALJoint, scaled, proba": ICALJointQuery(**proba),
        "ICALJoint, grouped": ICALJointQuery("grouped", **sampled),
        "ICALJoint, grouped, raw": ICALJointQuery("grouped", normalize=False, **sampled),
        "ICALJoint, grouped, proba": ICALJointQuery("grouped", **proba),
        "ICALSequential": ICALSequentialQuery(random_state=seed),
    }


def coverage(seed: int) -> dict[str, Any]:
    """Return the strategies of coverage: what is covered, how much each row counts, and how."""
    settings: dict[str, dict[str, Any]] = {
        "": {},
        ", 20 reference rows": {"n_reference": 20},
        ", margin weights": {"candidate_weight": "margin", "reference_weight": "margin"},
        ", margin of references": {"reference_weight": "margin"},
        ", margin of candidates": {"candidate_weight": "margin"},
        ", entropy weights": {"candidate_weight": "entropy", "reference_weight": "entropy"},
        ", entropy of references": {"reference_weight": "entropy"},
        ", entropy of candidates": {"candidate_weight": "entropy"},
        ", information .5": {"information_weight": 0.5},
        ", concave": {"objective": "concave", "gamma": 0.5},
    }
    family: dict[str, Any] = {
        f"ICALCoverage, {dependence}{name}": ICALCoverageQuery(
            dependence=dependence, random_state=seed, **options
        )
        for dependence in ("hsic", "tau")
        for name, options in settings.items()
    }
    inner = ICALCoverageQuery(random_state=seed)
    family["Filtered(Margin, ICALCoverage)"] = FilteredQuery(MarginQuery(), inner, factor=6)
    return family


def strategies(seed: int, words: list[str] | None) -> dict[str, Any]:
    """Return the strategies by name: those that contain one of the words, or all."""
    found = baselines(seed) | relatives(seed) | coverage(seed)
    if words is None:
        return found
    return {
        name: strategy
        for name, strategy in found.items()
        if any(word.lower() in name.lower() for word in words)
    }


def run_seed(seed: int, args: argparse.Namespace) -> np.ndarray:
    """Return what one seed gives: an array (n_strategies, n_pools, 3) of scores."""
    chosen = strategies(seed, args.only)
    result = np.empty((len(chosen), len(POOLS), 3))
    for place, pool in enumerate(POOLS):
        world = make_world(pool, seed, args.draws, args.truths)
        for row, strategy in enumerate(chosen.values()):
            result[row, place] = scores(world, pick(strategy, world, args.batch))
    return result


def print_table(names: list[str], mean: np.ndarray, error: np.ndarray) -> None:
    """Print the scores for a terminal."""
    width = max(map(len, names))
    print(f"{'':{width}s}" + "".join(f"  {pool:>31s}" for pool in POOLS))
    print(f"{'':{width}s}" + f"  {'divergence':>13s} {'entropy':>8s} {'agree':>8s}" * len(POOLS))
    for row, name in enumerate(names):
        columns = [
            f"  {divergence:.3f} ± {spread:.3f} {entropy:8.3f} {agree:8.3f}"
            for (divergence, entropy, agree), spread in zip(mean[row], error[row], strict=True)
        ]
        print(f"{name:{width}s}" + "".join(columns))


def print_rst(names: list[str], mean: np.ndarray, error: np.ndarray) -> None:
    """Print the divergences as a table in reStructuredText."""
    print(".. csv-table::\n   :header: strategy, " + ", ".join(POOLS) + "\n")
    for row, name in enumerate(names):
        cells = [f"{m:.3f} ± {e:.3f}" for m, e in zip(mean[row, :, 0], error[row], strict=True)]
        print(f'   "{name}", ' + ", ".join(cells))


def main() -> None:
    """Run the simulator and print its table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--truths", type=int, default=60, help="trials of each world")
    parser.add_argument("--seeds", type=int, default=8, help="worlds of each pool, at least 2")
    parser.add_argument("--batch", type=int, default=10, help="rows that are picked")
    parser.add_argument("--draws", type=int, default=50, help="hypotheses that strategies see")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="words that names contain")
    parser.add_argument("--jobs", type=int, default=1, help="processes, each for a seed")
    parser.add_argument("--rst", action="store_true", help="print a table for the documentation")
    args = parser.parse_args()
    names = list(strategies(0, args.only))
    if args.seeds < 2 or not names:
        parser.error("--seeds must be at least 2, and --only must leave a strategy.")
    start = time.perf_counter()
    results = np.stack(
        Parallel(args.jobs)(delayed(run_seed)(seed, args) for seed in range(args.seeds))
    )
    error = results[..., 0].std(axis=0, ddof=1) / np.sqrt(args.seeds)
    show: Callable[..., None] = print_rst if args.rst else print_table
    show(names, results.mean(axis=0), error)
    if not args.rst:
        print(f"{args.seeds} seeds, {args.truths} truths: {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
