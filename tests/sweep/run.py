"""Try a setting of a strategy on seeded problems, and count."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from tests.record.settings import Setting
from tests.sweep.problems import make_problem
from tests.sweep.properties import AT_ONCE, FURTHER, PROPERTIES, mismatch


@dataclass
class Tally:
    """How many problems each property of a setting was tried on, and what did not hold."""

    setting: Setting
    n_problems: int = 0
    tried: Counter[str] = field(default_factory=Counter)
    wrong: Counter[str] = field(default_factory=Counter)
    mismatches: list[str] = field(default_factory=list)

    @staticmethod
    def header(width: int) -> str:
        """Return the first line of a table."""
        names = "".join(f"{name:>9}" for name in PROPERTIES)
        return f"{'setting':{width}}{'problems':>9}{names}"

    def line(self, width: int) -> str:
        """Return the line of a table: mismatches of each property, - where it never applied."""
        counts = [str(self.wrong[name]) if self.tried[name] else "-" for name in PROPERTIES]
        cells = "".join(f"{count:>9}" for count in counts)
        return f"{self.setting.name:{width}}{self.n_problems:>9}{cells}"


def try_setting(setting: Setting, seeds: Iterable[int], *, in_turn: bool = False) -> Tally:
    """Check the properties of problems; `in_turn` checks one of those with further calls each."""
    tally = Tally(setting)
    further = list(FURTHER)
    for seed in seeds:
        problem = make_problem(setting, seed)
        answer = problem.answer()
        tally.n_problems += 1
        for name in [*AT_ONCE, *([further[seed % len(further)]] if in_turn else further)]:
            wrong = mismatch(name, problem, answer)
            tally.tried[name] += wrong is not None
            if wrong:
                tally.wrong[name] += 1
                tally.mismatches.append(f"{setting.name}, seed {seed}, {name}: {wrong}")
    return tally
