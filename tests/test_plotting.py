"""Tests of the displays: what is drawn, where, and what is imported for it."""

import subprocess
import sys

import numpy as np
import pytest

from sklearn_ical.plotting import LearningCurvesDisplay
from sklearn_ical.simulation import ComparisonResult, Round, SimulationResult


def run(*accuracies, costs=None):
    rounds = tuple(
        Round((), (), (), 10 * (i + 1), cost, {"accuracy": accuracy, "loss": 2 - accuracy})
        for i, (accuracy, cost) in enumerate(
            zip(accuracies, costs or (10.0, 20.0, 30.0), strict=True)
        )
    )
    return SimulationResult(rounds, "", 0)


@pytest.fixture
def curves():
    return ComparisonResult(
        {
            "a": {0: run(0.1, 0.5, 0.8), 1: run(0.3, 0.5, 0.9)},
            "b": {0: run(0.2, 0.3, 0.4), 1: run(0.2, 0.3, 0.6)},
        }
    )


@pytest.fixture
def ax():
    figure = pytest.importorskip("matplotlib.figure").Figure()
    return figure.subplots()


@pytest.mark.parametrize(
    ("metric", "means"),
    [
        ("accuracy", ([0.2, 0.5, 0.85], [0.2, 0.3, 0.5])),
        ("loss", ([1.8, 1.5, 1.15], [1.8, 1.7, 1.5])),
    ],
)
def test_display_draws_means_and_bands(curves, ax, metric, means):
    display = LearningCurvesDisplay.from_results(curves, metric=metric, ax=ax)
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    errors = ([0.1, 0.0, 0.05], [0.0, 0.0, 0.1])  # half the distance of two values
    for line, band, mean, error in zip(ax.lines, ax.collections, means, errors, strict=True):
        np.testing.assert_array_equal(line.get_xdata(), [10, 20, 30])
        np.testing.assert_allclose(line.get_ydata(), mean)
        corners = band.get_paths()[0].vertices
        for x, m, e in zip((10, 20, 30), mean, error, strict=True):
            heights = corners[corners[:, 0] == x, 1]
            assert heights.min() == pytest.approx(m - e)
            assert heights.max() == pytest.approx(m + e)


def test_display_names_axes_and_curves(curves, ax):
    LearningCurvesDisplay.from_results(curves, metric="loss", ax=ax)
    assert ax.get_xlabel() == "labels bought"
    assert ax.get_ylabel() == "loss"
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["a", "b"]


def test_display_one_seed_has_no_band(curves, ax):
    one_seed = {name: {0: of_seed[0]} for name, of_seed in curves.results.items()}
    LearningCurvesDisplay.from_results(ComparisonResult(one_seed), ax=ax)
    assert len(ax.lines) == 2
    assert len(ax.collections) == 0


def test_display_draws_runs_of_unlike_lengths_where_they_are(ax):
    short, long = run(0.1, 0.3, costs=(10.0, 20.0)), run(0.2, 0.6, 0.8, costs=(10.0, 15.0, 25.0))
    display = LearningCurvesDisplay.from_results(
        ComparisonResult({"a": {0: short, 1: long}}), ax=ax
    )
    np.testing.assert_array_equal(display.cost, [10, 15, 20, 25])
    np.testing.assert_allclose(ax.lines[0].get_ydata(), [0.15, 0.4, 0.5, 0.8])
    assert ax.get_xlabel() == "cost of the labels"


def test_display_leaves_out_a_strategy_that_failed(curves, ax):
    results = curves.results | {"c": {}}
    LearningCurvesDisplay.from_results(ComparisonResult(results), ax=ax)
    assert len(ax.lines) == 2


def test_display_draws_one_simulation(ax):
    LearningCurvesDisplay.from_results(run(0.1, 0.5, 0.8), ax=ax)
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), [0.1, 0.5, 0.8])
    assert len(ax.collections) == 0


def test_display_tells_seven_strategies_apart(curves, ax):
    many = {str(i): curves.results["a"] for i in range(7)}
    LearningCurvesDisplay.from_results(ComparisonResult(many), ax=ax)
    assert len({line.get_color() for line in ax.lines}) == 7
    assert len({line.get_marker() for line in ax.lines}) == 7


def test_display_draws_again_elsewhere(curves, ax):
    display = LearningCurvesDisplay.from_results(curves, ax=ax)
    other = type(ax.figure)().subplots()
    assert display.plot(other) is display
    assert display.ax_ is other
    assert len(other.lines) == len(ax.lines) == 2


def test_display_refuses_unknown_metric(curves):
    with pytest.raises(ValueError, match=r"one of \('accuracy', 'loss'\). Got 'nll'"):
        LearningCurvesDisplay.from_results(curves, metric="nll")


def test_display_makes_its_own_figure_without_a_screen(curves):
    pytest.importorskip("matplotlib")
    code = (
        "import sys\n"
        "import numpy as np\n"
        "from sklearn_ical.plotting import LearningCurvesDisplay\n"
        "assert 'matplotlib' not in sys.modules\n"
        "display = LearningCurvesDisplay(\n"
        "    cost=np.arange(2), scores={'a': np.ones((2, 2))}, metric='loss')\n"
        "from matplotlib.figure import Figure\n"
        "display.plot(Figure().subplots())\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
        "display.plot()\n"
        "display.figure_.savefig(sys.stdout.buffer, format='png')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=120)
    assert done.stderr == b""
    assert done.stdout.startswith(b"\x89PNG")
