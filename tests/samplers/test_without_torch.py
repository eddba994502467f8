"""What samplers of nets say where torch is not installed; tested whether it is or not."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    "call",
    [
        "MCDropoutSampler(object()).draw()",
        "DeepEnsembleSampler(['a.pt'], template=Net()).draw()",
        "get_sampler([Net(), 1]).draw()",
    ],
)
def test_samplers_of_nets_name_what_to_install(call: str) -> None:
    code = f"""
import sys

class NoTorch:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name="torch")

sys.meta_path.insert(0, NoTorch)
from sklearn_ical.samplers import DeepEnsembleSampler, MCDropoutSampler, get_sampler

class Net:  # as like a net as one can be without torch
    __module__ = "torch.nn"
    def named_parameters(self): ...

try:
    {call}
except ImportError as error:
    print(error)
"""
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    assert 'requires torch. Install it with "pip install sklearn-ical[torch]".' in result.stdout
