"""Tests of `compare_strategies`: pairing, workers, failures, checkpoints."""

import warnings

import joblib
import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier

from sklearn_ical import (
    BALDQuery,
    ICALQuery,
    MarginQuery,
    RandomQuery,
    compare_strategies,
    simulate,
)
from sklearn_ical.exceptions import CheckpointError, QueryWarning, RunFailedWarning
from sklearn_ical.simulation import StablePredictions, TargetScore


class FailsOnce(RandomQuery):
    """Fails in the second round of one seed."""

    def query(self, model, X_pool, batch_size=1, **options):
        if len(X_pool) == 51 and model.random_state % 2 == 0:
            raise FloatingPointError("bad luck")
        return super().query(model, X_pool, batch_size, **options)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    y = np.array(["a", "b", "c"])[rng.integers(3, size=90)]
    X = rng.normal(size=(90, 4)) + (y == "a")[:, None] - 2 * (y == "c")[:, None]
    return {"X": X[:60], "y": y[:60], "X_test": X[60:], "y_test": y[60:]}


SIZES = {"n_initial": 6, "batch_size": 3, "n_rounds": 2}


def run(data, strategies, **settings):
    return compare_strategies(
        RandomForestClassifier(5), strategies=strategies, **(data | SIZES | {"seeds": 2} | settings)
    )


def test_runs_are_those_of_simulate_for_any_number_of_workers(data):
    strategies = {"ical": ICALQuery(n_reference=20), "random": RandomQuery(random_state=3)}
    ended = []
    one, two = (
        run(data, strategies, seeds=[5, 2], n_jobs=n_jobs, callback=lambda *r: ended.append(r))
        for n_jobs in (1, 2)
    )
    assert one == two
    assert list(one.results) == ["ical", "random"]
    for name, strategy in strategies.items():
        assert list(one.results[name]) == [5, 2]
        for seed in (5, 2):
            alone = simulate(
                RandomForestClassifier(5), strategy=strategy, random_state=seed, **data, **SIZES
            )
            assert one.results[name][seed] == alone
    pairs = [(name, seed) for seed in (5, 2) for name in strategies]
    assert ended[:4] == pairs
    assert sorted(ended[4:]) == sorted(pairs)


def test_runs_of_one_seed_are_paired(data):
    results = run(data, [RandomQuery(), MarginQuery(), BALDQuery()]).results
    assert list(results) == ["RandomQuery", "MarginQuery", "BALDQuery"]
    for seed in (0, 1):
        firsts = [of_seed[seed].rounds[0] for of_seed in results.values()]
        assert firsts[0] == firsts[1] == firsts[2]
    assert results["RandomQuery"][0].rounds[0] != results["RandomQuery"][1].rounds[0]


def test_options_reach_every_run(data):
    cost = np.linspace(1, 2, 60)
    comparison = run(
        data, [MarginQuery(), RandomQuery()], cost=cost, budget=25, n_rounds=30, initial="random",
        scoring=["accuracy", "f1_macro"], stopping=[StablePredictions(), TargetScore(0.99)],
    )  # fmt: skip
    assert comparison.metrics == ("accuracy", "f1_macro")
    for of_seed in comparison.results.values():
        for result in of_seed.values():
            assert result.cost[-1] == pytest.approx(cost[result.positions].sum())
            assert result.cost[-1] <= 25
            assert "StablePredictions" in result.measures
    by_cv = run(data | {"X_test": None, "y_test": None}, [RandomQuery()], cv=2, seeds=[4])
    assert by_cv.results["RandomQuery"][4].scores["score"].shape == (3,)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_one_failing_run_is_reported_without_losing_the_others(data, n_jobs):
    with pytest.warns(RunFailedWarning, match=r"of 8 runs failed .* FloatingPointError: bad luck"):
        comparison = run(data, [MarginQuery(), FailsOnce()], seeds=4, n_jobs=n_jobs)
    failed = [failure.seed for failure in comparison.failures]
    assert 0 < len(failed) < 4
    assert list(comparison.results["MarginQuery"]) == [0, 1, 2, 3]
    assert list(comparison.results["FailsOnce"]) == [s for s in range(4) if s not in failed]
    failure = comparison.failures[0]
    assert failure.strategy == "FailsOnce"
    assert failure.error == "FloatingPointError: bad luck"
    assert "in query" in failure.traceback
    assert len(failure.result.rounds) == 2
    (_, other) = comparison.summarize()
    assert other.n_runs == 4 - len(failed)
    assert f"failed: FailsOnce, seed {failed[0]}: FloatingPointError: bad luck" in str(comparison)


