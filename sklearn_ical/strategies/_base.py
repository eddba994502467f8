"""BaseQuery: the query recipe that all strategies share; PointwiseQuery: scores of one row."""

import copy
import sys
from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Unpack, overload

import numpy as np
from sklearn.base import clone

from sklearn_ical import _array
from sklearn_ical._array import Array
from sklearn_ical._random import DRAWS, root_seed, stream_seed
from sklearn_ical._typing import (
    BaseEstimator,
    Indices,
    IndicesAndUtilities,
    Integer,
    Numbers,
    Positions,
    PositionSets,
    QueryOptions,
    QueryTags,
    Real,
    Seed,
)
from sklearn_ical._validation import (
    HasMethods,
    StrOptions,
    check_parameters,
)
from sklearn_ical.exceptions import LabeledRowsMissingError
from sklearn_ical.pool._arguments import (
    SelectOptions,
    check_limits,
    check_other_rows,
    row_set,
    with_draws,
    with_rows_of_learner,
)
from sklearn_ical.pool._pool import Pool, RowSet
from sklearn_ical.samplers._base import Draws, draw_from, resolve_source
from sklearn_ical.samples import PredictionSamples
from sklearn_ical.selection._batch import Batch, Selection, merge_ties
from sklearn_ical.selection._range import select_in_range

# Largest number of classes or targets in the error bound of a score.
MOST_OUTPUTS = 1000
# What a parameter `features` may be; see RowSet.features.
FEATURES: list[Any] = [StrOptions({"auto"}), HasMethods(["transform"]), callable, None]


