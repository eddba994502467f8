"""Where all randomness comes from: root seeds, named streams and uniforms keyed by row position."""

import copy
import numbers
from typing import Any

import numpy as np
from sklearn.base import clone

# One fixed spawn key per use, so that adding a use never shifts the numbers of another.
DRAWS, LABELS, REFERENCE, CONFIGURATIONS, REFERENCE_LABELS, STRATEGY = range(6)


def root_seed(random_state: Any, caller: str) -> int:
    """Turn a scikit-learn style `random_state` into the one root seed of a call.

    An int is used as it is; a RandomState or Generator gives one draw, so that two calls differ;
    None is fresh entropy.
    """
    if random_state is None:
        return int(np.random.SeedSequence().entropy)  # type: ignore[arg-type]
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(np.iinfo(np.int32).max))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(np.iinfo(np.int64).max))
    if isinstance(random_state, numbers.Integral) and not isinstance(random_state, bool | np.bool_):
        if random_state < 0:
            raise ValueError(
                f"The 'random_state' parameter of {caller} must be >= 0 when it is an integer. "
                f"Got {random_state!r} instead."
            )
        return int(random_state)
    raise TypeError(
        f"The 'random_state' parameter of {caller} must be None, an integer >= 0, a "
        f"numpy.random.RandomState or a numpy.random.Generator. Got {random_state!r} instead."
    )


def unfitted_clone(estimator: Any) -> Any:
    """Return an unfitted clone, also of a model that copies its parameters, as CatBoost does.

    scikit-learn's `clone` raises for these.
    """
    try:
        return clone(estimator)
    except RuntimeError:
        return type(estimator)(**copy.deepcopy(estimator.get_params(deep=False)))


def seeded(estimator: Any, random_state: Any) -> Any:
    """Return an unfitted clone with every `random_state` set, also of nested estimators."""
    names = [
        name
        for name in estimator.get_params()
        if name == "random_state" or name.endswith("__random_state")
    ]
    return unfitted_clone(estimator).set_params(**dict.fromkeys(names, random_state))


def stream(root: int, key: int) -> np.random.SeedSequence:
    """Return the seed sequence of one named use of the root."""
    return np.random.SeedSequence(root, spawn_key=(key,))


def stream_generator(root: int, key: int) -> np.random.Generator:
    """Return a fresh generator on one named stream."""
    return np.random.Generator(np.random.PCG64(stream(root, key)))


def stream_seed(root: int, key: int) -> int:
    """Return one integer of a named stream, for samplers that take an int `random_state`."""
    return int(stream(root, key).generate_state(1)[0])


def row_uniforms(seed: np.random.SeedSequence, positions: np.ndarray, n_columns: int) -> np.ndarray:
    """Return float64 uniforms in [0, 1), (n_positions, n_columns), keyed by row position.

    Entry (i, k) is element ``positions[i] * n_columns + k`` of the stream ``PCG64(seed)``, so the
    number a row gets depends on its position alone: not on chunks, other rows or workers.
    """
    bits = np.random.PCG64(seed)
    start_state = bits.state
    generator = np.random.Generator(bits)
    out = np.empty((len(positions), n_columns))
    # Runs of consecutive positions are read from the stream at once.
    edges = np.flatnonzero(np.diff(positions) != 1) + 1
    for first, last in zip(
        np.concatenate([[0], edges]), np.concatenate([edges, [len(positions)]]), strict=True
    ):
        if first < last:
            bits.state = start_state
            bits.advance(int(positions[first]) * n_columns)
            generator.random(out=out[first:last])
    return out


def row_exponentials(seed: np.random.SeedSequence, positions: np.ndarray) -> np.ndarray:
    """Return float64 exponential numbers, > 0 and finite, (n_positions,), keyed by row position."""
    return -np.log1p(-np.maximum(row_uniforms(seed, positions, 1)[:, 0], 2.0**-54))
