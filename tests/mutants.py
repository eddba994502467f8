"""Measure the power of the tests by small faults put into the code that selects.

``python -m tests.mutants`` enumerates the mutants of `FILES` with cosmic-ray and draws a sample by
a hash of their lines, so that the same ones come again wherever these lines stay as they are. On
each it runs the numpy tests that execute the mutated function. A second call with the same
``--out`` goes on where the first one stopped; ``--tree`` measures another checkout.
"""

import argparse
import hashlib
import importlib
import json
import os
import shutil
import sys
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.mutant_runs import TIMED_OUT, Chosen, Job, Mutant, Recorder, run

FILES = (
    "sklearn_ical/dependence/*.py",
    "sklearn_ical/objectives/**/*.py",
    "sklearn_ical/pool/*.py",
    "sklearn_ical/selection/*.py",
    "sklearn_ical/strategies/*.py",
)
TESTS = (
    *FILES,
    "tests/dependence/test_*.py",
    "tests/pool/test_*.py",
    "tests/selection/test_*.py",
    "tests/strategies/test_*.py",
    "tests/test_common.py",
)
# What the tests import, but for the package: forked processes have it at once.
PRELOADED = (
    "_pytest.doctest",
    "array_api_compat.numpy",
    "pandas",
    "scipy.optimize",
    "scipy.stats",
    "sklearn.compose",
    "sklearn.datasets",
    "sklearn.ensemble",
    "sklearn.frozen",
    "sklearn.gaussian_process",
    "sklearn.linear_model",
    "sklearn.naive_bayes",
    "sklearn.pipeline",
    "torch",
)
ARITHMETIC = {"Add", "Sub", "Mul", "Div", "FloorDiv", "Mod", "Pow"}
SEED = "1"
NEAR_SECONDS = 6.0  # a test of the module's own file that takes longer is left out
FAR_SECONDS = 3.0  # the same for other files
MUTANT_SECONDS = 25.0  # what the tests of one mutant may take together on the intact tree
EQUIVALENT = Path(__file__).with_name("equivalent_mutants.json")


def is_useful(operator: str) -> bool:
    """Tell whether an operator makes more than errors that any test would meet."""
    kind, *names = operator.removeprefix("core/").split("_")
    if kind == "ReplaceBinaryOperator":
        return (names[0] in ARITHMETIC) == (names[1] in ARITHMETIC) and "Shift" not in names[1]
    if kind == "ReplaceComparisonOperator":
        return (names[0] in {"Is", "IsNot"}) == (names[1] in {"Is", "IsNot"})
    if kind == "ReplaceUnaryOperator":
        return names[1] not in {"Not", "Invert"} or names[0] == "Delete"
    return kind not in {"VariableReplacer", "VariableInserter", "ExceptionReplacer"}


def is_skipped(node: Any) -> bool:
    """Tell whether a node belongs to an annotation, a bare ``*`` or a decorator of types."""
    if node.type == "decorator":
        return any(name in node.get_code() for name in ("overload", "abstractmethod"))
    if node.type == "operator" and node.parent.type in {"parameters", "param", "lambdef"}:
        return True
    while node.parent is not None:
        child, node = node, node.parent
        if node.type == "tfpdef" or (node.type == "annassign" and child is node.children[1]):
            return True
        if node.type == "funcdef" and child is node.annotation:
            return True
        if node.type == "if_stmt" and "TYPE_CHECKING" in node.children[1].get_code():
            return True
    return False


def enclosing(node: Any) -> tuple[str, int | None]:
    """Return the dotted name of what a node is in, and the first line of its function."""
    names, function = [], None
    while node is not None:
        if node.type in {"funcdef", "classdef"}:
            names.append(node.name.value)
        if node.type == "funcdef" and function is None:
            outer = node.parent if node.parent.type == "decorated" else node
            function = outer.start_pos[0]
        node = node.parent
    return ".".join(names[::-1]), function


