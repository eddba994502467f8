"""check_sampler: runs every check of the protocol of samplers on one of them, cheapest first."""

from typing import Any

from sklearn_ical.testing._draw_inputs import (
    check_given_unchanged,
    check_labeled_rows,
    check_row_containers,
)
from sklearn_ical.testing._draw_means import (
    check_column_order,
    check_columns,
    check_mean,
    check_noise,
)
from sklearn_ical.testing._drawing import (
    check_bad_n_draws,
    check_bad_random_states,
    check_drawing_generators,
    check_equal_random_states,
    check_fewer_draws,
    check_more_draws,
    check_other_processes,
    check_pickled_draws,
    check_pickled_sampler,
    check_used_generators,
)
from sklearn_ical.testing._draws import (
    check_chunked_rows,
    check_draw_weights,
    check_draws,
    check_draws_differ,
    check_draws_unchanged,
    check_joint_rows,
    check_moved_rows,
    check_same_rows,
    check_sample,
)
from sklearn_ical.testing._require import named, run_checks
from sklearn_ical.testing._sampler_case import sampler_case

SAMPLER_CHECKS = named(
    check_draws,
    check_draw_weights,
    check_draws_differ,
    check_columns,
    check_column_order,
    check_same_rows,
    check_pickled_draws,
    check_draws_unchanged,
    check_equal_random_states,
    check_pickled_sampler,
    check_given_unchanged,
    check_labeled_rows,
    check_drawing_generators,
    check_more_draws,
    check_fewer_draws,
    check_bad_n_draws,
    check_sample,
    check_used_generators,
    check_bad_random_states,
    check_chunked_rows,
    check_moved_rows,
    check_joint_rows,
    check_mean,
    check_noise,
    check_row_containers,
    check_other_processes,
)


def check_sampler(
    sampler: Any,
    X: Any = None,
    *,
    model: Any = None,
    X_labeled: Any = None,
    y_labeled: Any = None,
) -> None:
    """Check that a sampler keeps the protocol of this package.

    For samplers of any origin, including those that :func:`~sklearn_ical.samplers.get_sampler`
    returns for a fitted model. The guarantees of a sampler are read from its draws, never from
    class names: `joint` draws are evaluated on all rows at once; for those with a reason in
    `mean_differs`, only the order of the classes is compared with the model; and a sampler that
    gives the same draws for all seeds and raises for more is treated as a finite ensemble.

    Read more in the :ref:`User Guide <own_sampler>`.

    Parameters
    ----------
    sampler : object
        A sampler, of which a method `draw` is enough: the other attributes of `BaseSampler`
        (`sample`, `source`, `cost`) are checked if they exist. Or a fitted model that `get_sampler`
        supports.
    X : object of n_points rows, default=None
        Rows that the model accepts, in any container, at least 10 of them; some 20 to 200 are
        enough. For precomputed predictions, the rows that they belong to. None makes 40 standard
        normal rows of ``model.n_features_in_`` features. Not modified.
    model : object, default=None
        The fitted model whose own `predict_proba` or `predict` the mean over draws is compared
        with, and the variance of draws with a `noise_variance` where `predict` takes `return_std`;
        the containers that it accepts must be accepted, and it must not change. None for the first
        argument if that is a model; for a sampler alone, checks that need a model are left out.
    X_labeled, y_labeled : object, default=None
        Labeled rows and their labels for samplers that refit on them: the checks use
        ``sampler.with_labeled(X_labeled, y_labeled)``. Not modified.

    Raises
    ------
    TypeError, ValueError
        If the arguments leave nothing to check: no rows or too few of them, labeled rows that are
        missing, or a model that has no sampler.
    AssertionError
        At the first check that fails. The message names the check, what was expected, what was got
        instead and why it matters.

    See Also
    --------
    check_strategy : The same for query strategies.

    Notes
    -----
    Makes some 20 times half the default number of draws, and a few times all of it: a bootstrap is
    checked faster with a small `n_draws`. From posteriors whose expectation is the model's own
    prediction, 2000 draws are made, whose mean must be within six standard errors, and whose
    variance with noise within a fifth. Columns count as swapped if the model's probabilities of
    other classes fit them better by more than is explained by few draws. Two or more draws must
    differ on some row: pass rows on which they can. Checks of containers that are not installed
    (pandas, polars) are left out; two more processes are started by joblib. Warnings of the model
    are silenced.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from sklearn_ical.samplers import BootstrapSampler
    >>> from sklearn_ical.testing import check_sampler
    >>> X, y = load_iris(return_X_y=True)
    >>> check_sampler(RandomForestClassifier(10, random_state=0).fit(X, y))
    >>> model = GaussianNB().fit(X, y)
    >>> sampler = BootstrapSampler(model, n_draws=4)
    >>> check_sampler(sampler, X[::5], model=model, X_labeled=X, y_labeled=y)
    """
    case = sampler_case(sampler, X, model, X_labeled, y_labeled)
    run_checks(SAMPLER_CHECKS, case, silenced=Warning)
