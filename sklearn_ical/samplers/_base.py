"""The interface of models to strategies: draws, their protocol, samplers, means and embeddings.

Models are not known here: their registrations are on one page, `_registrations`.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping
from functools import singledispatch
from importlib import import_module
from itertools import zip_longest
from typing import Any, Protocol, runtime_checkable

import numpy as np

from sklearn_ical._fit_params import check_fit_params
from sklearn_ical._random import root_seed
from sklearn_ical._typing import Integer, Seed
from sklearn_ical._validation import (
    as_numbers,
    check_integer,
    check_weights,
    n_rows,
    sliceable,
    take_rows,
)
from sklearn_ical.exceptions import UnsupportedModelError
from sklearn_ical.samplers._models import name_of
from sklearn_ical.samplers._probabilities import ProbabilitiesError
from sklearn_ical.samplers._routing import params_of_refit
from sklearn_ical.samples import PredictionSamples

# Default number of draws from a posterior that has infinitely many.
DEFAULT_DRAWS = 50
# Number of rows passed to `prepare`, before any work.
PREPARED_ROWS = 16


# The page with the registrations of models; loaded with the package, not imported here.
REGISTRATIONS = "sklearn_ical.samplers._registrations"


@runtime_checkable
class Draws(Protocol):
    """m fixed functions of a posterior, ready to be evaluated on any rows.

    Immutable and picklable. The answer for a row depends on that row alone, in any chunk, unless
    `joint` is True: then all rows have to be evaluated in one call, or pool and reference rows by a
    method ``together(X, X_reference)`` that returns the samples of both. Draws may add a method
    ``chunks(X, n_rows)`` that yields the samples of consecutive chunks of `X` where that is cheaper
    than one call per chunk; a method ``prepare(X)``, called before any work, that finds `classes`
    from the first rows of `X` or raises; and a string `mean_differs`: why the mean of the draws is
    not the model's own prediction. Without that string it is: the mean of all members of a finite
    ensemble exactly, that of draws from a posterior in expectation.
    """

    n_draws: int
    weights: Any
    joint: bool

    @property
    def kind(self) -> str:
        """The kind of the samples."""

    @property
    def classes(self) -> Any:
        """Labels of the columns, None for 0, 1, ... and for values."""

    def __call__(self, X: Any) -> PredictionSamples:
        """Return the predictions of all draws for the rows of `X`."""


def is_draws(source: Any) -> bool:
    """Return whether an object is draws: callable, with a number and a kind of draws."""
    return callable(source) and hasattr(source, "n_draws") and hasattr(source, "kind")


class BaseSampler:
    """Base of samplers: subclasses define `draw`, and inherit the rest.

    Read more in the :ref:`User Guide <own_sampler>`.

    Attributes
    ----------
    source : str
        Where the draws come from, in a few words.
    cost : str
        Their cost relative to one prediction of the model, in a few words.
    """

    source = "draws of its own"
    cost = ""

    def draw(self, n_draws: Integer | None = None, random_state: Seed = None) -> Draws:
        """Fix `n_draws` functions of the posterior."""
        raise NotImplementedError(f"{type(self).__name__} must define draw.")

    def sample(
        self, X: Any, *, n_draws: Integer | None = None, random_state: Seed = None
    ) -> PredictionSamples:
        """Return the predictions for `X` of freshly drawn functions: ``draw(...)(X)``.

        Parameters
        ----------
        X : object
            Rows that the model accepts, n_points of them.
        n_draws : int, default=None
            Number of draws; None for the sampler's default.
        random_state : int, RandomState, Generator or None, default=None
            See :term:`random_state`.

        Returns
        -------
        samples : PredictionSamples
            Of n_points points and n_draws draws.
        """
        return self.draw(n_draws, random_state)(X)

    def with_labeled(
        self, X_labeled: Any, y_labeled: Any, fit_params: Mapping[str, Any] | None = None
    ) -> "BaseSampler":
        """Return the sampler to use with these labeled rows; most ignore them.

        Parameters
        ----------
        X_labeled, y_labeled : object
            The labeled rows, as the model's `fit` takes them, and their labels.
        fit_params : dict, default=None
            Other arguments of the model's `fit` by name, passed only if there are some.

        Returns
        -------
        sampler : BaseSampler
            This one, unless its draws come from labeled rows that it does not have yet.
        """
        return self


def evaluate_in_chunks(draws: Draws, X: Any, chunk: int) -> Iterator[PredictionSamples]:
    """Yield the predictions for consecutive chunks of the rows of `X`, checked.

    Parameters
    ----------
    draws : Draws
        Not joint, unless one chunk holds all rows.
    X : object
        Rows that the model accepts, n_points of them. Not modified.
    chunk : int
        Rows per chunk, at least 1; the last chunk may have fewer.

    Returns
    -------
    chunks : iterator of PredictionSamples
        In row order; no row gives no chunk.

    Raises
    ------
    ValueError
        If the draws return samples of another number of rows.
    """
    total = n_rows(X)
    starts = range(0, total, chunk)
    if hasattr(draws, "chunks"):
        chunks = draws.chunks(X, chunk)
    elif len(starts) == 1:
        chunks = iter([draws(X)])
    else:
        X = sliceable(X)
        chunks = _chunks(draws, X, [range(a, min(a + chunk, total)) for a in starts])
    sizes = [min(chunk, total - start) for start in starts]
    for size, samples in zip_longest(sizes, chunks):
        if not isinstance(samples, PredictionSamples) or samples.n_points != size:
            count = getattr(samples, "n_points", None)
            got = type(samples).__name__ if count is None else f"{count} points"
            raise ValueError(
                f"{type(draws).__name__} must return PredictionSamples of the {size or 0} rows "
                f"given to it. Got {got}."
            )
        yield samples


def _chunks(draws: Draws, X: Any, parts: list[range]) -> Iterator[PredictionSamples]:
    """Yield the predictions for parts of the rows; errors name the row among all of them."""
    for rows in parts:
        try:
            yield draws(take_rows(X, slice(rows.start, rows.stop)))
        except ProbabilitiesError as err:
            raise err.at(rows) from err.__cause__


def first_rows(X: Any) -> Any:
    """Return the first rows of `X`, as many as `prepare` gets."""
    return take_rows(sliceable(X), slice(0, PREPARED_ROWS))


def prepare(draws: Draws, X: Any) -> None:
    """Call the method `prepare` of draws, where they have one, on the first rows of `X`.

    Parameters
    ----------
    draws : Draws
        With or without a method ``prepare``.
    X : object
        Rows that the model accepts. Not modified.
    """
    if hasattr(draws, "prepare") and n_rows(X):
        draws.prepare(X)


def choose_members(
    n_members: int, n_draws: Integer | None, random_state: Seed, caller: str
) -> np.ndarray:
    """Return the members of a finite ensemble that are the draws: all, or an ordered subset."""
    if n_draws is None:
        return np.arange(n_members)
    n_draws = check_integer(n_draws, "n_draws", f"{caller}.draw")
    if n_draws > n_members:
        raise ValueError(
            f"n_draws must be at most the number of members, {n_members}. Got {n_draws} in "
            f"{caller}.draw; a finite ensemble has no further draws."
        )
    generator = np.random.default_rng(root_seed(random_state, caller))
    return np.sort(generator.choice(n_members, n_draws, replace=False))


def member_weights(
    weights: Any, n_members: int, chosen: np.ndarray, caller: str
) -> np.ndarray | None:
    """Return the weights of the chosen members, scaled to sum 1."""
    if weights is None:
        return None
    weights = as_numbers(weights, "weights", caller)
    if weights.shape != (n_members,):
        raise ValueError(
            f"weights must have one entry per member, shape ({n_members},). Got shape "
            f"{weights.shape} in {caller}."
        )
    wrong = ~np.isfinite(weights) | (weights < 0)
    if wrong.any():
        raise ValueError(f"weights must be finite and >= 0. Got {weights[wrong][0]} in {caller}.")
    weights = weights[chosen]
    if weights.sum() == 0:
        raise ValueError(
            "weights of the drawn members must have a positive sum. Got 0 for "
            f"{len(chosen)} members in {caller}."
        )
    weights = check_weights(weights / weights.sum(), len(chosen))
    weights.flags.writeable = False
    return weights


def number_of_draws(n_draws: Integer | None, caller: str, default: Integer = DEFAULT_DRAWS) -> int:
    """Return the number of draws to make: a checked number, or the default for None."""
    return check_integer(default if n_draws is None else n_draws, "n_draws", f"{caller}.draw")


def with_labeled(
    sampler: Any, X_labeled: Any, y_labeled: Any, fit_params: Mapping[str, Any] | None = None
) -> Any:
    """Return the sampler to use with these labeled rows, if it supports any.

    Parameters
    ----------
    sampler : object
        Of any origin; it may have a method ``with_labeled(X_labeled, y_labeled)``, which also takes
        `fit_params` if it uses them.
    X_labeled, y_labeled : object or None
        The labeled rows and their labels, None for none.
    fit_params : dict, default=None
        Other arguments of the fit of the model that the sampler refits, None for none.

    Returns
    -------
    sampler : object
    """
    labeled = X_labeled is not None or y_labeled is not None or bool(fit_params)
    if not labeled or not hasattr(sampler, "with_labeled"):
        return sampler
    if not fit_params:
        return sampler.with_labeled(X_labeled, y_labeled)
    parameters = inspect.signature(sampler.with_labeled).parameters.values()
    if not any(p.name == "fit_params" or p.kind is p.VAR_KEYWORD for p in parameters):
        raise UnsupportedModelError(
            f"fit_params need a sampler whose with_labeled takes them. Got {list(fit_params)} "
            f"for {type(sampler).__name__}; add the parameter, or leave them out."
        )
    return sampler.with_labeled(X_labeled, y_labeled, fit_params=fit_params)


def labeled_sampler(
    model: Any, X_labeled: Any, y_labeled: Any, fit_params: Mapping[str, Any] | None = None
) -> Any:
    """Return the sampler of a model, with the labeled rows if it supports any.

    Parameters
    ----------
    model : object
        A fitted model of any kind, or a sampler.
    X_labeled, y_labeled : object or None
        The labeled rows and their labels, None for none.
    fit_params : dict, default=None
        Other arguments of the model's `fit` by name, None for none; those with one entry per row
        are aligned with `X_labeled`.

    Returns
    -------
    sampler : object
    """
    sampler = get_sampler(model)
    if fit_params and X_labeled is not None and hasattr(sampler, "with_labeled"):
        caller = f"refits of {name_of(model)}"
        checked = check_fit_params(fit_params, X_labeled, caller, name="X_labeled")
        fit_params = params_of_refit(model, checked)
    return with_labeled(sampler, X_labeled, y_labeled, fit_params)


def evaluate_together(
    draws: Draws, X: Any, X_reference: Any
) -> tuple[PredictionSamples, PredictionSamples]:
    """Return the predictions of joint draws for two sets of rows, in one evaluation.

    Parameters
    ----------
    draws : Draws
        Joint, with a method ``together(X, X_reference)``.
    X, X_reference : object
        Rows that the model accepts.

    Returns
    -------
    samples, reference : PredictionSamples
        Of the rows of `X` and of those of `X_reference`.

    Raises
    ------
    ValueError
        If the draws are defined on one fixed set of rows only.
    """
    if not hasattr(draws, "together"):
        raise ValueError(
            "X_reference needs a model that can predict it. Got precomputed predictions; "
            "use select with reference_samples instead."
        )
    return draws.together(X, X_reference)


@singledispatch
def get_sampler(model: Any) -> Any:
    """Return a sampler of posterior draws for a fitted model.

    Read more in the :ref:`User Guide <samplers>`.

    Parameters
    ----------
    model : object
        A fitted classifier or regressor, a list or dict of such, a Pipeline, search object or
        learner around one, an array of samples in the NKC layout or
        :class:`~sklearn_ical.PredictionSamples`, or any object with its own ``draw``.

    Returns
    -------
    sampler : object
        With ``draw(n_draws=None, random_state=None)``, which returns immutable draws; called on
        rows, they return :class:`~sklearn_ical.PredictionSamples`. For a model that has no draws of
        its own, a :class:`BootstrapSampler` around it, which still needs labeled rows.

    Raises
    ------
    UnsupportedModelError
        A TypeError: a strategy cannot use the predictions of this kind of model.
    NotFittedError
        If the model is known but not fitted.

    Notes
    -----
    A :func:`functools.singledispatch`: register a model class of your own with
    ``get_sampler.register(MyModel)``. A class that is not registered is recognized by its own
    ``draw``, by its package, or else by its methods `fit` and `predict`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from sklearn_ical.samplers import get_sampler
    >>> X, y = load_iris(return_X_y=True)
    >>> forest = RandomForestClassifier(n_estimators=20, random_state=0).fit(X, y)
    >>> get_sampler(forest).sample(X).values.shape
    (150, 20, 3)
    """
    if isinstance(model, type):
        raise UnsupportedModelError(
            f"model must be a fitted model, not a class. Got the class {model.__name__}; pass "
            f"{model.__name__}(...).fit(X, y)."
        )
    if callable(getattr(model, "draw", None)):
        return model
    return import_module(REGISTRATIONS).unregistered_sampler(model)


@singledispatch
def get_mean(model: Any) -> Draws | None:
    """Return the mean prediction of a model in the form of draws, or None.

    Parameters
    ----------
    model : object
        A fitted model of any kind.

    Returns
    -------
    mean : Draws or None
        With ``n_draws == 1``. Of a classifier, its own `predict_proba`; of a net of class
        probabilities, its output without dropout; of a regressor, ``predict(X, return_std=True)``
        with the square of `std` as noise variance, averaged over targets. None where a model has
        none of these.
    """
    return import_module(REGISTRATIONS).unregistered_mean(model)


@singledispatch
def get_embedding(model: Any) -> Callable[[Any], Any] | None:
    """Return the function from rows to the input of the last part of a model, or None.

    Parameters
    ----------
    model : object
        A fitted model of any kind.

    Returns
    -------
    embedding : callable or None
        ``embedding(X)`` returns features, one row for each row of `X`. Of a Pipeline, the output of
        all steps but the last; of a net, the input of its last linear layer, without dropout; of a
        Pipeline that ends in a net, both, one after the other. Searches, learners and frozen models
        have that of the model inside. None for other models.
    """
    return import_module(REGISTRATIONS).unregistered_embedding(model)


def resolve_source(
    model: Any,
    *,
    mean_only: bool,
    X_labeled: Any = None,
    y_labeled: Any = None,
    fit_params: Mapping[str, Any] | None = None,
) -> Any:
    """Return the source of the draws: a model's mean, draws as they are, or a sampler.

    Parameters
    ----------
    model : object
        A fitted model of any kind, a sampler or draws.
    mean_only : bool
        Whether the model's own mean is enough, if it has one.
    X_labeled, y_labeled : object, default=None
        The labeled rows, for models without draws of their own, which are refitted on them.
    fit_params : dict, default=None
        Other arguments of these fits; see :func:`labeled_sampler`.

    Returns
    -------
    source : Draws or sampler
        For :func:`draw_from`.
    """
    mean = get_mean(model) if mean_only else None
    if mean is not None:
        return mean
    if is_draws(model):
        return model
    return labeled_sampler(model, X_labeled, y_labeled, fit_params)


def draw_from(source: Any, seed: int) -> Draws:
    """Return draws as they are, or those of a sampler, checked.

    Parameters
    ----------
    source : Draws or sampler
        As :func:`resolve_source` returns it.
    seed : int
        At least 0; the `random_state` of the sampler.

    Returns
    -------
    draws : Draws

    Raises
    ------
    TypeError
        If the sampler returns something else.
    """
    if is_draws(source):
        return source
    draws = source.draw(n_draws=None, random_state=seed)
    if not is_draws(draws):
        raise TypeError(
            f"draw of {type(source).__name__} must return draws: a callable that gives "
            "PredictionSamples of rows, with n_draws, kind, classes, weights and joint. Got "
            f"{type(draws).__name__}."
        )
    return draws