def enumerate_mutants(tree: Path) -> Iterator[Mutant]:
    """Yield the mutants of all files, one operator of a family for each place."""
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.plugins import get_operator, operator_names

    operators = [(name, get_operator(name)()) for name in operator_names() if is_useful(name)]
    repeated: Counter[str] = Counter()
    for path in sorted({path for glob in FILES for path in tree.glob(glob)}):
        text, file = path.read_text(encoding="utf-8"), path.relative_to(tree).as_posix()
        lines, seen = text.splitlines(), Counter[str]()
        best: dict[tuple[Any, str], Mutant] = {}
        for node in ast_nodes(get_ast(text)):
            for name, operator in operators:
                for index, (start, _) in enumerate(operator.mutation_positions(node)):
                    seen[name] += 1
                    if is_skipped(node):
                        continue
                    line = lines[start[0] - 1]
                    column = start[1] - len(line) + len(line.lstrip())
                    names, function = enclosing(node)
                    place = f"{SEED} {names} {name} {index} {column} {line.strip()}"
                    repeated[place] += 1
                    key = hash_of(f"{place} {repeated[place]}")[:16]
                    mutant = Mutant(key, file, start[0], name, seen[name] - 1, function)
                    spot = (start, name.split("_")[0])
                    best[spot] = min(mutant, best.get(spot, mutant), key=lambda m: m.key)
        yield from best.values()


def hash_of(text: str) -> str:
    """Return a text's hash, the same in every process."""
    return hashlib.sha256(text.encode()).hexdigest()


def draw(tree: Path, n_mutants: int) -> list[Mutant]:
    """Return the first mutants by the hash of their keys that are valid programs."""
    sample: list[Mutant] = []
    for mutant in sorted(enumerate_mutants(tree), key=lambda m: hash_of(m.key)):
        if len(sample) == n_mutants:
            break
        with warnings.catch_warnings(), suppress(SyntaxError, SyntaxWarning):
            warnings.simplefilter("error")
            compile(mutant.source(tree), mutant.path, "exec")
            sample.append(mutant)
    return sample


def baseline(work: Path, n_workers: int) -> dict[str, dict[str, Any]]:
    """Run every test on the intact copy; a failure there makes the measure void."""
    found, base = work / "baseline.json", work / "base"
    if found.exists():
        return json.loads(found.read_text(encoding="utf-8"))
    tests: dict[str, dict[str, Any]] = {}
    failed, jobs = [], []
    files = {path for glob in TESTS for path in base.glob(glob)}
    for i, path in enumerate(sorted(files, key=lambda path: (-path.stat().st_size, path))):
        recorder = Recorder(base, work / f"tests{i}.json", NEAR_SECONDS)
        name = path.relative_to(base).as_posix()
        jobs.append(Job([name], recorder, 1800, work / f"tests{i}.log"))

    def done(job: Job, code: int, seconds: float) -> None:
        print(f"{job.files[0]}: {code} after {seconds:.0f} s", flush=True)
        if code not in {0, 5}:
            failed.append(str(job.log))
        elif job.plugin.out.exists():
            tests.update(json.loads(job.plugin.out.read_text(encoding="utf-8")))

    run(jobs, base, [base] * n_workers, done)
    if failed:
        sys.exit(f"the intact tree fails, see {', '.join(failed)}")
    found.write_text(json.dumps(tests), encoding="utf-8")
    return tests


def plan(mutant: Mutant, tests: dict[str, dict[str, Any]]) -> dict[str, float]:
    """Choose the tests that run the mutated function: nearest file first, then the quickest."""
    stem = Path(mutant.path).stem.lstrip("_")
    found: list[tuple[bool, float, str]] = []
    for nodeid, test in tests.items():
        file = nodeid.partition("::")[0]
        far = not (file == mutant.path or Path(file).stem.startswith(f"test_{stem}"))
        lines = [line for name, line in test["run"] if name == mutant.path]
        runs_it = mutant.function in lines if mutant.function is not None else bool(lines)
        limit = FAR_SECONDS if far else NEAR_SECONDS
        if (runs_it or file == mutant.path) and test["seconds"] < limit:
            found.append((far, test["seconds"], nodeid))
    chosen, spent, spent_by_file = [], 0.0, defaultdict[str, float](float)
    for far, seconds, nodeid in sorted(found):
        if spent + seconds <= MUTANT_SECONDS:
            spent += seconds
            spent_by_file[nodeid.partition("::")[0]] += seconds
            chosen.append((far, seconds, nodeid))

    def place(one: tuple[bool, float, str]) -> tuple[Any, ...]:
        file = one[2].partition("::")[0]
        return one[0], spent_by_file[file], file, one[1]

    return {nodeid: seconds for _, seconds, nodeid in sorted(chosen, key=place)}


