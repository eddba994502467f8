"""Tests of the summary of a comparison against numbers by hand."""

import math

import pytest

from sklearn_ical.simulation import ComparisonResult, Failure, Round, SimulationResult


def made_up(scores, losses, costs=(10.0, 20.0, 40.0)):
    return SimulationResult(
        tuple(
            Round((), (), (), 10 * (i + 1), cost, {"accuracy": score, "loss": loss})
            for i, (score, loss, cost) in enumerate(zip(scores, losses, costs, strict=True))
        ),
        "",
        0,
    )


@pytest.fixture
def comparison():
    return ComparisonResult(
        {
            "new": {
                0: made_up((0.5, 0.7, 0.9), (-2.0, -1.0, -0.5)),
                1: made_up((0.5, 0.6, 1.0), (-2.0, -2.0, -2.0)),
            },
            "old": {
                0: made_up((0.5, 0.5, 0.5), (-2.0, -2.0, -2.0)),
                1: made_up((0.5, 0.7, 0.7), (-1.0, -1.0, -1.0)),
            },
        }
    )


def test_summarize_matches_numbers_by_hand(comparison):
    summaries = {(s.metric, s.strategy): s for s in comparison.summarize("old")}
    assert list(summaries) == [
        ("accuracy", "new"),
        ("accuracy", "old"),
        ("loss", "new"),
        ("loss", "old"),
    ]
    # Two seeds: the standard error is half the distance of the two values.
    new = summaries["accuracy", "new"]
    areas = (0.6 * 10 + 0.8 * 20) / 30, (0.55 * 10 + 0.8 * 20) / 30
    assert (new.final.mean, new.final.error) == pytest.approx((0.95, 0.05))
    assert new.area.mean == pytest.approx(sum(areas) / 2)
    assert new.area.error == pytest.approx((areas[0] - areas[1]) / 2)
    differences = areas[0] - 0.5, areas[1] - (0.6 * 10 + 0.7 * 20) / 30
    assert new.difference.mean == pytest.approx(sum(differences) / 2)
    assert new.difference.error == pytest.approx((differences[0] - differences[1]) / 2)
    assert (new.wins, new.ties, new.losses, new.n_runs) == (2, 0, 0, 2)
    loss = summaries["loss", "new"]
    assert loss.difference.mean == pytest.approx((-(1.5 * 10 + 0.75 * 20) / 30 + 2 - 1) / 2)
    assert (loss.wins, loss.ties, loss.losses) == (1, 0, 1)
    assert summaries["loss", "old"].difference is None


def test_summarize_takes_the_first_strategy_as_baseline(comparison):
    assert [s.difference is None for s in comparison.summarize()] == [True, False, True, False]
    with pytest.raises(ValueError, match=r"baseline must be one of 'new', 'old'. Got 'absent'"):
        comparison.summarize("absent")


def test_summarize_one_seed_has_no_error(comparison):
    one = ComparisonResult({name: {0: of[0]} for name, of in comparison.results.items()})
    new = one.summarize("old")[0]
    assert new.final.mean == 0.9
    assert all(math.isnan(e.error) for e in (new.final, new.area, new.difference))


def test_areas_are_over_the_range_that_all_runs_of_a_seed_cover():
    ones = (1.0, 1.0, 1.0)
    comparison = ComparisonResult(
        {
            "long": {0: made_up((0.0, 0.5, 1.0), ones, costs=(10.0, 20.0, 30.0))},
            "short": {0: made_up((0.5, 0.5, 0.5), ones, costs=(10.0, 12.0, 25.0))},
        }
    )
    long, short = comparison.summarize()[:2]
    # From 10 to 25 the first curve is 0 at 10, 0.5 at 20 and 0.75 at 25.
    assert long.area.mean == pytest.approx((0.25 * 10 + 0.625 * 5) / 15)
    assert short.area.mean == pytest.approx(0.5)
    assert long.final.mean == 1.0


def test_a_single_round_is_its_own_area():
    run = made_up((0.4,), (1.0,), costs=(10.0,))
    assert ComparisonResult({"a": {0: run}}).summarize()[0].area.mean == 0.4


def test_a_strategy_whose_runs_all_failed_is_empty(comparison):
    failure = Failure("bad", 0, "ValueError: no", "", made_up((), (), ()))
    both = ComparisonResult(comparison.results | {"bad": {}}, (failure,))
    bad = both.summarize("old")[2]
    assert (bad.strategy, bad.n_runs) == ("bad", 0)
    assert math.isnan(bad.final.mean)
    assert math.isnan(bad.difference.mean)


def test_differences_are_of_seeds_that_both_have(comparison):
    results = {"new": comparison.results["new"], "old": {1: comparison.results["old"][1]}}
    new = ComparisonResult(results).summarize("old")[0]
    assert new.n_runs == 2
    assert (new.wins, new.ties, new.losses) == (1, 0, 0)


def test_table_and_frame(comparison):
    pytest.importorskip("pandas")
    table = comparison.table("old")
    assert list(table) == [
        "metric", "strategy", "n_runs", "final", "final_error", "area", "area_error",
        "difference", "difference_error", "wins", "ties", "losses",
    ]  # fmt: skip
    assert table["final"].tolist() == pytest.approx([0.95, 0.6, -1.25, -1.5])
    assert math.isnan(table["difference"][1])
    frame = comparison.to_frame()
    assert len(frame) == 12
    assert frame[["strategy", "seed", "round"]].values.tolist()[:4] == [
        ["new", 0, 0],
        ["new", 0, 1],
        ["new", 0, 2],
        ["new", 1, 0],
    ]
    assert frame["accuracy"].tolist()[:3] == [0.5, 0.7, 0.9]


def test_printed_comparison_is_its_table(comparison):
    lines = str(comparison).splitlines()
    assert lines[0].split() == [
        "metric",
        "strategy",
        "runs",
        "final",
        "area",
        "difference",
        "w/t/l",
    ]
    assert lines[1].split()[:6] == ["accuracy", "new", "2", "0.9500", "±", "0.0500"]
    assert lines[2].split()[-1] == "0/0/2"
    assert len(lines) == 5
