"""check_strategy: runs every check of the public contract on one strategy, cheapest first."""

from typing import Any

from sklearn_ical.exceptions import QueryWarning
from sklearn_ical.strategies._resolve import resolve_strategy
from sklearn_ical.testing._costs import (
    check_bad_costs,
    check_costs_refused,
    check_equal_costs,
    check_utilities_per_cost,
    check_within_budget,
)
from sklearn_ical.testing._estimator import (
    check_call,
    check_clone,
    check_pickle,
    check_repr,
    check_set_params,
    check_signatures,
    check_tags,
)
from sklearn_ical.testing._features import (
    check_bad_features,
    check_degenerate_features,
    check_feature_containers,
    check_precomputed_features,
)
from sklearn_ical.testing._information import (
    check_information,
    check_max_pool,
    check_missing_labels,
    check_without_model,
)
from sklearn_ical.testing._inputs import (
    check_frames,
    check_global_generators,
    check_inputs_unchanged,
    check_lists,
    check_missing_values,
    check_mixed_frames,
    check_model_unchanged,
    check_sparse_pools,
    check_strategy_unchanged,
    check_text,
)
from sklearn_ical.testing._picks import (
    check_bad_batch_sizes,
    check_bad_candidates,
    check_batch_sizes,
    check_candidate_forms,
    check_candidates_limit_picks_only,
    check_empty_pool,
    check_gains,
    check_picks,
    check_repeated_rows,
    check_utilities,
)
from sklearn_ical.testing._repeat import (
    check_chunks,
    check_deterministic_tag,
    check_equal_generators,
    check_equal_seeds,
    check_permuted_classes,
    check_permuted_draws,
    check_permuted_rows,
    check_processes,
)
from sklearn_ical.testing._require import named, run_checks
from sklearn_ical.testing._samples import (
    check_backends,
    check_degenerate_predictions,
    check_kinds,
    check_min_draws,
    check_models,
    check_predictions_as_model,
    check_raw_probabilities,
    check_ties,
    check_weighted_draws,
)
from sklearn_ical.testing._units import check_units_of_features, check_units_of_values

STRATEGY_CHECKS = named(
    check_tags,
    check_signatures,
    check_clone,
    check_set_params,
    check_repr,
    check_equal_seeds,
    check_pickle,
    check_equal_generators,
    check_deterministic_tag,
    check_picks,
    check_utilities,
    check_gains,
    check_candidate_forms,
    check_candidates_limit_picks_only,
    check_bad_candidates,
    check_empty_pool,
    check_batch_sizes,
    check_bad_batch_sizes,
    check_repeated_rows,
    check_costs_refused,
    check_equal_costs,
    check_utilities_per_cost,
    check_within_budget,
    check_bad_costs,
    check_information,
    check_missing_labels,
    check_without_model,
    check_max_pool,
    check_precomputed_features,
    check_feature_containers,
    check_bad_features,
    check_degenerate_features,
    check_strategy_unchanged,
    check_model_unchanged,
    check_inputs_unchanged,
    check_global_generators,
    check_kinds,
    check_raw_probabilities,
    check_min_draws,
    check_degenerate_predictions,
    check_permuted_rows,
    check_permuted_draws,
    check_permuted_classes,
    check_ties,
    check_weighted_draws,
    check_units_of_values,
    check_units_of_features,
    check_chunks,
    check_models,
    check_predictions_as_model,
    check_call,
    check_lists,
    check_sparse_pools,
    check_frames,
    check_mixed_frames,
    check_text,
    check_missing_values,
    check_backends,
    check_processes,
)


def check_strategy(strategy: Any) -> None:
    """Check that a query strategy keeps the public contract of this package.

    For strategies of any origin: what they read, use and guarantee is taken from ``query_tags()``,
    never from class names. They need `query`, `select`, `query_tags`, `get_params` and
    `set_params`, can be called as modAL strategies, and need not derive from
    :class:`~sklearn_ical.BaseQuery`.

    Read more in the :ref:`User Guide <own_strategy>`.

    Parameters
    ----------
    strategy : object or str
        The strategy to check, with its parameters, or the name of one of this package. Not
        modified; its `random_state` and those of nested strategies are replaced in the clones that
        are run.

    Raises
    ------
    AssertionError
        At the first check that fails. The message names the check, what was expected, what was got
        instead and why it matters.

    Notes
    -----
    Takes a few seconds. Pools, forests and samples are small and fixed, so that checks are
    repeatable. Checks of containers that are not installed (pandas, polars, torch) are left out; a
    second process is started by joblib. Inputs that a strategy does not use, such as labels or
    features, are passed, too, and must be ignored. Reference positions are one set for the batch,
    (r,), or, where there is a parameter `resample`, one for each step, (n_steps, r). A parameter
    `features` must also accept None, for the rows themselves, and a function.

    Draw weights have the effect of repeated draws, or raise a ValueError that names them; real
    predictions and features may be in any unit, such as 1e-100 or 1e100.

    Examples
    --------
    >>> from sklearn_ical import MarginQuery
    >>> from sklearn_ical.testing import check_strategy
    >>> check_strategy(MarginQuery())
    """
    strategy = resolve_strategy(strategy, "strategy", "check_strategy")
    run_checks(STRATEGY_CHECKS, strategy, silenced=QueryWarning)
