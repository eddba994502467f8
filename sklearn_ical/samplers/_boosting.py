"""Draws inside boosted trees: the parallel trees of XGBoost, the virtual ensembles of CatBoost.

Other models of these packages are bootstrapped.
"""

import json
from typing import Any

import numpy as np
from scipy.special import expit, softmax

from sklearn_ical._typing import Integer, Kind, Seed
from sklearn_ical._validation import check_integer
from sklearn_ical.exceptions import UnsupportedModelError
from sklearn_ical.samplers._base import BaseSampler, Draws, choose_members
from sklearn_ical.samplers._models import is_fitted, name_of
from sklearn_ical.samples import PredictionSamples

# Link functions from margins to predictions, by loss function.
XGBOOST_LINKS = {
    "binary:logistic": "sigmoid",
    "multi:softmax": "softmax",
    "multi:softprob": "softmax",
    "reg:squarederror": "identity",
}
CATBOOST_LINKS = {
    "CrossEntropy": "sigmoid",
    "Logloss": "sigmoid",
    "MultiClass": "softmax",
    "RMSE": "identity",
}
N_VIRTUAL_MEMBERS = 10  # CatBoost's own default


def find_sampler(model: Any) -> BaseSampler | None:
    """Return the sampler of an XGBoost or CatBoost model that has draws of its own, or None."""
    if not is_fitted(model):
        return None
    if hasattr(model, "get_booster"):
        return None if _parallel_trees(model) is None else ParallelTreesSampler(model)
    if hasattr(model, "virtual_ensembles_predict") and _walked_posterior(model):
        enough = model.tree_count_ >= 2 * N_VIRTUAL_MEMBERS
        return VirtualEnsembleSampler(model) if enough else None
    return None


class ParallelTreesSampler(BaseSampler):
    """Takes the parallel trees of an XGBoost random forest as draws.

    Parameters
    ----------
    model : fitted XGBoost model
        Of one boosting round with several trees, as of XGBRFClassifier and XGBRFRegressor.
    """

    source = "its parallel trees"
    cost = "one prediction per tree"

    def __init__(self, model: Any) -> None:
        self.model = model

    def draw(self, n_draws: Integer | None = None, random_state: Seed = None) -> Draws:
        """Fix trees as draws, all of them or a seeded subset; see :class:`EnsembleSampler`."""
        trees = _parallel_trees(self.model)
        if trees is None:
            raise UnsupportedModelError(
                f"ParallelTreesSampler needs one boosting round of several different trees. Got "
                f"{name_of(self.model)}; use BootstrapSampler."
            )
        leaves, link = trees
        chosen = choose_members(leaves.shape[1], n_draws, random_state, "ParallelTreesSampler")
        return _ParallelTreeDraws(self.model, leaves, link, chosen)


class VirtualEnsembleSampler(BaseSampler):
    """Takes virtual ensembles of a CatBoost model trained with posterior sampling as draws.

    Such a model is trained by stochastic gradient Langevin boosting, a random walk through its
    posterior. Each virtual ensemble is the state of that walk after a different number of trees.

    Parameters
    ----------
    model : fitted CatBoost model
        Trained with ``posterior_sampling=True`` and at least two trees per virtual ensemble.
    n_members : int, default=10
        Number of virtual ensembles. The members depend on it.
    """

    source = "its virtual ensembles"
    cost = "one prediction per virtual ensemble"

    def __init__(self, model: Any, *, n_members: int = N_VIRTUAL_MEMBERS) -> None:
        self.model = model
        self.n_members = n_members

    def draw(self, n_draws: Integer | None = None, random_state: Seed = None) -> Draws:
        """Fix members as draws, all of them or a seeded subset; see :class:`EnsembleSampler`."""
        caller = "VirtualEnsembleSampler"
        n_members = check_integer(self.n_members, "n_members", caller)
        if not _walked_posterior(self.model):
            raise UnsupportedModelError(
                f"{caller} needs a model trained with posterior_sampling=True and a loss of "
                f"{list(CATBOOST_LINKS)}. Got {name_of(self.model)}; use BootstrapSampler."
            )
        n_trees = self.model.tree_count_
        if 2 * n_members > n_trees:
            raise ValueError(
                f"n_members must be at most half the number of trees, {n_trees // 2}. Got "
                f"{n_members} in {caller}; take fewer, or train more trees."
            )
        chosen = choose_members(n_members, n_draws, random_state, caller)
        return _VirtualEnsembleDraws(self.model, n_members, chosen)


