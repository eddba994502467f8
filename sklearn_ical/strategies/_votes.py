"""Label samples as certain votes, so that what reads class probabilities reads them too."""

from typing import Any

from sklearn_ical import _array
from sklearn_ical._array import Array
from sklearn_ical.samples import PredictionSamples


def outputs(samples: PredictionSamples) -> Array:
    """Return real predictions and probabilities as they are, label samples as one-hot votes.

    Votes are float32 (n_points, n_draws, n_columns). Where there are more classes than draws, each
    class of a row stands in the column of the first draw that votes for it.
    """
    if samples.kind != "label":
        return samples.values
    labels = samples.values
    xp, device = _array.namespace(labels), _array.device(labels)
    labels = xp.astype(labels, xp.int64)
    n_codes: Any = samples.n_classes
    if n_codes > samples.n_draws:
        same = labels[:, :, None] == labels[:, None, :]
        labels = xp.argmax(xp.astype(same, xp.uint8), axis=2)
        n_codes = samples.n_draws
    codes = xp.arange(n_codes, dtype=xp.int64, device=device)
    return xp.astype(labels[:, :, None] == codes, xp.float32)
