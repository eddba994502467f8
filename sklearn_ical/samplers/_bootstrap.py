"""BootstrapSampler: posterior draws of any model that can be fitted, by refits on resamples."""

import copy
from collections.abc import Mapping
from numbers import Integral
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import has_fit_parameter

from sklearn_ical._fit_params import FitParams, check_fit_params
from sklearn_ical._labels import check_one_type, label_array, missing_labels
from sklearn_ical._random import root_seed, unfitted_clone
from sklearn_ical._typing import BaseEstimator, Integer, Seed
from sklearn_ical._validation import (
    HasMethods,
    Interval,
    StrOptions,
    check_parameters,
    n_rows,
    sliceable,
    take_rows,
    without_data_set,
)
from sklearn_ical.exceptions import LabeledRowsMissingError, UnsupportedModelError
from sklearn_ical.samplers._base import DEFAULT_DRAWS, BaseSampler, Draws, number_of_draws
from sklearn_ical.samplers._label_codes import fit_model
from sklearn_ical.samplers._members import Members, make_draws
from sklearn_ical.samplers._models import (
    check_single_output,
    estimator_type,
    is_fitted,
    keeps_columns,
    name_of,
    not_fitted,
    refittable,
    seeded_training,
)
from sklearn_ical.samplers._pipelines import split_for_refits
from sklearn_ical.samplers._routing import check_accepted, params_of_chosen, params_of_part
from sklearn_ical.samplers._wrappers import TransformedDraws

METHODS = ("auto", "weights", "copies", "bayesian")
# Parameters of boosted trees with which `fit` needs rows to validate on.
STOPS_EARLY = {"early_stopping_round", "early_stopping_rounds", "use_best_model"}
# Parameters of models that draw rows: those of imbalanced-learn, and RANSACRegressor.
DRAW_ROWS = {"sampling_strategy", "max_trials"}
NOT_PREDICTORS: dict[str | None, str] = {
    "outlier_detector": "detects outliers",
    "clusterer": "groups rows",
    "density_estimator": "estimates a density",
}


