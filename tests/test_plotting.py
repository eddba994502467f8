"""Tests of the displays: what is drawn, where, and what is imported for it."""

import subprocess
import sys

import numpy as np
import pytest

from sklearn_ical.plotting import LearningCurvesDisplay
from sklearn_ical.simulation import Round


def curve(*accuracies):
    return tuple(
        Round(10 * (i + 1), (), accuracy, 2 - accuracy, 0.0, 0.0)
        for i, accuracy in enumerate(accuracies)
    )


@pytest.fixture
def curves():
    return {
        "a": {0: curve(0.1, 0.5, 0.8), 1: curve(0.3, 0.5, 0.9)},
        "b": {0: curve(0.2, 0.3, 0.4), 1: curve(0.2, 0.3, 0.6)},
    }


@pytest.fixture
def ax():
    figure = pytest.importorskip("matplotlib.figure").Figure()
    return figure.subplots()


@pytest.mark.parametrize(
    ("metric", "means"),
    [
        ("accuracy", ([0.2, 0.5, 0.85], [0.2, 0.3, 0.5])),
        ("nll", ([1.8, 1.5, 1.15], [1.8, 1.7, 1.5])),
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
    LearningCurvesDisplay.from_results(curves, metric="nll", ax=ax)
    assert ax.get_xlabel() == "labels bought"
    assert ax.get_ylabel() == "test NLL (nats)"
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["a", "b"]


def test_display_one_seed_has_no_band(curves, ax):
    one_seed = {name: {0: of_seed[0]} for name, of_seed in curves.items()}
    LearningCurvesDisplay.from_results(one_seed, ax=ax)
    assert len(ax.lines) == 2
    assert len(ax.collections) == 0


def test_display_tells_seven_strategies_apart(curves, ax):
    many = {str(i): curves["a"] for i in range(7)}
    LearningCurvesDisplay.from_results(many, ax=ax)
    assert len({line.get_color() for line in ax.lines}) == 7
    assert len({line.get_marker() for line in ax.lines}) == 7


def test_display_draws_again_elsewhere(curves, ax):
    display = LearningCurvesDisplay.from_results(curves, ax=ax)
    other = type(ax.figure)().subplots()
    assert display.plot(other) is display
    assert display.ax_ is other
    assert len(other.lines) == len(ax.lines) == 2


def test_display_refuses_unknown_metric(curves):
    with pytest.raises(ValueError, match=r"one of \('accuracy', 'nll'\). Got 'loss'"):
        LearningCurvesDisplay.from_results(curves, metric="loss")


def test_display_makes_its_own_figure_without_a_screen(curves):
    pytest.importorskip("matplotlib")
    code = (
        "import sys\n"
        "from sklearn_ical.plotting import LearningCurvesDisplay\n"
        "assert 'matplotlib' not in sys.modules\n"
        "display = LearningCurvesDisplay(\n"
        "    n_labeled=[1, 2], scores={'a': __import__('numpy').ones((2, 2))}, metric='nll')\n"
        "from matplotlib.figure import Figure\n"
        "display.plot(Figure().subplots())\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
        "display.plot()\n"
        "display.figure_.savefig(sys.stdout.buffer, format='png')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=120)
    assert done.stderr == b""
    assert done.stdout.startswith(b"\x89PNG")
