"""Tests that a killed simulation resumes to exactly the result of an unbroken one."""

import itertools
import multiprocessing
import os
import pickle
import random
import signal
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline

from sklearn_ical import MarginQuery
from sklearn_ical.exceptions import CheckpointError
from sklearn_ical.simulation import Patience, read_checkpoint, simulate
from tests.simulation import killed_run

pytestmark = pytest.mark.skipif(os.name != "posix", reason="SIGKILL is a POSIX signal")
# Each run has a process of its own, forked from one that has imported the package.
SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload([killed_run.__name__])
# A run writes 37 lines: a header, 5 of picks, 26 of answers and 5 of rounds. It fits 5 times and
# queries 3 times, because the first answers are of one class and the next batch is a random one.
PLACES = [
    *(("write", n) for n in (1, 2, 3, 7, 9, 10, 16, 31, 37)),
    *(("fit", n) for n in (1, 3, 5)),
    *(("query", n) for n in (1, 2, 3)),
    *(("nowhere", n) for n in range(5)),
]


def start(folder, place, count):
    process = SERVER.Process(target=killed_run.main, args=(folder, place, count))
    process.start()
    return process


def calls(folder):
    return (folder / "calls").read_text().split()


def finish(folder):
    """Run to the end without a kill and return the result."""
    process = start(folder, "nowhere", 0)
    process.join(120)
    assert process.exitcode == 0
    return pickle.loads((folder / "result.pickle").read_bytes())


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    folder = tmp_path_factory.mktemp("unbroken")
    return finish(folder), calls(folder), (folder / "checkpoint.jsonl").read_text()


def kill_and_resume(folder, place, count, seed):
    """Kill a run at a place, or at a random time after its first answer, and resume it."""
    process = start(folder, place, count)
    if place == "nowhere":
        while not (folder / "calls").exists() or not (folder / "calls").stat().st_size:
            assert process.is_alive()
        process.join(random.Random(seed).uniform(0.0, 0.6))
        process.kill()
    process.join(120)
    assert process.exitcode == -signal.SIGKILL
    n_before = len(calls(folder))
    return finish(folder), n_before


def test_twenty_killed_runs_resume_to_the_unbroken_result(unbroken, tmp_path):
    expected, expected_calls, _ = unbroken
    assert len(expected.rounds) == 5
    assert len(expected.refused) > 0
    folders = [tmp_path / f"{i}-{place}-{n}" for i, (place, n) in enumerate(PLACES)]
    for folder in folders:
        folder.mkdir()
    with ThreadPoolExecutor(2) as pool:
        ended = list(
            pool.map(kill_and_resume, folders, *zip(*PLACES, strict=True), itertools.count())
        )
    assert len(ended) == 20
    for folder, (place, _), (result, n_before) in zip(folders, PLACES, ended, strict=True):
        assert result == expected, folder.name
        # Nobody was asked twice, and nobody else than in the unbroken run. A kill at a random time
        # can fall between an answer and the line that keeps it: that row alone is asked again.
        made = calls(folder)
        if place == "nowhere" and made[n_before : n_before + 1] == made[n_before - 1 : n_before]:
            del made[n_before]
        assert made == expected_calls, folder.name
        assert read_checkpoint(folder / "checkpoint.jsonl").rounds == expected.rounds
    # The kills came at different stages of the run.
    assert len({n_before for _, n_before in ended}) > 5


def test_answer_torn_by_a_power_cut_is_the_only_one_asked_again(unbroken, tmp_path):
    expected, expected_calls, text = unbroken
    lines = text.splitlines(keepends=True)
    (where,) = [i for i, line in enumerate(lines) if f'"position": {expected_calls[9]},' in line]
    (tmp_path / "checkpoint.jsonl").write_text("".join(lines[:where]) + lines[where][:-8])
    assert finish(tmp_path) == expected
    assert calls(tmp_path) == expected_calls[9:]


# The rest runs in this process.


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(90, 3))
    y = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0.5)
    return {"X": X[:60], "y": y[:60], "X_test": X[60:], "y_test": y[60:]}


def run(data, checkpoint, **changes):
    settings = {
        "estimator": RandomForestClassifier(4),
        "strategy": MarginQuery(),
        "n_initial": 6,
        "batch_size": 3,
        "n_rounds": 3,
        "random_state": 0,
        **data,
    }
    return simulate(checkpoint=checkpoint, **(settings | changes))


@pytest.mark.parametrize("cut", [*range(0, 4000, 150)])
def test_checkpoint_cut_anywhere_is_healed(data, tmp_path, cut):
    whole = tmp_path / "whole"
    expected = run(data, whole)
    content = whole.read_bytes()
    part = tmp_path / "part"
    part.write_bytes(content[:cut])
    assert run(data, part) == expected
    healed, original = part.read_text().splitlines(), whole.read_text().splitlines()
    assert len(healed) == len(original)
    assert [line for line in healed if "label" in line] == [x for x in original if "label" in x]


