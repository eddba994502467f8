"""ActiveLearner, the scikit-learn meta-estimator; rows and labels are kept by _labeled."""

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal, overload

import numpy as np
import sklearn
from sklearn.exceptions import DataConversionWarning
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from sklearn_ical._fit_params import FitParams
from sklearn_ical._labels import one_column
from sklearn_ical._random import unfitted_clone
from sklearn_ical._typing import (
    BaseEstimator,
    Indices,
    IndicesAndUtilities,
    Integer,
    MetaEstimatorMixin,
    Strategy,
    StrategyName,
)
from sklearn_ical._validation import n_rows, warn
from sklearn_ical.learner._labeled import Labeled, check_no_new_class
from sklearn_ical.learner._rows import CALLER
from sklearn_ical.samplers import get_sampler
from sklearn_ical.samplers._base import labeled_sampler
from sklearn_ical.samplers._label_codes import fit_model
from sklearn_ical.samplers._models import keeps_columns
from sklearn_ical.strategies._resolve import resolve_strategy, takes_fit_params, takes_labeled

_DELEGATED = ("predict", "predict_proba", "predict_log_proba", "decision_function", "score")


def _inner_has(method: str) -> Callable[[Any], bool]:
    """Return a check of whether the inner estimator, fitted if there is one, has a method."""

    def check(learner: Any) -> bool:
        getattr(getattr(learner, "estimator_", learner.estimator), method)
        return True

    return check