class BootstrapSampler(BaseSampler, BaseEstimator):
    """Refits clones of a model on bootstrap resamples of the labeled rows: one clone per draw.

    For models that have no posterior draws of their own. Rows of a classifier are resampled within
    their class, so that every class is kept.

    Read more in the :ref:`User Guide <bootstrap>`.

    Parameters
    ----------
    estimator : estimator
        A classifier or regressor, fitted or not. Only clones of it are fitted: of a search object,
        of the model that it chose; of a frozen one, of the model inside; of a fitted Pipeline, of
        its last step, on rows that the other steps transform as they were fitted. Steps that
        resample rows, as those of imbalanced-learn do, resample those of each refit. Without
        `predict_proba` the clones of a classifier vote.
    n_draws : int, default=50
        Default number of clones that `draw` fits.
    method : {"auto", "weights", "copies", "bayesian"}, default="auto"
        "copies" fits rows as often as they were drawn. "weights" passes these counts as
        `sample_weight` instead, times the weights given to `fit`. "bayesian" is the Bayesian
        bootstrap [2]_: weights of all rows are drawn from a flat Dirichlet distribution, and scaled
        to sum to the number of rows. "auto" takes "weights" where the model's `fit` has a
        `sample_weight` and there is no other estimator inside that may ignore it, and where the
        model draws no rows itself, as those of imbalanced-learn and RANSAC do, else "copies"; and
        "bayesian" in place of "weights" where each class has one row, so that there is nothing to
        resample. A model that counts rows, for example by `min_samples_leaf`, counts those of
        weight 0 too, so "weights" and "copies" may differ.
    n_jobs : int, default=None
        Number of clones fitted at once, in the sense of joblib.

    Attributes
    ----------
    X_, y_ : object
        The labeled rows and their labels, as given to `fit`. Not copied.
    fit_params_ : dict
        Other arguments of the fits of the clones.

    Notes
    -----
    Every parameter of a clone named `random_state` is seeded, one by one: the draws of a network
    differ by their initial weights too. Draw k depends on `random_state` and k alone; fewer draws
    are the first of many. Its numbers come from ``SeedSequence(random_state, spawn_key=(k,))``:
    first these seeds, in alphabetical order of the parameters, then the resample. Cost: `n_draws`
    fits, and as many predictions of each row.

    References
    ----------
    .. [1] Efron, "Bootstrap methods: another look at the jackknife", Annals of Statistics, 1979.
    .. [2] Rubin, "The Bayesian bootstrap", Annals of Statistics, 1981.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn_ical.samplers import BootstrapSampler
    >>> X, y = load_iris(return_X_y=True)
    >>> sampler = BootstrapSampler(LogisticRegression(max_iter=500), n_draws=10).fit(X, y)
    >>> sampler.sample(X, random_state=0).values.shape
    (150, 10, 3)
    """

    source = "refits on bootstrap resamples"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimator": [HasMethods("fit")],
        "n_draws": [Interval(Integral, 1, None, closed="left")],
        "method": [StrOptions(set(METHODS))],
        "n_jobs": [
            None,
            Interval(Integral, None, -1, closed="right"),
            Interval(Integral, 1, None, closed="left"),
        ],
    }

    def __init__(
        self,
        estimator: Any,
        *,
        n_draws: Integer = DEFAULT_DRAWS,
        method: Literal["auto", "weights", "copies", "bayesian"] = "auto",
        n_jobs: Integer | None = None,
    ) -> None:
        self.estimator = estimator
        self.n_draws = n_draws
        self.method = method
        self.n_jobs = n_jobs

    @property
    def cost(self) -> str:  # type: ignore[override]
        """Cost of the draws, in a few words."""
        return f"{self.n_draws} fits"

    @property
    def kind(self) -> str:
        """The kind of the draws, known before any of them is fitted."""
        model = refittable(self.estimator)
        if estimator_type(model) == "regressor":
            return "value"
        return "proba" if hasattr(model, "predict_proba") else "label"

    def fit(self, X: Any, y: Any, **fit_params: Any) -> "BootstrapSampler":
        """Store the labeled rows that `draw` resamples; nothing is fitted yet.

        Parameters
        ----------
        X : object
            Rows that the model's `fit` accepts, at least one.
        y : array-like of shape (n_rows,) or (n_rows, n_targets)
            Their labels or targets.
        **fit_params : dict
            Other arguments of the model's `fit`, as it takes them itself: of a Pipeline as
            ``step__name``. Arrays with one row for each row of `X`, and sample weights in any
            container, are resampled along with the rows; see :term:`fit_params`.

        Returns
        -------
        self : BootstrapSampler
        """
        return self._keep(X, y, fit_params)

    def with_labeled(
        self, X_labeled: Any, y_labeled: Any, fit_params: Mapping[str, Any] | None = None
    ) -> "BootstrapSampler":
        """Return a copy of this sampler that has these labeled rows.

        Parameters
        ----------
        X_labeled, y_labeled : object
            As `X` and `y` of :meth:`fit`.
        fit_params : dict, default=None
            As the other arguments of :meth:`fit`.

        Returns
        -------
        sampler : BootstrapSampler
        """
        return copy.copy(self)._keep(X_labeled, y_labeled, fit_params)

    def _keep(self, X: Any, y: Any, fit_params: Any) -> "BootstrapSampler":
        """Check the labeled rows and the other arguments of a fit, and keep them."""
        check_parameters(self)
        model = refittable(self.estimator)
        caller = f"BootstrapSampler of {name_of(model)}"
        check_refittable(model)
        X = without_data_set(X, "X_labeled")  # whose own labels would be fitted
        _check_labeled(model, X, y)
        _labels_of(model, y)
        params = check_fit_params(fit_params, X, caller, name="X_labeled")
        params = params_of_chosen(self.estimator, params)
        check_accepted(model, params, caller)
        self.X_, self.y_, self.fit_params_ = X, y, params
        return self

    def draw(self, n_draws: Integer | None = None, random_state: Seed = None) -> Draws:
        """Fit clones of the model on resamples of the labeled rows.

        Parameters
        ----------
        n_draws : int, default=None
            Number of draws; None for the parameter `n_draws`.
        random_state : int, RandomState, Generator or None, default=None
            See :term:`random_state`.

        Returns
        -------
        draws : Draws
            Immutable; columns follow the classes of the fitted model and of the labels.

        Raises
        ------
        UnsupportedModelError
            If there are no labeled rows yet, if all draws would be the same, or if a clone cannot
            be fitted; the message names the model and a way out.
        """
        check_parameters(self)
        n_draws = number_of_draws(n_draws, "BootstrapSampler", self.n_draws)
        model = refittable(self.estimator)
        check_refittable(model)
        name = name_of(model)
        if not hasattr(self, "X_"):
            raise LabeledRowsMissingError(
                f"{name} has no posterior draws of its own, so it has to be refitted on resamples "
                "of the labeled rows. Got no labeled rows; call query(model, X_pool, X_labeled=X, "
                "y_labeled=y), or pass BootstrapSampler(model).fit(X, y) as the model."
            )
        params = self.fit_params_
        if isinstance(model, Pipeline) and is_fitted(model):
            before, part = split_for_refits(model)
            params, model = params_of_part(model, part, params), part
            if before is not None:
                sampler = copy.copy(self).set_params(estimator=part)
                sampler = sampler._keep(before.transform(self.X_), self.y_, params)
                return TransformedDraws(before, sampler.draw(n_draws, random_state))
        X, y = sliceable(self.X_), _labels_of(model, self.y_)
        classifies = estimator_type(model) == "classifier"
        strata = np.unique(y, return_inverse=True)[1] if classifies else np.zeros(len(y), dtype=int)
        method = _choose_method(model, self.method, strata)
        root, unfitted = root_seed(random_state, "BootstrapSampler"), _unfitted(model)
        clones = Parallel(n_jobs=self.n_jobs)(
            delayed(_refit)(unfitted, X, y, params, strata, method, root, k) for k in range(n_draws)
        )
        return make_draws(
            Members(
                caller="BootstrapSampler",
                names=[f"{k} ({name})" for k in range(n_draws)],
                models=list(clones),
                classes=getattr(model, "classes_", None) if classifies else None,
                mean_differs="each draw is a refit on a resample of the labeled rows",
            )
        )


