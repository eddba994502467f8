"""BaseQuery: the query recipe that all strategies share; PointwiseQuery: scores of one row."""

import sys
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypedDict, Unpack, overload

import numpy as np

from sklearn_ical import _array
from sklearn_ical._array import Array
from sklearn_ical._random import DRAWS, root_seed, stream_seed
from sklearn_ical._typing import (
    BaseEstimator,
    Indices,
    IndicesAndUtilities,
    Integer,
    Kind,
    Need,
    Numbers,
    Positions,
    Real,
    Seed,
)
from sklearn_ical._validation import (
    check_budget,
    check_candidates,
    check_costs,
    check_parameters,
    clip_batch_size,
    n_rows,
)
from sklearn_ical.samplers import Draws
from sklearn_ical.samples import PredictionSamples
from sklearn_ical.strategies._pool import Batch, Pool, Predictions, Selection, drawn, source_of


class QueryOptions(TypedDict, total=False):
    """Keyword arguments of `query`, for type checkers."""

    candidates: Positions | None
    X_labeled: Any
    y_labeled: Any
    X_reference: Any
    costs: Numbers | None
    budget: Real | None


class SelectOptions(TypedDict, total=False):
    """Keyword arguments of `select`, for type checkers."""

    candidates: Positions | None
    reference_samples: PredictionSamples | Array | None
    costs: Numbers | None
    budget: Real | None


@dataclass(frozen=True)
class QueryTags:
    """What a strategy needs and promises, for checks and tools.

    Attributes
    ----------
    deterministic : bool
        Whether the picks follow from the predictions alone, whatever `random_state`.
    utilities : {"gain", "other"}
        "gain": each pick is the first nan-argmax of its row of utilities, and may be chosen by
        utility per cost. Others refuse costs.
    kinds : tuple of {"proba", "label", "value"}
        Kinds of prediction samples that are understood.
    needs : tuple of {"nothing", "mean", "draws", "features", "labeled", "gradients"}
        What is asked of the caller; "mean" is any classifier's `predict_proba`.
    min_draws : int
        Smallest number of draws that makes sense.
    """

    deterministic: bool = True
    utilities: Literal["gain", "other"] = "gain"
    kinds: tuple[Kind, ...] = ("proba", "label", "value")
    needs: tuple[Need, ...] = ("draws",)
    min_draws: int = 1