def test_finished_checkpoint_is_neither_fitted_nor_changed(data, tmp_path):
    expected = run(data, tmp_path / "c")
    before = (tmp_path / "c").read_bytes()

    class Refuses(RandomForestClassifier):
        __module__ = RandomForestClassifier.__module__
        __qualname__ = RandomForestClassifier.__qualname__

        def fit(self, X, y):
            raise AssertionError("was fitted")

    assert run(data, tmp_path / "c", estimator=Refuses(4)) == expected
    assert (tmp_path / "c").read_bytes() == before


def test_more_rounds_extend_a_checkpoint(data, tmp_path):
    run(data, tmp_path / "c", n_rounds=2)
    assert run(data, tmp_path / "c", n_rounds=5) == run(data, None, n_rounds=5)
    assert run(data, tmp_path / "c", n_rounds=1) == run(data, None, n_rounds=1)


def test_seed_of_a_run_without_random_state_is_kept(data, tmp_path):
    first = run(data, tmp_path / "c", n_rounds=1, random_state=None)
    second = run(data, tmp_path / "c", n_rounds=3, random_state=None)
    assert second.rounds[:2] == first.rounds
    assert second.random_state == first.random_state
    other = run(data, None, n_rounds=1, random_state=None)
    assert other.random_state != first.random_state


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"estimator": RandomForestClassifier(5)}, "estimator.n_estimators is 4 there and 5 here"),
        ({"strategy": "entropy"}, "strategy.class is .*MarginQuery' there and .*MaxEntropyQuery'"),
        ({"batch_size": 4}, "batch_size is 3 there and 4 here"),
        ({"n_initial": 5}, "n_initial is 6 there and 5 here"),
        ({"random_state": 1}, "random_state is 0 there and 1 here"),
        ({"stopping": Patience(2)}, r"stopping\S* is .* there and .*"),
        ({"cost": np.ones(60)}, r"cost\S* is None there and absent here"),
        ({"initial": "random"}, "initial is 'balanced' there and 'random' here"),
        ({"scoring": "accuracy"}, "scoring is None there and 'accuracy' here"),
    ],
)
def test_checkpoint_of_other_settings_is_refused(data, tmp_path, changes, words):
    from sklearn_ical import MaxEntropyQuery

    run(data, tmp_path / "c")
    before = (tmp_path / "c").read_bytes()
    if changes.get("strategy") == "entropy":
        changes = {"strategy": MaxEntropyQuery()}
    with pytest.raises(CheckpointError, match=f"c belongs to another simulation: .*{words}"):
        run(data, tmp_path / "c", **changes)
    assert (tmp_path / "c").read_bytes() == before


@pytest.mark.parametrize("what", ["X", "y", "X_test", "y_test"])
def test_checkpoint_of_other_data_is_refused(data, tmp_path, what):
    run(data, tmp_path / "c")
    changed = data[what].copy()
    changed[5] += 1
    with pytest.raises(CheckpointError, match=rf"simulation: {what}\.values is '\w+' there and "):
        run(data, tmp_path / "c", **{what: changed})


def test_checkpoint_of_other_version_is_refused(data, tmp_path, monkeypatch):
    run(data, tmp_path / "c")
    monkeypatch.setattr("sklearn_ical.simulation._identity.__version__", "9.9")
    with pytest.raises(CheckpointError, match=r"sklearn_ical is '0\.\d+\.\d+' there and '9\.9' "):
        run(data, tmp_path / "c")


def test_parameters_without_effect_may_differ(data, tmp_path):
    expected = run(data, tmp_path / "c", n_rounds=1)
    forest = RandomForestClassifier(4, n_jobs=2, random_state=7, verbose=0)
    assert run(data, tmp_path / "c", n_rounds=1, estimator=forest) == expected


def test_estimators_with_parameters_that_are_nan_resume(data, tmp_path):
    model = make_pipeline(SimpleImputer(), RandomForestClassifier(4))
    assert run(data, tmp_path / "c", estimator=model) == run(data, tmp_path / "c", estimator=model)


def test_checkpoint_of_another_function_is_refused(data, tmp_path):
    run(data, tmp_path / "c", scoring=lambda model, X, y: 0.5)
    run(data, tmp_path / "c", scoring=lambda model, X, y: 0.5)
    for other in (lambda model, X, y: 0.7, lambda model, X, y, least=0.5: least):
        with pytest.raises(CheckpointError, match=r"scoring\.\w+ is .* there and"):
            run(data, tmp_path / "c", scoring=other)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('{"picks": 3}', "line .* should hold 'picks' and holds 'picks'"),
        ("[1]", r"line .* should hold 'picks' and holds \[1\]"),
        ('{"picks": {"positions": [999], "query_seconds": 0}}', r"\[999\], are not all among"),
        ('{"picks": {"positions": [0, 0], "query_seconds": 0}}', "are not all among"),
        ('{"picks": {"positions": "ab", "query_seconds": 0}}', "are not all among"),
        ("[" * 100_000, "is damaged: line"),
    ],
)
def test_damaged_records_are_refused(data, tmp_path, line, words):
    run(data, tmp_path / "c", n_rounds=1)
    content = (tmp_path / "c").read_text()
    (tmp_path / "c").write_text(f"{content}{line}\n\n\n")
    if not line.startswith("[["):
        (tmp_path / "c").write_text(f"{content}{line}\n")
    with pytest.raises(CheckpointError, match=words):
        run(data, tmp_path / "c", n_rounds=2)