class _MarginDraws:
    """Draws that are sums of leaf values, put through the link of the model's loss."""

    joint = False
    weights = None

    def __init__(self, model: Any, link: str, chosen: np.ndarray) -> None:
        self.link = link
        self.chosen = chosen
        self.n_draws = len(chosen)
        self.kind: Kind = "value" if link == "identity" else "proba"
        self.classes = None
        if self.kind == "proba":
            self.classes = np.array(model.classes_)
            self.classes.flags.writeable = False

    def _margins(self, X: Any) -> np.ndarray:
        """Return margins (n_points, n_draws, n_outputs)."""
        raise NotImplementedError

    def __call__(self, X: Any) -> PredictionSamples:
        values = self._margins(X)
        if self.link == "softmax":
            values = softmax(values, axis=2)
        else:
            values = values[:, :, 0]
            if self.link == "sigmoid":
                values = np.stack([expit(-values), expit(values)], axis=2)
        return PredictionSamples(values, self.kind, classes=self.classes)


class _ParallelTreeDraws(_MarginDraws):
    """Trees as draws: the margin of draw k is that of a forest whose trees are all tree k."""

    def __init__(self, model: Any, leaves: np.ndarray, link: str, chosen: np.ndarray) -> None:
        super().__init__(model, link, chosen)
        # A copy, which another fit or `load_model` does not change.
        self.booster = model.get_booster().copy()
        self.leaves = leaves
        self.reading = {
            "missing": model.missing,
            "nthread": model.n_jobs,
            "feature_types": model.feature_types,
            "enable_categorical": model.enable_categorical,
        }
        self.mean_differs = "" if link == "identity" else "the mean of the trees is one of margins"

    def _margins(self, X: Any) -> np.ndarray:
        from xgboost import DMatrix  # the booster itself accepts no other form of rows

        rows = DMatrix(X, **self.reading)
        n_outputs, n_trees = self.leaves.shape[:2]
        places = self.booster.predict(rows, pred_leaf=True).astype(np.intp)
        places = places.reshape(-1, n_outputs, n_trees)
        values = self.leaves[np.arange(n_outputs)[:, None], np.arange(n_trees), places]
        margin = self.booster.predict(rows, output_margin=True).astype(np.float64)
        # The margins before any tree, by class where there are several, (n_points, n_outputs).
        start = margin.reshape(-1, n_outputs) - values.sum(axis=2)
        return (start[:, :, None] + n_trees * values[:, :, self.chosen]).swapaxes(1, 2)


class _VirtualEnsembleDraws(_MarginDraws):
    """Virtual ensembles as draws."""

    mean_differs = "virtual ensembles leave out some of the last trees"

    def __init__(self, model: Any, n_members: int, chosen: np.ndarray) -> None:
        link = CATBOOST_LINKS[model.get_all_params()["loss_function"]]
        super().__init__(model, link, chosen)
        self.model = model.copy()
        self.n_members = n_members

    def _margins(self, X: Any) -> np.ndarray:
        margins = self.model.virtual_ensembles_predict(
            X, prediction_type="VirtEnsembles", virtual_ensembles_count=self.n_members
        )
        return np.asarray(margins, dtype=np.float64)[:, self.chosen]


def _parallel_trees(model: Any) -> tuple[np.ndarray, str] | None:
    """Return values by node (n_outputs, n_trees, n_nodes) and the link, or None.

    None if trees correct those before them, if all are the same (they are without subsampling of
    rows or columns), or if the link is not known.
    """
    booster = model.get_booster()
    if booster.num_boosted_rounds() != 1:
        return None
    learner = json.loads(booster.save_raw("json"))["learner"]
    link = XGBOOST_LINKS.get(learner["objective"]["name"])
    trees = learner["gradient_booster"].get("model", {}).get("trees")  # not for dart or gblinear
    several_targets = int(learner["learner_model_param"]["num_target"]) > 1
    if link is None or not trees or several_targets or not _link_fits(model, link):
        return None
    # Trees come output by output. A leaf keeps its value where another node keeps its threshold.
    n_outputs = len(set(learner["gradient_booster"]["model"]["tree_info"]))
    values = np.zeros((len(trees), max(len(tree["split_conditions"]) for tree in trees)))
    for k, tree in enumerate(trees):
        # As float32, like the model itself.
        values[k, : len(tree["split_conditions"])] = np.float32(tree["split_conditions"])
    leaves = values.reshape(n_outputs, len(trees) // n_outputs, -1)
    return None if (leaves == leaves[:, :1]).all() else (leaves, link)


def _walked_posterior(model: Any) -> bool:
    """Return whether virtual ensembles are draws, rather than stages of one boosting run."""
    params = model.get_all_params()
    walked = bool(params.get("posterior_sampling"))
    return walked and _link_fits(model, CATBOOST_LINKS.get(params["loss_function"]))


def _link_fits(model: Any, link: str | None) -> bool:
    """Return whether a link is known, and is that of a classifier if the model is one."""
    return link is not None and (link == "identity") != hasattr(model, "predict_proba")
