"""Every strategy and setting on a few of the problems of the sweep."""

import pytest

from tests.record.settings import Setting
from tests.sweep.run import try_setting
from tests.sweep.settings import sweep_settings

N_PROBLEMS = 20


@pytest.mark.parametrize("setting", sweep_settings(), ids=lambda setting: setting.name)
def test_properties_hold(setting: Setting) -> None:
    pytest.importorskip("torch")
    tally = try_setting(setting, range(N_PROBLEMS), in_turn=True)
    assert tally.n_problems == N_PROBLEMS
    assert not tally.mismatches, "\n".join(tally.mismatches)