class BaseQuery(BaseEstimator):
    """Base of query strategies: it owns the recipe, a strategy says how to select.

    A subclass assigns its parameters in ``__init__`` and nothing else, describes itself in
    ``query_tags``, lists ``_parameter_constraints`` in scikit-learn's form and defines
    ``_select(pool)``, which returns a ``Selection``, for gains best that of a ``Batch``. Subclass
    ``PointwiseQuery`` where each row has a score of its own. A strategy object is never changed by
    a call.

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

    def query_tags(self) -> QueryTags:
        """Return what this strategy, with its present parameters, needs and promises.

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
        X_reference: Any = None,
        costs: Numbers | None = None,
        budget: Real | None = None,
        return_utilities: bool = False,
    ) -> Indices | IndicesAndUtilities:
        """Choose the rows of a pool that should be labeled next.

        Parameters
        ----------
        model : object
            A fitted estimator, a Pipeline, search or learner around one, a list or dict of fitted
            models, a sampler, draws, or predictions at hand. Never changed. One that has no
            posterior draws of its own is refitted, in clones, on resamples of the labeled rows.
        X_pool : object
            Rows that the model accepts, n_pool of them. They go to the model unconverted, in
            chunks. Never changed.
        batch_size : int, default=1
            How many rows to choose, at least 1. All candidates, with a warning, if there are
            fewer.
        candidates : array of int or bool, default=None
            See :term:`candidates`; None allows the whole pool.
        X_labeled, y_labeled : object, default=None
            The labeled rows and their labels, for models without draws of their own where the
            strategy needs draws, and for strategies that need them; others leave them alone.
        X_reference : object, default=None
            Rows that the model accepts, whose predictions the batch should inform: for
            strategies that compare with reference rows; others leave it alone. None compares
            with the pool.
        costs : array-like of shape (n_pool,), default=None
            What the label of each row costs, > 0 and in any unit. Each pick then has the largest
            utility per cost; see :term:`costs`. For strategies whose utilities are gains.
        budget : float, default=None
            What all picks may cost together, in the unit of `costs`; up to a relative rounding of
            1e-9. Only with `costs`. The batch ends where no candidate fits in what is left.
        return_utilities : bool, default=False
            Whether to return the utilities too, 8 * n_picks * n_pool bytes.

        Returns
        -------
        indices : intp array of shape (n_picks,)
            Distinct positions in `X_pool`, in pick order, on the host.
        utilities : float64 array of shape (n_picks, n_pool)
            Only with ``return_utilities=True``. Row t is what pick t was chosen from, NaN where
            not allowed; higher is better. With `costs` it holds utilities per cost, and NaN also
            where the cost does not fit in what is left of the budget.

        Raises
        ------
        TypeError, ValueError
            If a parameter, the model or an argument does not fit, before any work.
        NotImplementedError
            If a third party's strategy of gains was given costs and has no use for them.
        """
        return self._query(
            model,
            X_pool,
            batch_size,
            candidates=candidates,
            X_labeled=X_labeled,
            y_labeled=y_labeled,
            X_reference=X_reference,
            costs=costs,
            budget=budget,
            return_utilities=return_utilities,
        )

    @overload
    def select(
        self, samples: PredictionSamples | Array, batch_size: Integer = 1, *,
        return_utilities: Literal[False] = False, **options: Unpack[SelectOptions],
    ) -> Indices: ...  # fmt: skip

    @overload
    def select(
        self, samples: PredictionSamples | Array, batch_size: Integer = 1, *,
        return_utilities: Literal[True], **options: Unpack[SelectOptions],
    ) -> IndicesAndUtilities: ...  # fmt: skip

    @overload
    def select(
        self, samples: PredictionSamples | Array, batch_size: Integer = 1, *,
        return_utilities: bool, **options: Unpack[SelectOptions],
    ) -> Indices | IndicesAndUtilities: ...  # fmt: skip

    def select(
        self,
        samples: PredictionSamples | Array,
        batch_size: Integer = 1,
        *,
        candidates: Positions | None = None,
        reference_samples: PredictionSamples | Array | None = None,
        costs: Numbers | None = None,
        budget: Real | None = None,
        return_utilities: bool = False,
    ) -> Indices | IndicesAndUtilities:
        """Choose rows by their posterior predictions alone.

        Parameters
        ----------
        samples : PredictionSamples or array of shape (n_pool, n_draws, n_classes)
            Predictions of the pool; an array holds class probabilities. Never changed.
        batch_size, candidates, costs, budget, return_utilities
            As in :meth:`query`.
        reference_samples : PredictionSamples or array, default=None
            Predictions of the same draws for the rows to compare with, for strategies that
            compare with reference rows. None compares with the pool.

        Returns
        -------
        indices : intp array of shape (n_picks,)
            As in :meth:`query`.
        utilities : float64 array of shape (n_picks, n_pool)
            As in :meth:`query`.
        """
        return self._select_samples(
            samples,
            batch_size,
            candidates=candidates,
            reference_samples=reference_samples,
            costs=costs,
            budget=budget,
            return_utilities=return_utilities,
        )

    def __call__(self, model: Any, X_pool: Any, n_instances: Integer = 1) -> IndicesAndUtilities:
        """Choose rows in the form of a modAL strategy, so that ``self`` can be passed as one.

        Parameters
        ----------
        model : object
            As in :meth:`query`: modAL passes its learner or committee.
        X_pool : object
            Rows that the model accepts.
        n_instances : int, default=1
            How many rows to choose.

        Returns
        -------
        indices : intp array of shape (n_picks,)
        utilities : float64 array of shape (n_picks,)
            The utility of each chosen row at its step.
        """
        pool = self._pool_of_model(model, X_pool, n_instances, owner_method="__call__")
        chosen = self._choose(pool)
        return chosen.positions, chosen.utilities

    def _select(self, pool: Pool) -> Selection:
        """Choose ``pool.batch_size`` of ``pool.candidates``: the hook of each strategy."""
        raise NotImplementedError(f"{type(self).__name__} must define _select.")

    def _choose(self, pool: Pool) -> Selection:
        """Select, and see to it that costs are never left out in silence."""
        chosen = self._select(pool)
        if pool.costs is not None and not chosen.minds_costs:
            raise NotImplementedError(
                f"_select of {type(self).__name__} does not mind costs. Got costs in {pool.owner}; "
                "let _select choose through sklearn_ical.strategies.Batch(pool), or set the tag "
                "utilities='other', which refuses costs at once."
            )
        return chosen

    def _query(
        self, model: Any, X_pool: Any, batch_size: Any, *, return_utilities: bool, **given: Any
    ) -> Indices | IndicesAndUtilities:
        """Run the recipe on a model: check, draw, select."""
        pool = self._pool_of_model(
            model, X_pool, batch_size, want_utilities=return_utilities, **given
        )
        return _answer(self._choose(pool), return_utilities)

    def _pool_of_model(
        self,
        model: Any,
        X_pool: Any,
        batch_size: Any,
        *,
        candidates: Any = None,
        X_labeled: Any = None,
        y_labeled: Any = None,
        X_reference: Any = None,
        costs: Any = None,
        budget: Any = None,
        want_utilities: bool = False,
        owner_method: str = "query",
        **options: Any,
    ) -> Pool:
        """Check a call of `query` and fix the draws; nothing is predicted yet."""
        check_parameters(self)
        owner = f"{type(self).__name__}.{owner_method}"
        needs = self.query_tags().needs
        checked = self._check_call(n_rows(X_pool), batch_size, candidates, costs, budget, owner)
        if not self._compares:
            X_reference = None
        elif X_reference is not None:
            _check_some(n_rows(X_reference, "X_reference"), "X_reference", owner)
        root = self._root()
        predictions = reference = labeled = None
        if "nothing" not in needs:
            source = source_of(
                model, mean_only="draws" not in needs, X_labeled=X_labeled, y_labeled=y_labeled
            )
            if hasattr(source, "kind") and hasattr(source, "n_draws"):  # known before the work
                self._check_draws(source, owner)
            draws = drawn(source, stream_seed(root, DRAWS))
            self._check_draws(draws, owner)
            predictions, reference, labeled = Predictions.of_draws(
                draws, X_pool, X_reference, X_labeled if self._sees_labeled else None
            )
        return Pool(
            root=root,
            predictions=predictions,
            reference=reference,
            labeled=labeled,
            model=model,
            X_pool=X_pool,
            X_labeled=X_labeled,
            y_labeled=y_labeled,
            want_utilities=want_utilities,
            options=options,
            **checked,
        )

    def _select_samples(
        self, samples: Any, batch_size: Any, *, return_utilities: bool, **given: Any
    ) -> Indices | IndicesAndUtilities:
        """Run the recipe on predictions at hand: check, select."""
        pool = self._pool_of_samples(samples, batch_size, want_utilities=return_utilities, **given)
        return _answer(self._choose(pool), return_utilities)

    def _pool_of_samples(
        self,
        samples: Any,
        batch_size: Any,
        *,
        candidates: Any = None,
        reference_samples: Any = None,
        labeled_samples: Any = None,
        X_pool: Any = None,
        X_labeled: Any = None,
        y_labeled: Any = None,
        costs: Any = None,
        budget: Any = None,
        want_utilities: bool = False,
        **options: Any,
    ) -> Pool:
        """Check a call of `select`."""
        check_parameters(self)
        owner = f"{type(self).__name__}.select"
        samples = _as_samples(samples, "samples", owner)
        checked = self._check_call(samples.n_points, batch_size, candidates, costs, budget, owner)
        predictions = Predictions(samples=samples)
        self._check_draws(samples, owner)
        reference = labeled = None
        if reference_samples is not None and self._compares:
            reference = _same_draws(reference_samples, "reference_samples", predictions, owner)
            _check_some(reference.n_points, "reference_samples", owner)
        if labeled_samples is not None and self._sees_labeled and len(labeled_samples):
            labeled = _same_draws(labeled_samples, "labeled_samples", predictions, owner)
        if X_pool is not None and n_rows(X_pool) != samples.n_points:
            raise ValueError(
                f"X_pool must have one row for each of the {samples.n_points} points of samples. "
                f"Got {n_rows(X_pool)} rows in {owner}."
            )
        return Pool(
            root=self._root(),
            predictions=predictions,
            reference=reference,
            labeled=labeled,
            X_pool=X_pool,
            X_labeled=X_labeled,
            y_labeled=y_labeled,
            want_utilities=want_utilities,
            options=options,
            **checked,
        )

    def _root(self) -> int:
        """Return the root seed of one call."""
        return root_seed(self.random_state, type(self).__name__)

    def _check_call(
        self, n_points: int, batch_size: Any, candidates: Any, costs: Any, budget: Any, owner: str
    ) -> dict[str, Any]:
        """Check what limits the picks, and return it as fields of a Pool."""
        allowed = check_candidates(candidates, n_points, owner)
        if costs is not None:
            self._check_gains(owner)
            costs = check_costs(costs, n_points, owner)[allowed]
        limit = check_budget(budget, costs, owner)
        return {
            "owner": owner,
            "n_points": n_points,
            "candidates": allowed,
            "batch_size": clip_batch_size(batch_size, len(allowed), owner),
            "requested": int(batch_size),
            "costs": costs,
            "budget": limit,
        }

    # Whether the strategy compares candidates with reference rows, and with labeled rows.
    _compares = False
    _sees_labeled = False

    def _check_gains(self, owner: str) -> None:
        """Refuse costs where there is no utility of a row to relate them to."""
        utilities = self.query_tags().utilities
        if utilities != "gain":
            raise ValueError(
                "costs needs a strategy whose utilities are gains, as told by the tag "
                f"utilities='gain'. Got utilities={utilities!r} of {type(self).__name__} in "
                f"{owner}; leave costs out or choose another strategy."
            )

    def _check_draws(self, draws: Draws | PredictionSamples, owner: str) -> None:
        """Refuse kinds and numbers of draws that the tags rule out."""
        tags = self.query_tags()
        if draws.kind not in tags.kinds:
            raise ValueError(
                f"{type(self).__name__} understands predictions of kind "
                f"{' or '.join(map(repr, tags.kinds))}. Got kind {draws.kind!r} in {owner}."
            )
        if draws.n_draws < tags.min_draws:
            raise ValueError(
                f"{type(self).__name__} needs at least {tags.min_draws} draws. Got "
                f"{draws.n_draws} in {owner}; use a larger ensemble or increase n_draws."
            )


