"""Small problems of one setting of a strategy, each made from a seed.

Pools consist of copies of a few distinct rows. In most problems all numbers are small binary
fractions, so that oracles can be exact.
"""

import warnings
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sklearn_ical import PredictionSamples
from sklearn_ical.exceptions import QueryWarning
from tests.record.settings import N_POINTS, Setting

BATCH_SIZE = 4
N_LABELED = 4
SIXTEENTHS = 16
SAMPLES = ("reference_samples", "labeled_samples")

Samples = Callable[[PredictionSamples], PredictionSamples]


@dataclass(frozen=True)
class Problem:
    """A call of a strategy.

    `content` has the number of the distinct row that each row of the pool is a copy of; `exact`
    says whether all numbers are small binary fractions.
    """

    setting: Setting
    seed: int
    samples: PredictionSamples
    options: dict[str, Any]
    params: dict[str, Any]
    content: np.ndarray
    exact: bool

    def strategy(self, random_state: int | None = None) -> Any:
        """Return the strategy, whose random state is the seed of the problem unless given."""
        made = self.setting.make(self.seed if random_state is None else random_state)
        return made.set_params(**self.params)

    def answer(self, random_state: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return picks and rows of utilities."""
        strategy = self.strategy(random_state)
        options = {"batch_size": BATCH_SIZE, "return_utilities": True} | self.options
        parameters = strategy.get_params(deep=True)
        steps = {name.split("__")[-1]: value for name, value in parameters.items()}
        if "reference" in options and "resample" in steps:  # one set for each step
            n_steps = -(-options["batch_size"] // steps["step_size"])
            options["reference"] = np.tile(options["reference"], (n_steps, 1))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", QueryWarning)
            picks, rows = strategy.select(self.samples, **options)
        return picks, rows

    def with_options(self, **options: Any) -> "Problem":
        """Return the problem with other arguments of the call."""
        return replace(self, options=self.options | options)

    def with_samples(self, change: Samples) -> "Problem":
        """Return the problem with all predictions changed: of pool, reference and labeled rows."""
        others = {name: change(self.options[name]) for name in SAMPLES if name in self.options}
        return replace(self, samples=change(self.samples), options=self.options | others)

    def with_features(self, change: Callable[[np.ndarray], np.ndarray]) -> "Problem":
        """Return the problem with all features changed."""
        others = {
            name: change(self.options[name])
            for name in ("X_pool", "X_labeled")
            if name in self.options
        }
        return self.with_options(**others)

    def permuted(self, order: np.ndarray) -> "Problem":
        """Return the problem whose row i is row ``order[i]`` of this one."""
        place = np.argsort(order)
        options = dict(self.options)
        if "reference_samples" not in options:
            names = [name for name in ("reference",) if name in options]
            options |= {name: place[options[name]] for name in names}
        if "candidates" in options:
            options["candidates"] = place[options["candidates"]]
        options |= {name: options[name][order] for name in ("X_pool", "costs") if name in options}
        params = dict(self.params)
        if "marginal" in params and "reference_samples" not in options:
            params["marginal"] = place[params["marginal"]]
        rows = {"samples": self.samples[order], "content": self.content[order]}
        return replace(self, options=options, params=params, **rows)


def make_problem(setting: Setting, seed: int) -> Problem:
    """Return a problem of a setting; equal seeds give equal problems."""
    rng = np.random.default_rng([zlib.crc32(setting.name.encode()), seed])
    tags = setting.make(0).query_tags()
    kind = str(rng.choice([kind for kind in setting.kinds if kind in tags.kinds]))
    exact = kind == "label" or bool(rng.random() < 0.75)
    n_distinct = int(rng.integers(4, 9))
    content = rng.integers(n_distinct, size=N_POINTS)
    n_draws = max(tags.min_draws, int(rng.integers(2, 7)))
    twins = bool(rng.random() < 0.25)
    draw = _Draw(rng, kind, exact, n_draws, int(rng.integers(1, 4)), twins)
    distinct = draw.samples(n_distinct)
    options: dict[str, Any] = {}
    params: dict[str, Any] = {}
    if "reference" in tags.uses:
        options, params = _references(rng, draw, distinct, content, setting)
    if tags.features:
        options["X_pool"] = draw.features(n_distinct)[content]
    if "labeled" in tags.uses and rng.random() < 0.5:
        if tags.predictions:
            options["labeled_samples"] = draw.samples(N_LABELED)
        else:
            options["X_labeled"] = draw.features(N_LABELED)
    if rng.random() < 0.25:
        options["candidates"] = np.sort(rng.permutation(N_POINTS)[: BATCH_SIZE + 3])
    if tags.utilities == "gain" and rng.random() < 0.2:
        options["costs"] = rng.integers(1, 8, size=N_POINTS) / 4
    return Problem(setting, seed, distinct[content], options, params, content, exact)


@dataclass(frozen=True)
class _Draw:
    """How the predictions and features of one problem are drawn.

    `twins` says whether all targets are the same.
    """

    rng: np.random.Generator
    kind: Any
    exact: bool
    n_draws: int
    n_outputs: int
    twins: bool

    def samples(self, n: int) -> PredictionSamples:
        """Return predictions of distinct rows; in one of them all draws agree."""
        rng, shape = self.rng, (n, self.n_draws)
        if self.kind == "value":
            values = rng.normal(size=(*shape, self.n_outputs))
            values = np.round(4 * values) / 4 if self.exact else values
            if self.twins:
                values[:] = values[:, :, :1]
        elif self.kind == "label":
            values = rng.integers(1 + self.n_outputs, size=shape)
        else:
            values = rng.dirichlet(np.full(1 + self.n_outputs, 0.7), size=shape)
            values = rng.multinomial(SIXTEENTHS, values) / SIXTEENTHS if self.exact else values
        values[int(rng.integers(n))] = values[0, 0]
        return PredictionSamples(values, self.kind, noise_variance=self._noise(shape))

    def _noise(self, shape: tuple[int, int]) -> Any:
        """Return no noise variance, or a number, or one for each row, or each row and draw.

        The same of these for all predictions of a problem.
        """
        if self.kind != "value":
            return None
        shapes: list[Any] = [None, None, (), shape[:1], shape]
        chosen = shapes[(self.n_draws + self.n_outputs) % len(shapes)]
        return None if chosen is None else self.rng.integers(1, 9, size=chosen) / 4

    def features(self, n: int) -> np.ndarray:
        """Return features of distinct rows."""
        features = self.rng.normal(size=(n, 3))
        return np.round(2 * features) if self.exact else features


def _references(
    rng: np.random.Generator,
    draw: _Draw,
    distinct: PredictionSamples,
    content: np.ndarray,
    setting: Setting,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what candidates are compared with: nothing stated, positions, or other rows.

    Positions have all copies of a row or none, so that copies are compared with the same rows.
    """
    how = int(rng.integers(3))
    if how == 0:
        return {}, {}
    options: dict[str, Any] = {}
    among = content
    if how == 2:
        options["reference_samples"] = draw.samples(N_POINTS)
        among = np.arange(N_POINTS)
    present = np.unique(among)
    some = [rng.permutation(present)[: int(rng.integers(2, len(present) + 1))] for _ in range(2)]
    reference, marginal = (np.flatnonzero(np.isin(among, rows)) for rows in some)
    options["reference"] = reference
    names = setting.make(0).get_params(deep=False)
    named = "marginal" in names and names["marginal"] is None
    return options, {"marginal": marginal} if named else {}
