"""Checks of what goes into draws: containers of rows, and that nothing given is ever changed."""

from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from sklearn_ical._validation import n_rows, sliceable, take_rows
from sklearn_ical.samplers import evaluate_in_chunks
from sklearn_ical.samples import concatenate
from sklearn_ical.testing._answers import close, demand_same_answers, fingerprint, tolerance
from sklearn_ical.testing._demand import demand, recorded
from sklearn_ical.testing._draws import demand_valid_samples
from sklearn_ical.testing._inputs import frames
from sklearn_ical.testing._sampler_case import SamplerCase, own_prediction

CHUNK = 7


def check_given_unchanged(case: SamplerCase) -> None:
    """The model, the sampler and all rows given are the same after drawing and evaluating."""
    sampler = fingerprint(case.sampler)
    case.sampler.draw(case.few, random_state=0)(case.X)
    after = {name: fingerprint(value) for name, value in case.given.items()}
    changed = [name for name, value in after.items() if value != case.before[name]]
    demand(
        not changed,
        f"Expected what is given to stay as it is. Got changes in {changed}. The caller goes on to "
        "use it.",
    )
    demand(
        fingerprint(case.sampler) == sampler,
        f"Expected {type(case.sampler).__name__} to stay as it is. Got a changed one after draw. A "
        "call that leaves traces changes the next answer.",
    )


def check_labeled_rows(case: SamplerCase) -> None:
    """`with_labeled` returns a sampler of the labeled rows and never changes its own."""
    X_labeled, y_labeled = case.given["X_labeled"], case.given["y_labeled"]
    if X_labeled is None:
        return
    before = fingerprint(case.bare)
    order = np.arange(n_rows(X_labeled))[::-1]
    case.bare.with_labeled(take_rows(sliceable(X_labeled), order), np.asarray(y_labeled)[order])
    demand(
        fingerprint(case.bare) == before,
        f"Expected {type(case.bare).__name__} to stay as it is. Got a changed one after "
        "with_labeled. The next query brings other labeled rows.",
    )
    again = case.bare.with_labeled(X_labeled, y_labeled).draw(case.few, random_state=0)
    why = "Draws are made of the labeled rows and the random state alone."
    demand_same_answers(again(case.X), case.few_samples, "from the same labeled rows", why)


def check_row_containers(case: SamplerCase) -> None:
    """Rows in each container that the model itself accepts are accepted, with the same answers."""
    for name, X in containers(case).items():
        dense = name == "the given container"
        accepted = _own(case, X)
        if accepted is None:
            continue
        own, warned = accepted
        samples, more = recorded(partial(case.draws, X))
        what = f"for rows in {name}, which the model accepts"
        demand_valid_samples(samples, case, what)
        demand(
            bool(warned) or not more,
            f"Expected no warning {what} without one. Got {more}. Users treat warnings as errors.",
        )
        usual = _own(case, case.X)
        alike = own is None or (usual is not None and close(own, usual[0], tolerance(own)))
        if dense or name.endswith("NaN") or not alike:
            continue
        rtol = tolerance(X) if isinstance(X, np.ndarray) else None
        why = "The container of a row says nothing about it."
        demand_same_answers(samples, case.samples, what, why, rtol=rtol)
        if not case.draws.joint:
            parts = list(evaluate_in_chunks(case.draws, X, CHUNK))
            what = f"in chunks {what}"
            demand_same_answers(concatenate(parts), case.samples, what, why, rtol=rtol)


def _own(case: SamplerCase, X: Any) -> tuple[Any, list[type[Warning]]] | None:
    """Return the model's own prediction and its warnings, or None where it refuses the rows."""
    if case.model is None:
        return None, []
    try:
        return recorded(partial(own_prediction, case.model, X))
    except Exception:  # whatever models raise for rows that they do not take
        return None


def containers(case: SamplerCase) -> dict[str, Any]:
    """Return the rows in other containers: all of them where the model can say what it takes."""
    X = case.X
    found = {"the given container": X}
    if not isinstance(X, np.ndarray) or X.ndim != 2 or X.dtype.kind not in "fiub":
        return found
    read_only = X.copy()
    read_only.flags.writeable = False
    found |= {"a list": X.tolist(), "a read-only array": read_only}
    if case.model is None or not hasattr(case.model, "predict"):
        return found
    found["an array in Fortran order"] = np.asfortranarray(X)
    found["an array of float32"] = X.astype(np.float32)
    for form in (sparse.csr_matrix, sparse.csr_array, sparse.csc_array, sparse.coo_array):
        found[f"a {form.__name__}"] = form(X)
    names = getattr(case.model, "feature_names_in_", [f"x{i}" for i in range(X.shape[1])])
    found |= {name: convert(X) for name, convert in frames(list(names)).items()}
    gaps = X.astype(np.float64)
    gaps[::3, 0] = np.nan
    return found | {"an array with NaN": gaps}