class PointwiseQuery(BaseQuery):
    """Base of strategies that score each row on its own and take the k best.

    A subclass defines ``_score(samples)``: utilities (n_points,), float64, for samples on any
    backend, whose value for a row depends on that row alone.
    """

    def _score(self, samples: PredictionSamples) -> Array:
        raise NotImplementedError(f"{type(self).__name__} must define _score.")

    def _exact_score(self, samples: PredictionSamples) -> np.ndarray:
        """Return `_score` on the host, in an order of summation that decides ties.

        The default suits scores of means and variances over the draws.
        """
        return self._score(samples.canonical())

    def _select(self, pool: Pool) -> Selection:
        parts, largest, n_terms = [], 0.0, 0
        for _, samples in pool.predictions.chunks(pool.candidates):
            part = self._score(samples)
            parts.append(part)
            xp = _array.namespace(part)
            largest = max(largest, float(xp.max(xp.abs(part))))
            n_terms = samples.n_draws + int(np.prod(samples.values.shape[2:]))
        utilities = parts[0] if len(parts) == 1 else xp.concat(parts)
        if not bool(xp.all(xp.isfinite(utilities))):
            raise ValueError(
                f"Utilities must be finite. Got NaN or infinity in {pool.owner}; predictions "
                "that overflow float64 when squared have to be rescaled."
            )

        def exact(where: np.ndarray) -> np.ndarray:
            found = pool.predictions.chunks(pool.candidates[where])
            return np.concatenate([self._exact_score(samples) for _, samples in found])

        # Each of the n_terms additions and a few logarithms may be off by a rounding.
        tolerance = 4 * (n_terms + 8) * sys.float_info.epsilon * max(largest, 1.0)
        batch = Batch(pool)
        batch.take(utilities, pool.batch_size, tolerance=tolerance, exact=exact)
        return batch.selection()