def bootstrap_sampler(model: Any) -> BootstrapSampler:
    """Return the bootstrap of a fitted classifier or regressor; raise for other objects."""
    name, kind, fits = name_of(model), estimator_type(model), hasattr(model, "fit")
    aimless = fits and kind is None and not hasattr(model, "predict")
    if aimless or kind in NOT_PREDICTORS:
        does = NOT_PREDICTORS.get(
            kind, "transforms rows" if hasattr(model, "transform") else "can be fitted"
        )
        raise UnsupportedModelError(
            f"{name} {does} and predicts no target, so it gives no prediction samples. Pass a "
            "fitted classifier or regressor."
        )
    if not fits:
        raise UnsupportedModelError(
            f"No prediction sampler is registered for {name}. Pass a fitted classifier or "
            "regressor, a list or dict of them, a Pipeline or search around one, an object with a "
            "draw method, PredictionSamples or an (n_points, n_draws, n_classes) array of "
            "probabilities; or register one with "
            f"sklearn_ical.samplers.get_sampler.register({name})."
        )
    check_refittable(model)
    if not is_fitted(model):
        raise not_fitted(model)
    return BootstrapSampler(model)


def check_refittable(model: Any) -> None:
    """Raise if clones of the model cannot be fitted, or would not be draws."""
    name, kind = name_of(model), estimator_type(model)
    if isinstance(model, type) or not hasattr(model, "fit") or not hasattr(model, "get_params"):
        raise UnsupportedModelError(
            f"{name} must be an estimator with fit and get_params, so that clones of it can be "
            "refitted. Inherit from sklearn.base.BaseEstimator, or pass a list of fitted models."
        )
    if kind not in ("classifier", "regressor"):
        raise UnsupportedModelError(
            f"{name} must be a classifier or a regressor. Got a model of type {kind!r} without "
            "predict_proba; a model class of your own inherits from ClassifierMixin or "
            "RegressorMixin."
        )
    check_single_output(model)


