"""The protocol of draws and samplers, and what all samplers share; no model is known here."""

from collections.abc import Iterator
from itertools import zip_longest
from typing import Any, Protocol, runtime_checkable

import numpy as np

from sklearn_ical._random import root_seed
from sklearn_ical._typing import Integer, Seed
from sklearn_ical._validation import check_integer, n_rows, sliceable, take_rows
from sklearn_ical.samples import PredictionSamples

# Draws from a posterior that has infinitely many, unless the caller says otherwise.
DEFAULT_DRAWS = 50
# Rows that draws look at before the work, where they have to.
PREPARED_ROWS = 16


@runtime_checkable
class Draws(Protocol):
    """m fixed functions of a posterior, ready to be evaluated on any rows.

    Immutable and picklable. The answer for a row depends on that row alone, in any chunk, unless
    `joint` is True: then all rows have to be evaluated in one call, or pool and reference rows by
    a method ``together(X, X_reference)`` that returns the samples of both. Draws may add a method
    ``chunks(X, n_rows)`` that yields the samples of consecutive chunks of `X` where that is
    cheaper than one call per chunk; a method ``prepare(X)``, called before any work, that looks at
    the first rows of `X` for what only rows can tell: `classes`, or why there is no answer; and a
    text `mean_differs`: why their mean is not the model's own prediction. Without it, it is: that
    of all members of a finite ensemble exactly, that of draws from a posterior in expectation.
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


class BaseSampler:
    """Base of samplers: a `draw` method makes a sampler, the rest comes with this class.

    Attributes
    ----------
    source : str
        Where the draws come from, in a few words.
    cost : str
        What they cost beside one prediction of the model, in a few words.
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

    def with_labeled(self, X_labeled: Any, y_labeled: Any) -> "BaseSampler":
        """Return the sampler to use where these rows are labeled; most do not need them.

        Parameters
        ----------
        X_labeled, y_labeled : object
            The labeled rows, as the model's `fit` takes them, and their labels.

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
    parts : iterator of PredictionSamples
        In row order; no row gives no part.

    Raises
    ------
    ValueError
        If the draws answer for other rows than those they were given.
    """
    total = n_rows(X)
    starts = range(0, total, chunk)
    if hasattr(draws, "chunks"):
        parts = draws.chunks(X, chunk)
    elif len(starts) == 1:
        parts = iter([draws(X)])
    else:
        X = sliceable(X)
        parts = (draws(take_rows(X, slice(a, min(a + chunk, total)))) for a in starts)
    sizes = [min(chunk, total - start) for start in starts]
    for size, part in zip_longest(sizes, parts):
        if not isinstance(part, PredictionSamples) or part.n_points != size:
            got = f"{part.n_points} points" if hasattr(part, "n_points") else type(part).__name__
            raise ValueError(
                f"{type(draws).__name__} must return PredictionSamples of the {size or 0} rows "
                f"given to it. Got {got}."
            )
        yield part


def first_rows(X: Any) -> Any:
    """Return as many rows of `X` as draws look at before the work."""
    return take_rows(sliceable(X), slice(0, PREPARED_ROWS))


def prepare(draws: Draws, X: Any) -> None:
    """Let draws look at the first rows of `X` before any work, where they ask for it.

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
    n_members: int, n_draws: Integer | None, random_state: Seed, owner: str
) -> np.ndarray:
    """Return which members of a finite ensemble are the draws: all, or a seeded subset in order."""
    if n_draws is None:
        return np.arange(n_members)
    n_draws = check_integer(n_draws, "n_draws", f"{owner}.draw")
    if n_draws > n_members:
        raise ValueError(
            f"n_draws must be at most the number of members, {n_members}. Got {n_draws} in "
            f"{owner}.draw; a finite ensemble has no further draws."
        )
    generator = np.random.default_rng(root_seed(random_state, owner))
    return np.sort(generator.choice(n_members, n_draws, replace=False))


def number_of_draws(n_draws: Integer | None, owner: str, default: Integer = DEFAULT_DRAWS) -> int:
    """Return how many draws of a posterior to make: a checked number, or the default for None."""
    return check_integer(default if n_draws is None else n_draws, "n_draws", f"{owner}.draw")


def with_labeled(sampler: Any, X_labeled: Any, y_labeled: Any) -> Any:
    """Return the sampler to use where these rows are labeled, if there are any that it takes.

    Parameters
    ----------
    sampler : object
        Of any origin; it may have a method ``with_labeled(X_labeled, y_labeled)``.
    X_labeled, y_labeled : object or None
        The labeled rows and their labels, None for none.

    Returns
    -------
    sampler : object
    """
    given = X_labeled is not None or y_labeled is not None
    if given and hasattr(sampler, "with_labeled"):
        return sampler.with_labeled(X_labeled, y_labeled)
    return sampler


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
        If the draws know one fixed set of rows only.
    """
    if not hasattr(draws, "together"):
        raise ValueError(
            "X_reference needs a model that can predict it. Got predictions that are already at "
            "hand; use select with reference_samples instead."
        )
    return draws.together(X, X_reference)


class DrawsAround:
    """Draws around others, whose rows go in and whose samples come out as they are.

    A subclass says by `_read` what becomes of rows, by `_answer` what becomes of samples.
    """

    def __init__(self, inner: Draws) -> None:
        self.inner = inner
        self.n_draws = inner.n_draws
        self.kind: Any = inner.kind
        self.weights = inner.weights
        self.joint = inner.joint
        self.mean_differs = getattr(inner, "mean_differs", "")

    @property
    def classes(self) -> Any:
        """Labels of the columns."""
        return self.inner.classes

    def _read(self, X: Any) -> Any:
        return X

    def _answer(self, samples: PredictionSamples) -> PredictionSamples:
        return samples

    def prepare(self, X: Any) -> None:
        """Let the draws inside look at the first rows of `X`, as they will come to them."""
        if hasattr(self.inner, "prepare"):
            self.inner.prepare(self._read(first_rows(X)))

    def __call__(self, X: Any) -> PredictionSamples:
        return self._answer(self.inner(self._read(X)))

    def chunks(self, X: Any, n_rows: int) -> Iterator[PredictionSamples]:
        """Read all of `X` once and yield the samples of its chunks."""
        for part in evaluate_in_chunks(self.inner, self._read(X), n_rows):
            yield self._answer(part)

    def together(self, X: Any, X_reference: Any) -> tuple[PredictionSamples, PredictionSamples]:
        """Return the samples of two sets of rows in one evaluation, where draws are joint."""
        first, second = evaluate_together(self.inner, self._read(X), self._read(X_reference))
        return self._answer(first), self._answer(second)


class TransformedDraws(DrawsAround):
    """Draws on rows that something fitted transforms once, by its `transform`."""

    def __init__(self, transformer: Any, inner: Draws) -> None:
        super().__init__(inner)
        self.transformer = transformer

    def _read(self, X: Any) -> Any:
        return self.transformer.transform(X)


class SamplerAround(BaseSampler):
    """A sampler around the sampler of the model inside, from which the draws come."""

    def __init__(self, outer: Any, inner: Any) -> None:
        self.outer = outer
        self.inner = inner

    @property
    def source(self) -> str:  # type: ignore[override]
        """Where the draws come from, in a few words."""
        return getattr(self.inner, "source", BaseSampler.source)

    @property
    def cost(self) -> str:  # type: ignore[override]
        """What the draws cost, in a few words."""
        return getattr(self.inner, "cost", BaseSampler.cost)