def _answer(selection: Selection, return_utilities: bool) -> Indices | IndicesAndUtilities:
    if return_utilities:
        rows: Any = selection.rows  # wanted, so there
        return selection.positions, rows
    return selection.positions


def _as_samples(samples: Any, name: str, owner: str) -> PredictionSamples:
    """Return the samples, or an NKC array of probabilities as samples."""
    if isinstance(samples, PredictionSamples):
        return samples
    if not _array.is_array(samples):
        raise TypeError(
            f"{name} must be PredictionSamples or an (n_points, n_draws, n_classes) array of "
            f"probabilities. Got {type(samples).__name__} in {owner}."
        )
    return PredictionSamples(samples)


def _check_some(n_points: int, name: str, owner: str) -> None:
    """Refuse reference rows that are none."""
    if n_points == 0:
        raise ValueError(
            f"{name} must have at least one row. Got 0 rows in {owner}; leave it out to compare "
            "with the pool."
        )


def _same_draws(samples: Any, name: str, predictions: Predictions, owner: str) -> Predictions:
    """Return other rows' samples, refused where they cannot come from the draws of the pool's."""
    others = Predictions(samples=_as_samples(samples, name, owner))
    for what in ("kind", "n_draws"):
        ours, theirs = getattr(predictions, what), getattr(others, what)
        if ours != theirs:
            raise ValueError(
                f"{name} must come from the same draws as samples, with {what}={ours!r}. Got "
                f"{what}={theirs!r} in {owner}."
            )
    return others