def _check_labeled(model: Any, X: Any, y: Any) -> None:
    """Raise if there is not one label for each labeled row, or if there are no rows."""
    caller = f"BootstrapSampler of {name_of(model)}"
    if X is None or y is None:
        name = "X_labeled" if X is None else "y_labeled"
        raise ValueError(
            f"Labeled rows come as X_labeled and y_labeled together. Got {name}=None in {caller}."
        )
    total, labels = n_rows(X, "X_labeled"), n_rows(y, "y_labeled")
    if labels != total or total == 0:
        raise ValueError(
            "y_labeled must hold one label for each row of X_labeled, at least one. Got "
            f"{labels} labels for {total} rows in {caller}."
        )
    known = getattr(model, "n_features_in_", None)
    columns: Any = () if hasattr(X, "columns") else getattr(X, "shape", ())[1:]
    if known is not None and len(columns) == 1 and columns[0] != known:
        raise ValueError(
            f"X_labeled must have the {known} columns that {name_of(model)} was fitted on. Got "
            f"{columns[0]} in {caller}."
        )


def _labels_of(model: Any, y: Any) -> np.ndarray:
    """Return labels as an array, of one axis for a classifier; raise if they cannot be used."""
    caller = f"BootstrapSampler of {name_of(model)}"
    labels = label_array(y, "y_labeled", caller, ravel=not keeps_columns(model))
    missing = missing_labels(labels)
    if missing.any():
        row = int(np.argmax(missing))
        raise ValueError(
            f"y_labeled must have no missing labels. Got {labels[row]!r} for row {row} in "
            f"{caller}; leave out rows without a label."
        )
    if estimator_type(model) != "classifier":
        return labels
    if labels.size != len(labels):
        raise UnsupportedModelError(
            f"y_labeled must have shape ({len(labels)},) for a classifier: draws have one class "
            f"axis, (n_points, n_draws, n_classes). Got shape {labels.shape} in {caller}; fit one "
            "model per output."
        )
    labels = labels.reshape(-1)
    # An array that does not hold objects has labels of one type.
    groups = [("y_labeled", labels if labels.dtype == object else labels[:1])]
    known = getattr(model, "classes_", None)  # CatBoost has None before it is fitted
    if known is not None:
        groups.insert(0, ("the model", np.asarray(known)))
    check_one_type(groups, caller)
    return labels


def _choose_method(model: Any, method: str, strata: np.ndarray) -> str:
    """Return how to resample; raise if the model does not support it."""
    name, total = name_of(model), len(strata)
    params = model.get_params(deep=True)
    weighs = has_fit_parameter(model, "sample_weight")
    if method in ("weights", "bayesian") and not weighs:
        raise UnsupportedModelError(
            f"method={method!r} of BootstrapSampler needs a model whose fit takes sample_weight. "
            f"Got {name}; use method='copies'."
        )
    alone = np.bincount(strata).max() == 1
    if method == "auto":
        # An estimator inside another one may be fitted without the weights, and a model that
        # draws rows itself draws them whatever their weights.
        nested = any(hasattr(value, "fit") for value in params.values())
        weighs = weighs and not nested and not DRAW_ROWS & params.keys()
        method = "copies" if not weighs else "bayesian" if alone else "weights"
    same = total == 1 if method == "bayesian" else alone
    if same and not any("random_state" in key for key in params):
        raise UnsupportedModelError(
            f"All refits of {name} by BootstrapSampler would be the same: with one labeled row"
            f"{'' if total == 1 else ' per class'} there is nothing to resample. Got {total} "
            f"labeled row{'s' if total > 1 else ''}; label more, or choose the next rows with "
            "RandomQuery."
        )
    return method


