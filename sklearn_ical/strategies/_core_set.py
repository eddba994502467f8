"""k-center in the space of the features: CoreSetQuery and FarthestFirstQuery."""

from typing import Any, ClassVar, Literal

import numpy as np

from sklearn_ical._random import STRATEGY, row_uniforms, stream
from sklearn_ical._typing import Features, Seed
from sklearn_ical._validation import StrOptions
from sklearn_ical.objectives._distances import distances_to_origin
from sklearn_ical.objectives._k_center import KCenter
from sklearn_ical.pool import Pool
from sklearn_ical.pool._range import features_in_range
from sklearn_ical.selection import Selection, maximize
from sklearn_ical.selection._range import in_unit
from sklearn_ical.strategies._base import FEATURES, BaseQuery, QueryTags


class _KCenterQuery(BaseQuery):
    """Greedy k-center; subclasses define the first center."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "features": FEATURES,
        "include_labeled": ["boolean"],
        "random_state": ["random_state", np.random.Generator],
    }

    features: Any
    include_labeled: bool
    first = "random"

    def query_tags(self) -> QueryTags:
        """Return the tags: features, and labeled rows where they are centers."""
        return QueryTags(
            deterministic=self.first != "random",
            reads=("features",),
            uses=("labeled", "model") if self.include_labeled else ("model",),
        )

    def _select(self, pool: Pool) -> Selection:
        (features, centers), factor = features_in_range(self.features, pool.rows, pool.labeled)
        objective = KCenter(features, pool.candidates, self._first_gains(features, pool))
        if centers is not None:
            objective.add_centers(centers, np.arange(centers.shape[0]))
        n_random = 1 if centers is None and self.first == "random" else 0
        return in_unit(maximize(pool, objective), factor, power=1, start=n_random)

    def _first_gains(self, features: Any, pool: Pool) -> np.ndarray:
        """Return the gains of candidates while there is no center, (n_candidates,)."""
        if self.first == "norm":
            return distances_to_origin(features, pool.candidates)
        return row_uniforms(stream(pool.root, STRATEGY), pool.candidates, 1)[:, 0]


class CoreSetQuery(_KCenterQuery):
    """Choose rows that are far from all labeled rows and from each other.

    Greedy k-center in the space of the features [1]_: each pick is the candidate with the largest
    distance to its nearest center. The centers are the labeled rows and the picks so far.

    Read more in the :ref:`User Guide <core_set>`.

    Parameters
    ----------
    features : {"auto"}, object with `transform`, callable or None, default="auto"
        Makes features of the rows. "auto": what a fitted Pipeline passes to its last step, or a net
        to its last linear layer; the rows themselves for other models and without a model. A
        fitted transformer, which clones of the strategy keep fitted, or a function. None: the rows
        themselves. Features given with the call are used instead.
    first : {"random", "norm"}, default="random"
        The first pick where there is no center yet: at random, seeded by `random_state`, or the
        candidate with the largest norm.
    include_labeled : bool, default=True
        Whether labeled rows are centers. If False, only the picks are.
    random_state : int, RandomState, Generator or None, default=None
        Seeds the random first pick; ignored otherwise. See :term:`random_state`.

    See Also
    --------
    FarthestFirstQuery : The same without the labeled rows.
    BayesianCoresetQuery : Another method with a similar name, on posterior draws.

    Notes
    -----
    The utility of a row is its Euclidean distance (not squared) to the nearest center. It depends
    on the scales of the features, so put a scaler into the Pipeline or pass one as `features`. The
    row of utilities of a random first pick holds uniforms in [0, 1), that of `first="norm"` the
    norms. Costs are supported: the pick is then the candidate with the largest distance per cost.

    Distances are computed from differences, so copies of a center have exactly 0. Once every
    candidate is a copy of a center, the batch is filled in the order of positions. The radius, the
    largest distance of a candidate to its nearest center, is at most twice the smallest that any
    batch of this size reaches; with `first="random"` or "norm" as well.

    Features are finite numbers: arrays, frames or lists, or sparse matrices, which stay sparse.

    Model requirements: none; a model is used for features="auto" only. Cost
    O(n_candidates * n_features) for each pick and each labeled row; memory
    O(n_candidates * n_features).

    References
    ----------
    .. [1] Sener and Savarese, "Active learning for convolutional neural networks: a core-set
       approach", ICLR, 2018, algorithm 1.

    Examples
    --------
    >>> from sklearn_ical import CoreSetQuery
    >>> X_pool = [[3.0], [6.0], [9.0], [12.0]]
    >>> CoreSetQuery().query(None, X_pool, batch_size=2, X_labeled=[[0.0]], y_labeled=[1])
    array([3, 1])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **_KCenterQuery._parameter_constraints,
        "first": [StrOptions({"random", "norm"})],
    }

    def __init__(
        self,
        features: Features = "auto",
        first: Literal["random", "norm"] = "random",
        include_labeled: bool = True,
        random_state: Seed = None,
    ) -> None:
        self.features = features
        self.first = first
        self.include_labeled = include_labeled
        self.random_state = random_state


class FarthestFirstQuery(_KCenterQuery):
    """Choose rows that are far from each other, starting with a random one.

    Farthest-first traversal in the space of the features [1]_: after a random first pick, each pick
    is the candidate with the largest distance to the nearest pick.

    Read more in the :ref:`User Guide <core_set>`.

    Parameters
    ----------
    features : {"auto"}, object with `transform`, callable or None, default="auto"
        As in :class:`CoreSetQuery`.
    include_labeled : bool, default=False
        Whether labeled rows are centers too. If True, there is no random pick as soon as there are
        labeled rows, and the batch is that of :class:`CoreSetQuery`.
    random_state : int, RandomState, Generator or None, default=None
        Seeds the random first pick; see :term:`random_state`.

    See Also
    --------
    CoreSetQuery : The same with the labeled rows as centers.

    Notes
    -----
    The utility of a row is its Euclidean distance (not squared) to the nearest pick; the row of
    utilities of the random pick holds uniforms in [0, 1). Ties, costs, features, model requirements
    and cost are those of :class:`CoreSetQuery`.

    References
    ----------
    .. [1] Geifman and El-Yaniv, "Deep active learning over the long tail", arXiv:1711.00941, 2017,
       section 3.

    Examples
    --------
    >>> from sklearn_ical import FarthestFirstQuery
    >>> X_pool = [[3.0], [6.0], [9.0], [12.0], [20.0]]
    >>> FarthestFirstQuery(random_state=0).query(None, X_pool, batch_size=3)
    array([1, 4, 3])
    """

    def __init__(
        self,
        features: Features = "auto",
        include_labeled: bool = False,
        random_state: Seed = None,
    ) -> None:
        self.features = features
        self.include_labeled = include_labeled
        self.random_state = random_state