def test_when_all_runs_fail_the_first_error_is_shown(data):
    class Fails(RandomQuery):
        def query(self, *arguments, **options):
            raise FloatingPointError("always")

    with pytest.raises(ValueError, match=r"(?s)All 2 runs failed. The first, Fails .*always"):
        run(data, [Fails()])


def test_budget_that_does_not_cover_the_start_is_refused_before_any_work(data, tmp_path):
    with pytest.raises(ValueError, match="budget must cover the 6 initial labels, which cost 24"):
        run(data, [RandomQuery()], cost=np.full(60, 4.0), budget=20, checkpoint=tmp_path / "runs")
    assert not (tmp_path / "runs").exists()


def test_checkpoints_are_resumed_and_refused(data, tmp_path):
    folder = tmp_path / "new" / "runs"
    strategies = {"a/b": MarginQuery(), "random": RandomQuery()}
    expected = run(data, strategies, checkpoint=folder)
    names = [f"{name}-seed{seed}.jsonl" for name in ("a_b", "random") for seed in (0, 1)]
    assert sorted(path.name for path in folder.iterdir()) == names
    whole = (folder / names[0]).read_bytes()
    (folder / names[0]).write_bytes(whole[: 3 * len(whole) // 4])
    (folder / names[3]).unlink()
    assert run(data, strategies, checkpoint=folder, n_jobs=2) == expected
    longer = run(data, strategies, checkpoint=folder, n_rounds=4)
    assert longer == run(data, strategies, n_rounds=4)
    with pytest.raises(CheckpointError, match="batch_size is 3 there and 4 here"):
        run(data, strategies, checkpoint=folder, batch_size=4)
    (tmp_path / "file").write_text("precious")
    with pytest.raises(CheckpointError, match="checkpoint must be a folder of its own"):
        run(data, strategies, checkpoint=tmp_path / "file")
    with pytest.raises(ValueError, match="names that differ in letters or digits"):
        run(data, {"a/b": MarginQuery(), "a b": RandomQuery()}, checkpoint=folder)


class Warns(RandomQuery):
    def query(self, *arguments, **options):
        warnings.warn("look at this", QueryWarning, stacklevel=1)
        return super().query(*arguments, **options)


def test_warnings_of_workers_are_heard_once(data):
    with pytest.warns(QueryWarning, match="look at this") as caught:
        run(data, [Warns()], n_jobs=2)
    assert len(caught) == 1
    assert caught[0].filename == __file__


def test_a_parallel_config_chooses_the_workers(data):
    expected = run(data, [MarginQuery()])
    with joblib.parallel_config(backend="threading", n_jobs=2):
        assert run(data, [MarginQuery()]) == expected


def test_progress_is_shown_only_if_asked_for(data, capfd):
    pytest.importorskip("rich")
    run(data, [MarginQuery()])
    assert capfd.readouterr() == ("", "")
    run(data, [MarginQuery()], verbose=1)
    out, err = capfd.readouterr()
    assert out == ""
    assert "MarginQuery" in err
    assert "2/2" in err


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"strategies": 3}, TypeError, "strategies must be a dict or a list of strategies. Got 3"),
        ({"strategies": []}, ValueError, "strategies must hold at least one. Got none"),
        ({"strategies": [RandomQuery()] * 2}, ValueError, "must be a dict of names if a class"),
        ({"strategies": [RandomQuery]}, TypeError, "must be an object, not a class"),
        ({"seeds": 0}, ValueError, "seeds must be an integer >= 1. Got 0 in compare_strategies"),
        ({"seeds": [1, 1]}, ValueError, r"seeds must be distinct integers >= 0. Got \[1, 1\]"),
        ({"seeds": []}, ValueError, r"seeds must be distinct integers >= 0. Got \[\]"),
        ({"seeds": [0.5]}, TypeError, "Each of seeds must be an integer >= 0. Got 0.5"),
        ({"seeds": [-1]}, ValueError, "Each of seeds must be an integer >= 0. Got -1"),
        ({"batch_size": 0}, ValueError, "batch_size must be .* Got 0 in compare_strategies"),
        ({"X_test": None, "y_test": None}, ValueError, "needs rows to score on. Got neither"),
        ({"y": None}, ValueError, "y must hold the labels of X"),
    ],
)
def test_bad_arguments_are_refused_before_any_work(data, tmp_path, settings, error, words):
    folder = tmp_path / "runs"
    with pytest.raises(error, match=words):
        run(data, **({"strategies": [RandomQuery()], "checkpoint": folder} | settings))
    assert not folder.exists()
