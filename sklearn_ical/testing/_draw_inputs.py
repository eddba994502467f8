"""Checks of the inputs of draws: containers of rows, and that arguments are never changed."""

from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from sklearn_ical._validation import n_rows, sliceable, take_rows
from sklearn_ical.samplers._base import evaluate_in_chunks
from sklearn_ical.samples import concatenate
from sklearn_ical.testing._answers import close, fingerprint, require_same_answers, tolerance
from sklearn_ical.testing._draws import require_valid_samples
from sklearn_ical.testing._inputs import frames
from sklearn_ical.testing._require import recorded, require
from sklearn_ical.testing._sampler_case import SamplerCase, own_prediction

ROWS_OF_CHUNK = 17


def check_given_unchanged(case: SamplerCase) -> None:
    """Check that drawing and evaluating leave the model, the sampler and all rows unchanged."""
    sampler = fingerprint(case.sampler)
    case.sampler.draw(case.few, random_state=0)(case.X)
    after = {name: fingerprint(value) for name, value in case.given.items()}
    changed = [name for name, value in after.items() if value != case.before[name]]
    require(
        not changed,
        f"Expected unchanged arguments. Got changes in {changed}. The caller may still use them.",
    )
    require(
        fingerprint(case.sampler) == sampler,
        f"Expected {type(case.sampler).__name__} to be unchanged. Got a changed one after draw. A "
        "call that changes the sampler changes later results.",
    )


def check_labeled_rows(case: SamplerCase) -> None:
    """Check that `with_labeled` returns a sampler of the labeled rows, and changes nothing."""
    X_labeled, y_labeled = case.given["X_labeled"], case.given["y_labeled"]
    if X_labeled is None:
        return
    before = fingerprint(case.bare)
    order = np.arange(n_rows(X_labeled))[::-1]
    case.bare.with_labeled(take_rows(sliceable(X_labeled), order), np.asarray(y_labeled)[order])
    require(
        fingerprint(case.bare) == before,
        f"Expected {type(case.bare).__name__} to be unchanged. Got a changed one after "
        "with_labeled. The next query has other labeled rows.",
    )
    again = case.bare.with_labeled(X_labeled, y_labeled).draw(case.few, random_state=0)
    why = "Draws depend only on the labeled rows and the random state."
    require_same_answers(again(case.X), case.few_samples, "from the same labeled rows", why)


def check_row_containers(case: SamplerCase) -> None:
    """Check that containers that the model accepts are accepted, with the same predictions."""
    usual = _own(case, case.X)
    for name, X in containers(case).items():
        dense = name == "the given container"
        accepted = _own(case, X)
        if accepted is None:
            continue
        own, warned = accepted
        samples, more = recorded(partial(case.draws, X))
        what = f"for rows in {name}, which the model accepts"
        require_valid_samples(samples, case, what)
        require(
            bool(warned) or not more,
            f"Expected no warning {what} without one. Got {more}. Users treat warnings as errors.",
        )
        alike = own is None or (usual is not None and close(own, usual[0], tolerance(own)))
        if dense or name.endswith("NaN") or not alike:
            continue
        rtol = tolerance(X) if isinstance(X, np.ndarray) else None
        why = "The container is not information about a row."
        require_same_answers(samples, case.samples, what, why, rtol=rtol)
        if not case.draws.joint:
            parts = list(evaluate_in_chunks(case.draws, X, ROWS_OF_CHUNK))
            what = f"in chunks {what}"
            require_same_answers(concatenate(parts), case.samples, what, why, rtol=rtol)


def _own(case: SamplerCase, X: Any) -> tuple[Any, list[type[Warning]]] | None:
    """Return the model's own prediction and its warnings, or None if it rejects the rows."""
    if case.model is None:
        return None, []
    try:
        return recorded(partial(own_prediction, case.model, X))
    except Exception:  # any error of models for rows that they do not accept
        return None


def containers(case: SamplerCase) -> dict[str, Any]:
    """Return the rows in other containers: in all of them if a model decides what it accepts."""
    X = case.X
    forms = {"the given container": X}
    if not isinstance(X, np.ndarray) or X.ndim != 2 or X.dtype.kind not in "fiub":
        return forms
    read_only = X.copy()
    read_only.flags.writeable = False
    forms |= {"a list": X.tolist(), "a read-only array": read_only}
    if case.model is None or not hasattr(case.model, "predict"):
        return forms
    forms["an array in Fortran order"] = np.asfortranarray(X)
    forms["an array of float32"] = X.astype(np.float32)
    for form in (sparse.csr_matrix, sparse.csr_array, sparse.csc_array, sparse.coo_array):
        forms[f"a {form.__name__}"] = form(X)
    names = getattr(case.model, "feature_names_in_", [f"x{i}" for i in range(X.shape[1])])
    forms |= {name: convert(X) for name, convert in frames(list(names)).items()}
    gaps = X.astype(np.float64)
    gaps[::3, 0] = np.nan
    return forms | {"an array with NaN": gaps}