def report(results: dict[str, dict[str, Any]], sample: list[Mutant]) -> None:
    """Print the table by file, and every mutant that no test told from the intact code."""
    equivalent = json.loads(EQUIVALENT.read_text(encoding="utf-8"))
    rows: dict[str, Counter[str]] = {}
    told_apart_by_none = []
    for mutant in sample:
        result = results[mutant.key]
        outcome = result["outcome"]
        if outcome == "survived" and mutant.key in equivalent:
            outcome = "equivalent"
        rows.setdefault(mutant.path, Counter())[outcome] += 1
        if outcome in {"survived", "equivalent"}:
            where = f"{outcome} {mutant.key} {mutant.path}:{mutant.line}"
            what = f"{mutant.operator.removeprefix('core/')} ({result['tests']} tests)"
            told_apart_by_none.append(f"{where} {what}: {result['change']}")
    outcomes = ("killed", "timeout", "survived", "equivalent")
    print(f"{'file':48}{'mutants':>10}" + "".join(f"{c:>12}" for c in outcomes) + f"{'share':>8}")
    for name, row in [*sorted(rows.items()), ("all", sum(rows.values(), Counter[str]()))]:
        killed = row["killed"] + row["timeout"]
        counts = "".join(f"{row[outcome]:>12}" for outcome in outcomes)
        share = killed / max(killed + row["survived"], 1)
        print(f"{name:48}{row.total():>10}{counts}{share:>8.1%}")
    print("\n".join(sorted(told_apart_by_none)))


def measure(out: Path, work: Path, sample: list[Mutant], n_workers: int) -> None:
    """Judge the mutants that the results lack, and report on all."""
    tests = baseline(work, n_workers)
    results: dict[str, dict[str, Any]] = {}
    if out.exists():
        records = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
        results = {record["key"]: record for record in records}
    places = [work / f"worker{i}" for i in range(n_workers)]
    for place in places:
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(work / "base", place)
    jobs = []
    for mutant in sample:
        if mutant.key not in results:
            chosen = plan(mutant, tests)
            files = list(dict.fromkeys(nodeid.partition("::")[0] for nodeid in chosen))
            limit = 60 + 5 * sum(chosen.values())
            jobs.append(Job(files, Chosen(chosen), limit, work / f"{mutant.key}.log", mutant))

    def done(job: Job, code: int, seconds: float) -> None:
        assert job.mutant is not None
        record = asdict(job.mutant) | {
            "outcome": {0: "survived", 5: "survived", TIMED_OUT: "timeout"}.get(code, "killed"),
            "code": code,
            "seconds": round(seconds, 1),
            "tests": len(job.plugin.plan),
            "change": job.mutant.change(work / "base"),
        }
        results[job.mutant.key] = record
        with out.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
        where = f"{job.mutant.path}:{job.mutant.line}"
        print(record["outcome"], job.mutant.key, where, record["change"], flush=True)

    run([job for job in jobs if job.files], work / "base", places, done)
    for job in jobs:
        if not job.files:
            done(job, 5, 0.0)
    report(results, sample)


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--tree", type=Path, default=Path(__file__).resolve().parents[1])
    parser.add_argument("--out", type=Path, default=Path("mutants.jsonl"))
    parser.add_argument("-j", "--workers", type=int, default=2)
    parser.add_argument("-n", "--mutants", type=int, default=200)
    options = parser.parse_args()
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"
    work = options.out.resolve().with_suffix(".work")
    if not (work / "baseline.json").exists():
        shutil.rmtree(work, ignore_errors=True)
        leave = shutil.ignore_patterns(".git", ".nox", ".venv*", "__pycache__", "*.work")
        shutil.copytree(options.tree.resolve(), work / "base", ignore=leave)
    sample = draw(work / "base", options.mutants)
    for name in PRELOADED:
        with suppress(ImportError):
            importlib.import_module(name)
    measure(options.out, work, sample, options.workers)


if __name__ == "__main__":
    main()