class BaseQuery(BaseEstimator):
    """Base of query strategies: it checks and reads the inputs, subclasses define the selection.

    A subclass only assigns its parameters in ``__init__``, describes itself in ``query_tags``,
    lists ``_parameter_constraints`` in scikit-learn's form and defines ``_select(pool)``, which
    returns a :class:`~sklearn_ical.selection.Selection`, preferably by
    :func:`~sklearn_ical.selection.maximize` or a :class:`~sklearn_ical.selection.Batch`. Subclass
    ``PointwiseQuery`` if each row has its own score. A strategy object is never changed by a call.
    Read more in the :ref:`User Guide <extending>`.

    Parameters
    ----------
    random_state : int, RandomState, Generator or None, default=None
        See :term:`random_state`.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "random_state": ["random_state", np.random.Generator]
    }

    def __init__(self, *, random_state: Seed = None) -> None:
        self.random_state = random_state

    def __sklearn_clone__(self) -> Any:
        """Return a clone; a transformer in `features` stays fitted."""
        parameters = self.get_params(deep=False)
        return type(self)(
            **{
                name: copy.deepcopy(value) if name == "features" else clone(value, safe=False)
                for name, value in parameters.items()
            }
        )

    def query_tags(self) -> QueryTags:
        """Return the inputs and guarantees of this strategy with its current parameters.

        Returns
        -------
        tags : QueryTags
        """
        return QueryTags()

    @overload
    def query(
        self, model: Any, X_pool: Any, batch_size: Integer = 1, *,
        return_utilities: Literal[False] = False, **options: Unpack[QueryOptions],
    ) -> Indices: ...  # fmt: skip

    @overload
    def query(
        self, model: Any, X_pool: Any, batch_size: Integer = 1, *,
        return_utilities: Literal[True], **options: Unpack[QueryOptions],
    ) -> IndicesAndUtilities: ...  # fmt: skip

    @overload
    def query(
        self, model: Any, X_pool: Any, batch_size: Integer = 1, *,
        return_utilities: bool, **options: Unpack[QueryOptions],
    ) -> Indices | IndicesAndUtilities: ...  # fmt: skip

    def query(
        self,
        model: Any,
        X_pool: Any,
        batch_size: Integer = 1,
        *,
        candidates: Positions | None = None,
        X_labeled: Any = None,
        y_labeled: Any = None,
        fit_params: Mapping[str, Any] | None = None,
        X_reference: Any = None,
        reference: PositionSets | None = None,
        features: Any = None,
        labeled_features: Any = None,
        reference_features: Any = None,
        costs: Numbers | None = None,
        budget: Real | None = None,
        return_utilities: bool = False,
    ) -> Indices | IndicesAndUtilities:
        """Choose the rows of a pool that should be labeled next.

        Parameters
        ----------
        model : object
            A fitted estimator, a Pipeline, search or learner around one, a list or dict of fitted
            models, a sampler, draws, or precomputed predictions. Never changed. One that has no
            posterior draws of its own is refitted, in clones, on resamples of the labeled rows. May
            be None if by the tags no model is read.
        X_pool : object
            Rows that the model accepts, n_pool of them. They go to the model unconverted, in
            chunks. Never changed.
        batch_size : int, default=1
            Number of rows to choose, at least 1; all candidates, with a warning, if fewer.
        candidates : array of int or bool, default=None
            See :term:`candidates`; None allows the whole pool.
        X_labeled, y_labeled : object, default=None
            The labeled rows and their labels, for strategies that use them and for models without
            draws of their own; ignored otherwise. None takes those that a learner has.
        fit_params : dict, default=None
            Other arguments of the model's `fit`, such as `sample_weight`, for models that are
            refitted; ignored otherwise. Those with one entry per row are aligned with `X_labeled`;
            see :term:`fit_params`.
        X_reference : object, default=None
            Rows that the model accepts, for strategies that compare candidates with reference rows;
            ignored otherwise. None compares with the pool.
        reference : int array of shape (r,) or (n_steps, r), default=None
            Reference rows, as positions in the pool, or in `X_reference` if given: one set for the
            whole batch or, with a parameter `resample`, one for each step. Repeated positions count
            repeatedly. None draws them; ignored by strategies without reference rows.
        features : array-like of shape (n_pool, n_features), default=None
            Precomputed features of the pool, used instead of those computed by the strategy.
        labeled_features, reference_features : array-like, default=None
            The same for labeled and reference rows; required with `features` if those are used.
        costs : array-like of shape (n_pool,), default=None
            Cost of the label of each row, > 0 and in any unit. Each pick then has the largest
            utility per cost; see :term:`costs`. For strategies whose utilities are gains.
        budget : float, default=None
            Largest total cost of the picks, in the unit of `costs`; up to a relative rounding of
            1e-9. Only with `costs`. The batch ends when no candidate fits the remaining budget.
        return_utilities : bool, default=False
            Whether to return the utilities too, 8 * n_picks * n_pool bytes.

        Returns
        -------
        indices : intp array of shape (n_picks,)
            Distinct positions in `X_pool`, in pick order, on the host.
        utilities : float64 array of shape (n_picks, n_pool)
            Only with ``return_utilities=True``. Row t holds the utilities that pick t was chosen
            by, NaN where not allowed; higher is better. With `costs` these are utilities per cost,
            NaN also where the cost exceeds the remaining budget.

        Raises
        ------
        TypeError, ValueError
            If a parameter, the model or an argument is not valid, before any work.
        NotImplementedError
            If a third-party strategy of gains was given costs and does not support them.
        """
        sets = {
            "pool": {"X": X_pool, "features": features},
            "labeled": {
                "X": X_labeled, "y": y_labeled, "features": labeled_features,
                "fit_params": fit_params,
            },
            "reference": {"X": X_reference, "features": reference_features},
        }  # fmt: skip
        pool = self._pool(
            "query", sets, batch_size, candidates, costs, budget, return_utilities, reference, model
        )
        chosen = self._choose(pool)
        return (chosen.positions, chosen.known_rows) if return_utilities else chosen.positions

    @overload
    def select(
        self, samples: PredictionSamples | Array | None = None, batch_size: Integer = 1, *,
        return_utilities: Literal[False] = False, **options: Unpack[SelectOptions],
    ) -> Indices: ...  # fmt: skip

    @overload
    def select(
        self, samples: PredictionSamples | Array | None = None, batch_size: Integer = 1, *,
        return_utilities: Literal[True], **options: Unpack[SelectOptions],
    ) -> IndicesAndUtilities: ...  # fmt: skip

    @overload
    def select(
        self, samples: PredictionSamples | Array | None = None, batch_size: Integer = 1, *,
        return_utilities: bool, **options: Unpack[SelectOptions],
    ) -> Indices | IndicesAndUtilities: ...  # fmt: skip

    def select(
        self,
        samples: PredictionSamples | Array | None = None,
        batch_size: Integer = 1,
        *,
        candidates: Positions | None = None,
        X_pool: Any = None,
        X_labeled: Any = None,
        y_labeled: Any = None,
        features: Any = None,
        labeled_features: Any = None,
        reference_features: Any = None,
        labeled_samples: PredictionSamples | Array | None = None,
        reference_samples: PredictionSamples | Array | None = None,
        reference: PositionSets | None = None,
        costs: Numbers | None = None,
        budget: Real | None = None,
        return_utilities: bool = False,
    ) -> Indices | IndicesAndUtilities:
        """Choose rows by precomputed predictions or features, without a model.

        Parameters
        ----------
        samples : PredictionSamples or array of shape (n_pool, n_draws, n_classes), default=None
            Predictions of the pool; an array holds class probabilities. Never changed. None if the
            strategy reads no predictions.
        batch_size, candidates, reference, costs, budget, return_utilities
            As in :meth:`query`; reference positions refer to the reference samples if these are
            given.
        X_pool, X_labeled, y_labeled : object, default=None
            The rows of the pool, and the labeled ones, for strategies that read them.
        features, labeled_features, reference_features : array-like, default=None
            As in :meth:`query`.
        labeled_samples, reference_samples : PredictionSamples or array, default=None
            Predictions of the same draws for the labeled rows, and for the rows to compare with;
            ignored by strategies that do not use them. None compares with the pool.

        Returns
        -------
        indices : intp array of shape (n_picks,)
            As in :meth:`query`.
        utilities : float64 array of shape (n_picks, n_pool)
            As in :meth:`query`.
        """
        caller, tags = f"{type(self).__name__}.select", self.query_tags()
        if samples is None and tags.predictions:
            raise TypeError(f"samples must be the predictions of the pool. Got None in {caller}.")
        if tags.features and features is None and X_pool is None:
            raise TypeError(
                f"features or X_pool must be given for {caller}, which reads features of the rows. "
                "Got None for both."
            )
        sets = {
            "pool": {"X": X_pool, "features": features, "samples": samples},
            "labeled": {
                "X": X_labeled, "y": y_labeled, "features": labeled_features,
                "samples": labeled_samples,
            },
            "reference": {"features": reference_features, "samples": reference_samples},
        }  # fmt: skip
        pool = self._pool(
            "select", sets, batch_size, candidates, costs, budget, return_utilities, reference
        )
        chosen = self._choose(pool)
        return (chosen.positions, chosen.known_rows) if return_utilities else chosen.positions

    def __call__(self, model: Any, X_pool: Any, n_instances: Integer = 1) -> IndicesAndUtilities:
        """Choose rows in the form of a modAL strategy, so that ``self`` can be passed as one.

        Parameters
        ----------
        model : object
            As in :meth:`query`: modAL passes its learner or committee, with its labeled rows.
        X_pool : object
            Rows that the model accepts.
        n_instances : int, default=1
            Number of rows to choose.

        Returns
        -------
        indices : intp array of shape (n_picks,)
        utilities : float64 array of shape (n_picks,)
            The utility of each chosen row at its step.
        """
        pool = self._pool("__call__", {"pool": {"X": X_pool}}, n_instances, model=model)
        chosen = self._choose(pool)
        return chosen.positions, chosen.utilities

    def _select(self, pool: Pool) -> Selection:
        """Choose ``pool.batch_size`` of ``pool.candidates``: the hook of each strategy."""
        raise NotImplementedError(f"{type(self).__name__} must define _select.")

    def _unit_power(self) -> int | None:
        """Return the power of the target's unit in utilities; None leaves predictions unscaled."""
        return None

    def _choose(self, pool: Pool) -> Selection:
        """Select, and raise if costs were ignored."""
        chosen = select_in_range(self._select, pool, self._unit_power())
        if pool.costs is not None and not chosen.handles_costs:
            raise NotImplementedError(
                f"_select of {type(self).__name__} does not support costs. Got costs in "
                f"{pool.caller}; choose through sklearn_ical.selection.Batch(pool), or set the tag "
                "utilities='other', with which costs raise at once."
            )
        return chosen

    def _pool(
        self,
        method: str,
        sets: dict[str, dict[str, Any]],
        batch_size: Any,
        candidates: Any = None,
        costs: Any = None,
        budget: Any = None,
        want_utilities: bool = False,
        reference: Any = None,
        model: Any = None,
    ) -> Pool:
        """Check a call and fix the draws; nothing is predicted yet.

        `sets` are the pool, the labeled and the reference rows as given.
        """
        check_parameters(self)
        caller, tags = f"{type(self).__name__}.{method}", self.query_tags()
        if tags.predictions or "labeled" in (*tags.reads, *tags.uses):
            sets = with_rows_of_learner(sets, model)
        rows = row_set("X_pool", sets["pool"], caller, model)
        if rows is None:
            raise TypeError(f"samples, features or X_pool must be given. Got none in {caller}.")
        limits = self._check_limits(rows, batch_size, candidates, costs, budget)
        others: dict[str, Any] = {
            which: self._other_rows(method, which, sets.get(which, {}), rows, model)
            for which in ("labeled", "reference")
        }
        root = self._root()
        if tags.predictions and method == "select":
            self._check_draws(rows, caller)
        elif tags.predictions:
            draws = self._draw(model, sets.get("labeled", {}), stream_seed(root, DRAWS), caller)
            read = {k: v for k, v in others.items() if v and self._reads_of(k, "samples")}
            rows, read = with_draws(draws, rows, read)
            others |= read
        limits |= {"root": root, "model": model, "reference_positions": reference}
        return Pool(rows=rows, want_utilities=want_utilities, **others, **limits)

    def _draw(self, model: Any, labeled: dict[str, Any], seed: int, caller: str) -> Draws:
        """Return draws from a model, or its mean if that is enough, as the tags allow."""
        source = resolve_source(
            model,
            mean_only="draws" not in self.query_tags().reads,
            X_labeled=labeled.get("X"),
            y_labeled=labeled.get("y"),
            fit_params=labeled.get("fit_params"),
        )
        if hasattr(source, "kind") and hasattr(source, "n_draws"):  # known before the work
            self._check_draws(source, caller)
        draws = draw_from(source, seed)
        self._check_draws(draws, caller)
        return draws

    def _other_rows(
        self, method: str, which: str, given: dict[str, Any], pool: RowSet, model: Any
    ) -> RowSet | None:
        """Return the labeled or the reference rows, checked; None if not used or not given."""
        tags = self.query_tags()
        if which not in (*tags.uses, *tags.reads):
            return None
        reads = {what for what in ("features", "samples") if self._reads_of(which, what)}
        given = {what: value for what, value in given.items() if what in {"X", "y", *reads}}
        rows = row_set(f"X_{which}", given, pool.caller, model, like=pool)
        if rows is None and which in tags.reads:
            raise LabeledRowsMissingError(
                f"X_labeled and y_labeled must hold the labeled rows, which {pool.caller} reads. "
                "Got None; pass those that the model was fitted on."
            )
        if rows is None or (rows.n_points == 0 and which == "labeled" and which not in tags.reads):
            return None  # a cold start
        if method == "select" and "samples" in reads and not hasattr(rows, "kind"):
            raise ValueError(
                f"{which}_samples must be given with X_{which}, as {pool.caller} reads the "
                f"predictions of the {which} rows. Got None; pass those of X_{which}."
            )
        check_other_rows(rows, pool, with_features="features" in reads)
        return rows

    def _reads_of(self, which: str, what: str) -> bool:
        """Return whether "samples" or "features" of "labeled" or "reference" rows are read."""
        tags = self.query_tags()
        read = tags.features if what == "features" else tags.predictions
        return read and which in (*tags.uses, *tags.reads)

    def _check_limits(
        self, rows: RowSet, batch_size: Any, candidates: Any, costs: Any, budget: Any
    ) -> dict[str, Any]:
        """Check what limits the picks, and return it as fields of a Pool."""
        limits = (batch_size, candidates, costs, budget)
        return check_limits(type(self).__name__, self.query_tags(), rows, *limits)

    def _root(self) -> int:
        """Return the root seed of one call."""
        return root_seed(getattr(self, "random_state", None), type(self).__name__)

    def _check_draws(self, draws: Draws | RowSet, caller: str) -> None:
        """Raise if the tags rule out the kind or the number of draws."""
        tags = self.query_tags()
        if draws.kind not in tags.kinds:
            raise ValueError(
                f"{type(self).__name__} supports predictions of kind "
                f"{' or '.join(map(repr, tags.kinds))}. Got kind {draws.kind!r} in {caller}."
            )
        weights = getattr(draws, "weights", None)
        n_draws = draws.n_draws if weights is None else np.count_nonzero(weights)
        if n_draws < tags.min_draws:
            raise ValueError(
                f"{type(self).__name__} needs at least {tags.min_draws} draws. Got "
                f"{n_draws} in {caller}; use a larger ensemble or increase n_draws."
            )