class ActiveLearner(MetaEstimatorMixin, BaseEstimator):
    """A model, the labels that it was fitted on, and a strategy to choose the next rows.

    It is a classifier if `estimator` is one, a regressor if `estimator` is one, and can be used
    wherever scikit-learn accepts these.

    Read more in the :ref:`User Guide <active_learner>`.

    Parameters
    ----------
    estimator : estimator
        The model, a Pipeline or a search for example. It is cloned for each fit and never changed.
    strategy : BaseQuery or str
        Chooses the rows to label next; any object with ``query(model, X_pool, batch_size)``, or
        a name such as "margin" for a strategy with default parameters, see
        :ref:`strategy_names`. Never changed.

    Attributes
    ----------
    estimator_ : estimator
        Fitted on the labels so far.
    X_labeled_ : object
        The rows labeled so far, in the type that was given to `fit`. A copy, which later changes of
        the arguments do not affect. Estimators are fitted on a copy of it in turn.
    y_labeled_ : object
        Their labels, in the type that was given to `fit`.
    labeled_features_ : object
        The features of the rows labeled so far, None if `fit` was given none.
    fit_params_ : dict
        Other arguments of `fit` and `teach`, by name; sample weights and other metadata of rows
        have one entry for each row of `X_labeled_`. Refits of the model by strategies get them too.
    classes_ : ndarray or list of ndarray
        Those of `estimator_`, if it has them.
    n_features_in_ : int
        That of `estimator_`, if it has it.
    feature_names_in_ : ndarray
        Those of `estimator_`, if it has them.

    Notes
    -----
    Without metadata routing, keyword arguments of `fit`, `teach`, `predict`, `score` and the like
    go to the method of the inner estimator as they are, as those of
    :class:`~sklearn.model_selection.GridSearchCV` do. With
    ``sklearn.set_config(enable_metadata_routing=True)`` they go where they are requested. Arrays
    with one row for each row of `X`, and sample weights and groups in any container, are metadata
    of rows: `teach` appends them to those of the earlier rows; see :term:`fit_params`.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from sklearn_ical import ActiveLearner, ICALQuery
    >>> X, y = load_digits(return_X_y=True)
    >>> X_pool, y_pool = X[50:1000], y[50:1000]
    >>> learner = ActiveLearner(RandomForestClassifier(random_state=0), ICALQuery(random_state=0))
    >>> learner.fit(X[:50], y[:50]).score(X[1000:], y[1000:])
    0.71...
    >>> indices = learner.query(X_pool, batch_size=50)
    >>> learner.teach(X_pool[indices], y_pool[indices]).score(X[1000:], y[1000:])
    0.7...
    >>> learner.X_labeled_.shape
    (100, 64)
    """

    def __init__(self, estimator: Any, strategy: Strategy | StrategyName) -> None:
        self.estimator = estimator
        self.strategy = strategy

    def fit(self, X: Any, y: Any, *, features: Any = None, **params: Any) -> "ActiveLearner":
        """Fit a clone of the estimator, and start again with these labels.

        Parameters
        ----------
        X : object
            Rows that the estimator accepts: array, sparse matrix, pandas or polars frame, list.
        y : array-like of shape (n_rows,) or (n_rows, n_outputs)
            Their labels, none of them missing: all are passed to the estimator. One column,
            (n_rows, 1), is raveled.
        features : array-like of shape (n_rows, n_features), default=None
            Precomputed features of the rows, kept for strategies that read those of the labeled
            rows; `teach` then needs them too, and `query` those of the pool.
        **params : dict
            Sample weights and other arguments of the estimator's `fit`; see Notes of the class.

        Returns
        -------
        self : ActiveLearner

        Raises
        ------
        TypeError, ValueError
            If `estimator` or `strategy` cannot be used as one.
        """
        self._check_parameters("fit")
        if not keeps_columns(self.estimator):
            y = _raveled(y, self.estimator)
        return self._refit(Labeled.from_arguments(X, y, params, features).copied())

    @overload
    def query(
        self,
        X_pool: Any,
        batch_size: Integer = 1,
        *,
        return_utilities: Literal[False] = False,
        **options: Any,
    ) -> Indices: ...

    @overload
    def query(
        self,
        X_pool: Any,
        batch_size: Integer = 1,
        *,
        return_utilities: Literal[True],
        **options: Any,
    ) -> IndicesAndUtilities: ...

    @overload
    def query(
        self, X_pool: Any, batch_size: Integer = 1, *, return_utilities: bool, **options: Any
    ) -> Indices | IndicesAndUtilities: ...

    def query(self, X_pool: Any, batch_size: Integer = 1, **options: Any) -> Any:
        """Choose the rows of a pool that should be labeled next.

        Parameters
        ----------
        X_pool : object
            Rows that the estimator accepts, n_pool of them.
        batch_size : int, default=1
            Number of rows to choose.
        **options : dict
            Keyword arguments of the strategy's own `query`: for each
            :class:`~sklearn_ical.BaseQuery` `candidates`, `X_reference`, `features`, `costs`,
            `budget` and `return_utilities`. The labels so far are passed as `X_labeled` and
            `y_labeled`, the other arguments of `fit` and `teach` as `fit_params`, and with
            `features` those of the labeled rows as `labeled_features`.

        Returns
        -------
        indices : intp array of shape (n_picks,)
            Distinct positions in `X_pool`, in pick order.
        utilities : float64 array of shape (n_picks, n_pool)
            Only with ``return_utilities=True``. Row t holds the utilities that pick t was chosen
            by, NaN where not allowed; higher is better.

        Raises
        ------
        NotFittedError
            If `fit` was not called before.
        TypeError, ValueError
            If `strategy` has no `query`, or is a string that names no strategy.
        """
        check_is_fitted(self, "estimator_")
        strategy, labeled = self._check_parameters("query"), {}
        if takes_labeled(strategy):
            labeled = {"X_labeled": self.X_labeled_, "y_labeled": self.y_labeled_}
            if self.fit_params_ and takes_fit_params(strategy):
                labeled["fit_params"] = _params_of_fit(self)
            if options.get("features") is not None:
                labeled["labeled_features"] = self.labeled_features_
        return strategy.query(self.estimator_, X_pool, batch_size, **(labeled | options))

    def teach(
        self,
        X_new: Any,
        y_new: Any,
        *,
        features: Any = None,
        partial_fit: bool = False,
        **params: Any,
    ) -> "ActiveLearner":
        """Add labels, and fit a fresh clone of the estimator on all labels so far.

        If anything fails, the learner stays as it was, with all labels before.

        Parameters
        ----------
        X_new : object
            Rows of the type that was given to `fit`. Columns of a frame are matched by name; the
            index of a pandas frame is kept.
        y_new : array-like of shape (n_rows,) or (n_rows, n_outputs)
            Their labels, in the type that was given to `fit` or in a list. Rows whose label is
            None, NaN or NA are left out, as not labeled; if all are, nothing changes.
        features : array-like of shape (n_rows, n_features), default=None
            Precomputed features of the new rows, where `fit` was given those of its rows.
        partial_fit : bool, default=False
            Whether to call the fitted estimator's `partial_fit` on the new rows alone instead.
            The labels are kept all the same, so that a later `teach` can fit on all of them.
        **params : dict
            Sample weights and other arguments of the estimator's `fit`, or of its `partial_fit`.
            Metadata of rows must be given for all rows or for none; only sample weights may be
            given in some calls, and are 1 for the rows of the others. Arguments that do not belong
            to rows are kept from call to call, except for those of `partial_fit` alone.

        Returns
        -------
        self : ActiveLearner

        Raises
        ------
        NotFittedError
            If `fit` was not called before.
        TypeError
            If rows, labels or metadata are of another type than before, or if `partial_fit` is True
            and the estimator does not have that method.
        ValueError
            If there is no row, columns or lengths differ, metadata is missing for some rows, or
            `partial_fit` would have to add a class.
        """
        check_is_fitted(self, "estimator_")
        self._check_parameters("teach")
        if partial_fit and not hasattr(self.estimator_, "partial_fit"):
            raise TypeError(
                "partial_fit=True needs an estimator with partial_fit. Got "
                f"{type(self.estimator_).__name__} in {CALLER}; leave partial_fit out to fit on "
                "all labels."
            )
        y_new = y_new if keeps_columns(self.estimator) else one_column(y_new)
        before = Labeled.from_arguments(
            self.X_labeled_, self.y_labeled_, self.fit_params_, self.labeled_features_
        )
        new = before.new_rows(X_new, y_new, params, features)
        if not n_rows(new.y):
            return self
        whole = before.joined(new)
        if not partial_fit:
            return self._refit(whole)
        whole = replace(whole, params=whole.params.of_rows_or(before.params))
        # Joined rows have the columns and the dtype that the model was fitted on.
        fresh = whole.take(slice(n_rows(before.y), None)).copied()
        check_no_new_class(fresh.y, getattr(self, "classes_", None))
        routed = self._routed("partial_fit", new.params)
        model = copy.deepcopy(self.estimator_)
        return self._assign(model.partial_fit(fresh.X, fresh.y, **routed), whole)

    @available_if(_inner_has("predict"))
    def predict(self, X: Any, **params: Any) -> Any:
        """Return what the fitted estimator predicts.

        Parameters
        ----------
        X : object
            Rows that the estimator accepts.
        **params : dict
            Arguments of its method; see Notes of the class.

        Returns
        -------
        y : array of shape (n_rows,) or (n_rows, n_outputs)
        """
        return self._call("predict", X, **params)

    @available_if(_inner_has("predict_proba"))
    def predict_proba(self, X: Any, **params: Any) -> Any:
        """Return the probabilities that the fitted estimator gives to the classes.

        Parameters
        ----------
        X : object
            Rows that the estimator accepts.
        **params : dict
            Arguments of its method; see Notes of the class.

        Returns
        -------
        proba : array of shape (n_rows, n_classes), or a list of these for several outputs
        """
        return self._call("predict_proba", X, **params)

    @available_if(_inner_has("predict_log_proba"))
    def predict_log_proba(self, X: Any, **params: Any) -> Any:
        """Return the logarithms of the probabilities of the classes.

        Parameters
        ----------
        X : object
            Rows that the estimator accepts.
        **params : dict
            Arguments of its method; see Notes of the class.

        Returns
        -------
        log_proba : array of shape (n_rows, n_classes), or a list of these for several outputs
        """
        return self._call("predict_log_proba", X, **params)

    @available_if(_inner_has("decision_function"))
    def decision_function(self, X: Any, **params: Any) -> Any:
        """Return the decision values of the fitted estimator.

        Parameters
        ----------
        X : object
            Rows that the estimator accepts.
        **params : dict
            Arguments of its method; see Notes of the class.

        Returns
        -------
        decisions : array of shape (n_rows,) or (n_rows, n_classes)
        """
        return self._call("decision_function", X, **params)

    @available_if(_inner_has("score"))
    def score(self, X: Any, y: Any = None, **params: Any) -> float:
        """Return the fitted estimator's own score.

        Parameters
        ----------
        X : object
            Rows that the estimator accepts.
        y : array-like of shape (n_rows,) or (n_rows, n_outputs)
            Their labels.
        **params : dict
            Sample weights and other arguments of its method; see Notes of the class.

        Returns
        -------
        score : float
        """
        return self._call("score", X, y, **params)

    @property
    def classes_(self) -> Any:
        """Classes of the fitted estimator."""
        return self.estimator_.classes_

    @property
    def n_features_in_(self) -> int:
        """Number of features that the fitted estimator saw."""
        return self.estimator_.n_features_in_

    @property
    def feature_names_in_(self) -> np.ndarray:
        """Names of the features that the fitted estimator saw."""
        return self.estimator_.feature_names_in_

    def get_metadata_routing(self) -> MetadataRouter:
        """Return where metadata goes: to the method of the estimator that is called.

        Returns
        -------
        routing : MetadataRouter
        """
        mapping = MethodMapping()
        for method in ("fit", "partial_fit", *_DELEGATED):
            mapping.add(caller=method, callee=method)
        return MetadataRouter(owner=type(self).__name__).add(
            estimator=self.estimator, method_mapping=mapping
        )

    def __sklearn_tags__(self) -> Any:
        tags = copy.deepcopy(get_tags(self.estimator))
        tags.transformer_tags = None
        tags.array_api_support = False  # rows and labels keep their own namespaces
        tags.requires_fit = True
        return tags

    def _check_parameters(self, method: str) -> Any:
        """Return the strategy as an object; raise if it or the estimator cannot be used as one."""
        strategy = resolve_strategy(self.strategy, "strategy", f"ActiveLearner.{method}")
        for name, value, needed, advice in (
            ("estimator", self.estimator, "fit", "an estimator such as RandomForestClassifier()"),
            ("strategy", strategy, "query", "a query strategy such as RandomQuery() or 'random'"),
        ):
            if isinstance(value, type) or not callable(getattr(value, needed, None)):
                raise TypeError(
                    f"{name} must be an object with a method {needed}. Got {value!r} in "
                    f"ActiveLearner.{method}; pass {advice}."
                )
        return strategy

    def _refit(self, labeled: Labeled) -> "ActiveLearner":
        """Fit a fresh clone on copies, since some estimators work in place; then take the state."""
        given = labeled.copied()
        routed = self._routed("fit", given.params)
        model = fit_model(unfitted_clone(self.estimator), given.X, given.y, routed)
        return self._assign(model, labeled)

    def _assign(self, model: Any, labeled: Labeled) -> "ActiveLearner":
        self.estimator_ = model
        self.X_labeled_ = labeled.X
        self.y_labeled_ = labeled.y
        self.fit_params_ = labeled.params
        self.labeled_features_ = labeled.features
        return self

    def _call(self, method: str, *args: Any, **params: Any) -> Any:
        """Call a method of the fitted estimator."""
        check_is_fitted(self, "estimator_")
        return getattr(self.estimator_, method)(*args, **self._routed(method, params))

    def _routed(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Return the metadata that a method of the estimator gets."""
        if params and sklearn.get_config()["enable_metadata_routing"]:
            return process_routing(self, method, **params)["estimator"][method]
        return params


def _raveled(y: Any, estimator: Any) -> Any:
    """Return labels in one column as those of one axis, with the warning of scikit-learn.

    There is none for an estimator that takes several outputs, as in its own checks.
    """
    raveled = one_column(y)
    has_tags = hasattr(estimator, "__sklearn_tags__")
    if raveled is not y and has_tags and not get_tags(estimator).target_tags.multi_output:
        warn(
            "A column-vector y was passed when a 1d array was expected by ActiveLearner.fit. "
            "Please change the shape of y to (n_samples,), for example using ravel().",
            DataConversionWarning,
        )
    return raveled


def _draw_from(learner: ActiveLearner) -> Any:
    """Return the sampler of the fitted estimator, with the labels so far if it needs them."""
    check_is_fitted(learner, "estimator_")
    labeled = learner.X_labeled_, learner.y_labeled_
    return labeled_sampler(learner.estimator_, *labeled, _params_of_fit(learner))


def _params_of_fit(learner: ActiveLearner) -> FitParams:
    """Return the arguments that the fit of the estimator got."""
    return learner.fit_params_.renamed(learner._routed("fit", learner.fit_params_))


get_sampler.register(ActiveLearner, _draw_from)
