"""check_sampler: runs every check of the protocol of samplers on one of them, cheapest first."""

from typing import Any

from sklearn_ical.testing._demand import run_checks
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
from sklearn_ical.testing._sampler_case import sampler_case

SAMPLER_CHECKS = (
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

    For samplers of any origin, and for whatever :func:`~sklearn_ical.samplers.get_sampler` finds
    for a fitted model. What a sampler promises is read from its draws, never from class names:
    `joint` draws are asked about all rows at once; of those that give a reason in `mean_differs`,
    only the order of the classes is compared with the model; and a sampler that gives the same
    draws for all seeds and refuses more is taken for a finite ensemble.

    Parameters
    ----------
    sampler : object
        A sampler, of which a method `draw` is enough: what else comes with `BaseSampler` (`sample`,
        `source`, `cost`) is checked where it is there. Or a fitted model that `get_sampler` knows.
    X : object of n_points rows, default=None
        Rows that the model accepts, in any container, at least 10 of them; some 20 to 200 tell
        enough. For predictions at hand, the rows that they belong to. None makes 40 standard
        normal rows of ``model.n_features_in_`` features. Not modified.
    model : object, default=None
        The fitted model whose own `predict_proba` or `predict` the mean over draws is compared
        with, and the variance of draws with a `noise_variance` where `predict` takes `return_std`;
        which decides by its own answers what containers must be accepted, and which must not
        change. None for the first argument where that is a model; for a sampler alone, what needs
        a model is left out.
    X_labeled, y_labeled : object, default=None
        Labeled rows and their labels for samplers that refit on them: the checks use
        ``sampler.with_labeled(X_labeled, y_labeled)``. Not modified.

    Raises
    ------
    TypeError, ValueError
        If the arguments leave nothing to check: no rows or too few of them, labeled rows that are
        missing, or a model that has no sampler.
    AssertionError
        At the first check that fails. The message names the check and says what was expected,
        what came instead and why it matters.

    See Also
    --------
    check_strategy : The same for query strategies.

    Notes
    -----
    Draws some 20 times half the default number, and a few times all of it: a bootstrap is checked
    faster with a small `n_draws`. Posteriors that promise the model's own prediction in
    expectation are drawn from 2000 times, and believed within six standard errors; their variance
    with noise within a fifth. Columns are taken for swapped where the model's probabilities of
    other classes fit them better by more than few draws explain. Two or more draws must differ on
    some row: give rows on which they can. Checks of containers that are not installed (pandas,
    polars) are left out; two more processes are started by joblib. Warnings of the model are
    silenced.

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