class PointwiseQuery(BaseQuery):
    """Base of strategies that score each row on its own and choose the k best.

    A subclass defines ``_score(samples)``: float64 utilities (n_points,), each of its row alone.
    """

    def _score(self, samples: PredictionSamples) -> Array:
        raise NotImplementedError(f"{type(self).__name__} must define _score.")

    def _exact_score(self, samples: PredictionSamples) -> np.ndarray:
        """Return `_score` on the host, in an order of summation that makes equals equal."""
        return self._score(samples.canonical())

    def _select(self, pool: Pool) -> Selection:
        return self._take_best(pool, pool.rows.map(self._score, pool.candidates))

    def _take_best(self, pool: Pool, utilities: Array) -> Selection:
        """Return the candidates with the largest utilities."""
        xp = _array.namespace(utilities)
        if not bool(xp.all(xp.isfinite(utilities))):
            raise ValueError(
                f"Utilities must be finite. Got NaN or infinity in {pool.caller}; rescale "
                "predictions that overflow float64 when squared."
            )

        def exact(slots: np.ndarray) -> np.ndarray:
            scores = pool.rows.map(self._exact_score, pool.candidates[slots])
            return merge_ties(scores, _rounding(scores, pool.rows))

        largest = max(float(xp.max(xp.abs(utilities))), 1.0)
        errors = (pool.rows.n_draws + MOST_OUTPUTS) * sys.float_info.epsilon * largest
        batch = Batch(pool)
        batch.take(utilities, pool.batch_size, errors=errors, exact=exact)
        return batch.selection()


def _rounding(scores: np.ndarray, rows: RowSet) -> np.ndarray | float:
    """Bound the rounding errors of exact scores; those of real values are relative."""
    bound = 2 * (rows.n_draws + 8) * sys.float_info.epsilon
    if rows.kind == "value":
        return bound * np.abs(scores)
    return bound * min(1.0, float(np.abs(scores).max(initial=0.0)))
