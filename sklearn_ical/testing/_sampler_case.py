"""A sampler to check, with its model and rows; no checks."""

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError

from sklearn_ical._validation import n_rows, sliceable, take_rows
from sklearn_ical.samplers import BootstrapSampler, Draws, get_sampler
from sklearn_ical.samples import PredictionSamples
from sklearn_ical.testing._answers import fingerprint, same_answers

LEAST_ROWS = 10
DEFAULT_ROWS = 40
MANY_DRAWS = 2000


@dataclass(frozen=True)
class SamplerCase:
    """A sampler, the rows to evaluate it on and its model.

    Attributes
    ----------
    bare : object
        The sampler without labeled rows.
    sampler : object
        The same with the labeled rows, if there are any.
    X : object
        Rows, n_points of them.
    model : object or None
        The model to compare with.
    given : dict
        The caller's arguments, by name.
    before : dict
        Fingerprints of these before the first draw.
    """

    bare: Any
    sampler: Any
    X: Any
    model: Any
    given: dict[str, Any]
    before: dict[str, str | None]

    @cached_property
    def draws(self) -> Draws:
        """Draws of the default number, of seed 0."""
        return self.sampler.draw(random_state=0)

    @cached_property
    def samples(self) -> PredictionSamples:
        """Their predictions for all rows."""
        return self.draws(self.X)

    @property
    def n_points(self) -> int:
        return n_rows(self.X)

    def take(self, rows: Any) -> Any:
        """Return some of the rows, by positions or a slice, in the type of `X`."""
        return take_rows(sliceable(self.X), rows)

    @property
    def few(self) -> int:
        """About half as many draws as by default."""
        return max(1, self.draws.n_draws // 2)

    @cached_property
    def few_draws(self) -> Draws:
        """Few draws of seed 0."""
        return self.sampler.draw(self.few, random_state=0)

    @cached_property
    def few_samples(self) -> PredictionSamples:
        """Their predictions for all rows."""
        return self.few_draws(self.X)

    @cached_property
    def seeds_agree(self) -> bool:
        """Whether another seed gives the same draws by default, as from a finite ensemble."""
        return same_answers(self.sampler.draw(random_state=1)(self.X), self.samples)

    @cached_property
    def finite(self) -> bool:
        """Whether the sampler has its default number of draws and no others."""
        if not self.seeds_agree:
            return False
        try:
            self.sampler.draw(self.draws.n_draws + 1, random_state=0)
        except ValueError:
            return True
        return False

    @cached_property
    def many_samples(self) -> PredictionSamples:
        """Predictions of all members of a finite ensemble, else of many draws of seed 0."""
        if self.finite:
            return self.samples
        return self.sampler.draw(MANY_DRAWS, random_state=0)(self.X)

    @cached_property
    def precomputed(self) -> bool:
        """Whether joint draws are defined only on one fixed set of rows, by their number."""
        try:
            self.draws(self.take(slice(0, self.n_points - 1)))
        except ValueError:
            return bool(self.draws.joint)
        return False


def sampler_case(sampler: Any, X: Any, model: Any, X_labeled: Any, y_labeled: Any) -> SamplerCase:
    """Return the case of the arguments of `check_sampler`; raise if they are not valid."""
    if isinstance(sampler, type) or not callable(getattr(sampler, "draw", None)):
        model = sampler if model is None else model
    bare = get_sampler(sampler)
    X = _normal_rows(model) if X is None else X
    total = n_rows(X, "X")
    if total < LEAST_ROWS:
        raise ValueError(
            f"X must have at least {LEAST_ROWS} rows, so that orders and chunks can differ. Got "
            f"{total} in check_sampler."
        )
    given = {"X": X, "model": model, "X_labeled": X_labeled, "y_labeled": y_labeled}
    _own_outputs(model, X)  # what models store in their first prediction is not a change
    before = {name: fingerprint(value) for name, value in given.items()}
    ready = _with_labeled(bare, X_labeled, y_labeled)
    return SamplerCase(bare, ready, X, model, given, before)


def _normal_rows(model: Any) -> np.ndarray:
    """Return standard normal rows of as many features as the model was fitted on."""
    n_features = getattr(model, "n_features_in_", None)
    if n_features is None:
        raise TypeError(
            "X must be rows that the model accepts where the number of its features is unknown. "
            f"Got None for {type(model).__name__} without n_features_in_ in check_sampler."
        )
    return np.random.default_rng(0).normal(size=(DEFAULT_ROWS, n_features))


def _with_labeled(sampler: Any, X_labeled: Any, y_labeled: Any) -> Any:
    """Return the sampler with its labeled rows; raise if some are missing."""
    if (X_labeled is None) != (y_labeled is None):
        name = "X_labeled" if X_labeled is None else "y_labeled"
        raise ValueError(
            f"X_labeled and y_labeled must be given together. Got {name}=None in check_sampler."
        )
    if X_labeled is not None:
        if not callable(getattr(sampler, "with_labeled", None)):
            raise TypeError(
                "X_labeled must be None for a sampler without with_labeled. Got labeled rows for "
                f"{type(sampler).__name__} in check_sampler; derive it from BaseSampler."
            )
        return sampler.with_labeled(X_labeled, y_labeled)
    if isinstance(sampler, BootstrapSampler) and not hasattr(sampler, "X_"):
        raise ValueError(
            "X_labeled and y_labeled must be given where draws are refits on resamples of labeled "
            f"rows. Got None for {type(sampler.estimator).__name__} in check_sampler; call "
            "check_sampler(model, X, X_labeled=..., y_labeled=...)."
        )
    return sampler


def own_prediction(model: Any, X: Any) -> np.ndarray | None:
    """Return the model's own prediction: `predict_proba`, else `predict`; None without either."""
    for method in ("predict_proba", "predict"):
        if callable(getattr(model, method, None)):
            return np.asarray(getattr(model, method)(X))
    return None


def _own_outputs(model: Any, X: Any) -> None:
    """Predict by each method of the model; raise if it does not accept the rows."""
    for method in ("predict_proba", "predict"):
        if callable(getattr(model, method, None)):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    getattr(model, method)(X)
                except NotFittedError:
                    raise
                except Exception as err:
                    raise ValueError(
                        f"X must be rows that the model accepts. Got {type(err).__name__} from "
                        f"{method} of {type(model).__name__} in check_sampler: {err}"
                    ) from err