def _unfitted(model: Any) -> Any:
    """Return an unfitted clone; members that were given to the model fitted stay fitted."""
    if getattr(model, "cv", None) == "prefit" and hasattr(model, "estimators"):
        members = [
            (key, member if member == "drop" else FrozenEstimator(member))
            for key, member in model.estimators
        ]
        model = copy.copy(model)
        model.estimators = members
    return unfitted_clone(model)


def _refit(
    model: Any,
    X: Any,
    y: np.ndarray,
    params: FitParams,
    strata: np.ndarray,
    method: str,
    root: int,
    k: int,
) -> Any:
    """Return clone k of the model, fitted on its resample."""
    seed = np.random.SeedSequence(root, spawn_key=(k,))
    generator = np.random.default_rng(seed)
    try:
        refit = _seeded_clone(model, generator)
        with seeded_training(refit, int(seed.generate_state(1)[0])):
            if method == "bayesian":
                rows = np.arange(len(y))
                params = params.weighted(generator.dirichlet(np.ones(len(y))) * len(y))
            else:
                rows = _resample(strata, generator)
            if method == "weights":
                counts = np.bincount(rows, minlength=len(y)).astype(np.float64)
                rows, params = np.arange(len(y)), params.weighted(counts)
            # Copies, as some models work in place.
            return fit_model(refit, take_rows(X, rows), y[rows], params.take(rows))
    except Exception as err:
        raise UnsupportedModelError(
            f"{name_of(model)} could not be fitted on resample {k} of {len(y)} labeled rows by "
            f"BootstrapSampler(method={method!r}): {str(err).rstrip('. ')}. "
            f"{_way_out(model, params)}"
        ) from err


def _way_out(model: Any, params: FitParams) -> str:
    """Return what to do about a refit that failed."""
    validated = any("eval" in name for name in params)
    for name, value in model.get_params(deep=True).items():
        if name.rpartition("__")[2] in STOPS_EARLY and value and not validated:
            return (
                f"With {name}={value!r}, fit needs rows to validate on: pass them as in "
                f"fit_params={{'eval_set': [(X_valid, y_valid)]}}, or set {name}=None."
            )
    return (
        "If fit needs more than X and y, pass it as fit_params; if there are too few rows, label "
        "more of them; else pass a list of models that you fitted yourself."
    )


def _seeded_clone(model: Any, generator: np.random.Generator) -> Any:
    """Return an unfitted clone in which each `random_state` is a different integer."""
    unfitted = unfitted_clone(model)
    names = sorted(unfitted.get_params(deep=True))
    seeds = {
        name: int(generator.integers(2**31))
        for name in names
        if name == "random_state" or name.endswith("__random_state")
    }
    return unfitted.set_params(**seeds) if seeds else unfitted


def _resample(strata: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """Return for each row one of its stratum, drawn with replacement, (n_rows,).

    So the order of the strata is that of the rows: batches of a net, or folds that are not
    shuffled, hold the classes that they hold in a fit on the rows themselves.
    """
    order = np.argsort(strata, kind="stable")
    counts = np.bincount(strata)
    starts = np.cumsum(counts) - counts
    places = strata[order]  # the stratum of each of the rows to draw
    drawn = (generator.random(len(strata)) * counts[places]).astype(np.intp)
    rows = np.empty(len(strata), dtype=np.intp)
    rows[order] = order[starts[places] + drawn]
    return rows
