"""Rewrites the record and prints what changed: ``python -m tests.record`` from the root."""

import json
import platform
from importlib.metadata import version

from tests.record.problems import FILE, Answer, all_problems, differences, line_of, read

PACKAGES = ("numpy", "scipy", "scikit-learn")


def text_of(answers: dict[str, Answer]) -> str:
    """Return the text of the file: a line of versions, and one for each problem."""
    python = ".".join(platform.python_version_tuple()[:2])
    versions = {"python": python, **{package: version(package) for package in PACKAGES}}
    lines = [json.dumps({"versions": versions})]
    lines += [line_of(problem, answers[problem.name]) for problem in all_problems()]
    return "\n".join(lines) + "\n"


def changes(kept: dict[str, Answer], found: dict[str, Answer]) -> list[str]:
    """Describe how the new answers differ from those in the file, one problem a line."""
    lines = [f"removed {name}" for name in kept if name not in found]
    lines += [f"added   {name}" for name in found if name not in kept]
    for problem in all_problems():
        if problem.name in kept:
            old, new = kept[problem.name], found[problem.name]
            changed = differences(old, new, problem.digits)
            if not changed and old != new:
                changed = ["utilities: within rounding"]
            lines += [f"changed {problem.name}: {each}" for each in changed]
    return lines


def main() -> None:
    """Answer every problem, print the changes and write the file."""
    kept = read()[1] if FILE.exists() else {}
    found = {problem.name: problem.answer() for problem in all_problems()}
    for line in changes(kept, found):
        print(line)
    FILE.write_text(text_of(found), encoding="utf-8", newline="\n")
    print(f"{len(found)} problems in {FILE.name}")


if __name__ == "__main__":
    main()
