"""The problems of the record, and their answers: picks, utilities and warnings."""

import json
import math
import warnings
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tests.record import models
from tests.record.settings import Setting, all_settings
from tests.record.situations import (
    BATCH_SIZE,
    FULL,
    N_POINTS,
    batch_size_of,
    options_of,
    samples_of,
    seed_of,
)

FILE = Path(__file__).with_name("record.jsonl")
DIGITS = 10
ROUGH_DIGITS = 5


@dataclass(frozen=True)
class Answer:
    """What a strategy answers; utilities have None where a row is not a candidate."""

    picks: list[int]
    warnings: list[str]
    utilities: list[list[float | None]]


@dataclass(frozen=True)
class Problem:
    """A setting of a strategy in a situation."""

    setting: Setting
    situation: str

    @property
    def name(self) -> str:
        """Return the name, under which the answer is kept."""
        return f"{self.setting.name}/{self.situation}"

    @property
    def group(self) -> str:
        """Return the name of the strategy, or "torch" for what needs torch."""
        return "torch" if self.needs_torch else self.setting.strategy.__name__

    @property
    def needs_torch(self) -> bool:
        """Return whether the model is a torch module."""
        return "net" in self.situation.split("-")

    @property
    def digits(self) -> int:
        """Return how many digits of the largest utility are kept."""
        rough = {"float32", *models.ROUGH} & set(self.situation.split("-"))
        return ROUGH_DIGITS if rough else DIGITS

    def call(self, **options: Any) -> Any:
        """Ask the strategy."""
        strategy = self.setting.make(seed_of(self.situation))
        if self.situation.startswith("query-"):
            model = models.fitted(self.situation.split("-")[1])
            options |= models.query_options(self.situation, self.setting)
            return strategy.query(model, models.pool_of(self.situation), BATCH_SIZE, **options)
        samples = samples_of(self.situation, "pool", N_POINTS)
        options |= options_of(self.situation, self.setting)
        if "marginal" in options:
            strategy.set_params(marginal=options.pop("marginal"))
        return strategy.select(samples, batch_size_of(self.situation), **options)

    def raw(self) -> tuple[np.ndarray, list[str], np.ndarray]:
        """Return picks, names of warnings and utilities; both ways of asking must agree."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            picks = self.call()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            same, utilities = self.call(return_utilities=True)
        if picks.tolist() != same.tolist():
            raise AssertionError(f"{self.name}: picks {picks}, with utilities {same}")
        return picks, [each.category.__name__ for each in caught], utilities

    def answer(self) -> Answer:
        """Return the answer, with rounded utilities."""
        return as_answer(*self.raw(), self.digits)


def as_answer(picks: np.ndarray, names: list[str], utilities: np.ndarray, digits: int) -> Answer:
    """Return an answer with rounded utilities."""
    return Answer(picks.tolist(), names, rounded(utilities, digits))


def rounded(utilities: np.ndarray, digits: int) -> list[list[float | None]]:
    """Round to so many digits of the largest utility; NaN becomes None, and -0.0 becomes 0.0."""
    largest = float(np.nanmax(np.abs(utilities)))
    decimals = digits - 1 - (math.floor(math.log10(largest)) if largest > 0 else 0)
    rows = np.asarray(utilities, dtype=np.float64).tolist()
    return [[None if math.isnan(x) else round(x, decimals) + 0.0 for x in row] for row in rows]


@cache
def all_problems() -> list[Problem]:
    """Return every problem, in the order of the file."""
    problems = []
    for setting in all_settings():
        for situation in FULL if setting.situations is None else setting.situations:
            if setting.accepts(situation.split("-")):
                problems.append(Problem(setting, situation))
    return problems + [Problem(*pair) for pair in models.query_situations()]


def line_of(problem: Problem, answer: Answer) -> str:
    """Return the line of a problem in the file."""
    fields = {"name": problem.name, **vars(answer)}
    return json.dumps(fields, allow_nan=False, separators=(",", ":"))


def read() -> tuple[dict[str, str], dict[str, Answer]]:
    """Return the versions that the file was written with, and its answers by name."""
    header, *lines = FILE.read_text(encoding="utf-8").splitlines()
    answers: dict[str, Answer] = {}
    for line in lines:
        fields = json.loads(line)
        name = fields.pop("name")
        if name in answers:
            raise ValueError(f"{FILE.name} has two lines for {name}.")
        answers[name] = Answer(**fields)
    return json.loads(header)["versions"], answers


def differences(kept: Answer, found: Answer, digits: int) -> list[str]:
    """Return what differs between two answers, utilities by more than rounding."""
    changed = [
        f"{name}: expected {getattr(kept, name)}, got {getattr(found, name)}"
        for name in ("picks", "warnings")
        if getattr(kept, name) != getattr(found, name)
    ]
    expected, got = (np.array(each.utilities, dtype=np.float64) for each in (kept, found))
    if expected.shape != got.shape:
        return [*changed, f"utilities: expected shape {expected.shape}, got {got.shape}"]
    largest = np.nanmax(np.abs(expected), initial=0.0)
    tolerance = {"rtol": 10.0 ** (3 - digits), "atol": 10.0 ** (1 - digits) * 3 * largest}
    close = np.isclose(got, expected, equal_nan=True, **tolerance)
    if not close.all():
        row, column = np.argwhere(~close)[0]
        changed.append(
            f"utilities: {np.sum(~close)} differ, the first in row {row}, column {column}: "
            f"expected {expected[row, column]!r}, got {got[row, column]!r}"
        )
    return changed