def test_row_chosen_twice_is_refused(data, tmp_path):
    first = run(data, tmp_path / "c", n_rounds=1).positions[0]
    with (tmp_path / "c").open("a") as file:
        file.write(f'{{"picks": {{"positions": [{first}], "query_seconds": 0}}}}\n')
    with pytest.raises(CheckpointError, match="are not all among those without a label"):
        run(data, tmp_path / "c", n_rounds=2)


def test_device_is_no_checkpoint(data):
    with pytest.raises(
        CheckpointError, match=r"checkpoint must be a path of a file. Got /dev/full"
    ):
        run(data, "/dev/full")


@pytest.mark.parametrize("content", [b"precious", b'{"a": 1}\n', b"\x89PNG\n"])
def test_file_of_another_kind_is_left_alone(data, tmp_path, content):
    (tmp_path / "c").write_bytes(content)
    with pytest.raises(CheckpointError, match=r"c, which is a file of another kind"):
        run(data, tmp_path / "c")
    with pytest.raises(CheckpointError, match=r"c, which is a file of another kind"):
        read_checkpoint(tmp_path / "c")
    assert (tmp_path / "c").read_bytes() == content


def test_damage_before_the_last_line_is_named(data, tmp_path):
    run(data, tmp_path / "c")
    lines = (tmp_path / "c").read_text().splitlines(keepends=True)
    lines[3] = lines[3][:10] + "\n"
    (tmp_path / "c").write_text("".join(lines))
    with pytest.raises(CheckpointError, match=r"c is damaged: line 4 is not JSON"):
        run(data, tmp_path / "c")


def test_lines_of_two_runs_are_refused(data, tmp_path):
    run(data, tmp_path / "c")
    lines = (tmp_path / "c").read_text().splitlines(keepends=True)
    del lines[2]
    (tmp_path / "c").write_text("".join(lines))
    with pytest.raises(CheckpointError, match=r"holds the label of row \d+ where that of row \d+"):
        run(data, tmp_path / "c")
    del lines[2:7]
    (tmp_path / "c").write_text("".join(lines))
    with pytest.raises(CheckpointError, match="line 3 should hold 'label' and holds 'round'"):
        run(data, tmp_path / "c")


def test_checkpoint_in_use_is_refused(data, tmp_path):
    def again(state):
        run(data, tmp_path / "c")

    with pytest.raises(CheckpointError, match="is in use by another simulation"):
        run(data, tmp_path / "c", callbacks=again)


def test_checkpoint_in_no_folder_is_refused(data, tmp_path):
    with pytest.raises(CheckpointError, match=r"in a folder that exists. Got .*: No such file"):
        run(data, tmp_path / "nowhere" / "c")
    with pytest.raises(CheckpointError, match=r"in a folder that exists. Got .*: Is a directory"):
        run(data, tmp_path)
    with pytest.raises(CheckpointError, match="No checkpoint at"):
        read_checkpoint(tmp_path / "c")


def test_answers_before_an_error_are_in_the_checkpoint(data, tmp_path):
    asked = []

    def oracle(position):
        asked.append(position)
        if len(asked) == 9:
            raise ConnectionError("the labeler has gone")
        return int(data["y"][position])

    with pytest.raises(ConnectionError, match="gone") as caught:
        run(data | {"y": None}, tmp_path / "c", oracle=oracle)
    assert any("8 labels were bought before" in note for note in caught.value.__notes__)
    partial = caught.value.result
    assert partial.positions.tolist() == asked[:8]
    assert len(partial.pending) == 2
    assert read_checkpoint(tmp_path / "c") == partial
    result = run(data | {"y": None}, tmp_path / "c", oracle=oracle)
    assert result == run(data | {"y": None}, None, oracle=lambda row: int(data["y"][row]))
    asked.remove(asked[8])  # only the one without an answer was asked for again
    assert asked == result.positions.tolist()


def test_interrupt_keeps_the_answers_without_a_checkpoint(data):
    def oracle(position):
        if len(done) == 4:
            raise KeyboardInterrupt
        done.append(position)
        return 1

    done = []
    with pytest.raises(KeyboardInterrupt) as caught:
        run(data | {"y": None}, None, oracle=oracle)
    assert caught.value.result.positions.tolist() == done
    assert caught.value.result.labels.tolist() == [1] * 4
