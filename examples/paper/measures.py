"""What is measured after each round: scores on the test images, entropy of the pool; no files."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import entr

from sklearn_ical.simulation import Round, RoundState, StoppingRule

TINY = float(np.finfo(np.float32).tiny)  # in place of a probability of 0


def scores(model: Any, X: Any, y: np.ndarray) -> dict[str, float]:
    """Return accuracy and mean log-likelihood of the mean over draws, evaluated once for both."""
    proba = model.predict_proba(X)
    likelihood = np.maximum(proba[np.arange(len(y)), y], TINY)
    return {
        "accuracy": float(np.mean(proba.argmax(axis=1) == y)),
        "neg_log_loss": float(np.log(likelihood).mean()),
    }


@dataclass(frozen=True)
class PoolEntropy(StoppingRule):
    """Measures the mean predictive entropy of the unlabeled rows in nats, and never stops a run.

    A rule because what rules measure is kept in checkpoints.
    """

    def measure(self, state: RoundState) -> float:
        """Return the mean entropy, NaN where no row is left."""
        if not len(state.unlabeled):
            return float("nan")
        proba = state.model.predict_proba(state.X[state.unlabeled])
        return float(entr(proba).sum(axis=1).mean())

    def reason(self, rounds: Sequence[Round]) -> str | None:
        """Return None: there is no reason to stop."""
        return None
