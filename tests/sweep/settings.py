"""The settings of the sweep: those of the record, and some combinations of options."""

from tests.record.settings import COVERAGE, ICAL, MRMR, POINTWISE, Setting, all_settings


def sweep_settings() -> list[Setting]:
    """Return every setting of the record, and combinations of options that round differently."""
    unbiased = {"estimator": "unbiased", "less": "weights"}
    return [
        *all_settings(),
        ICAL.varied(include_self=False, prediction="expected"),
        ICAL.varied(include_self=False, prediction="expected", **unbiased),
        POINTWISE.varied(prediction="proba", **unbiased),
        POINTWISE.varied(prediction="proba", step_size=3, kernel="linear"),
        COVERAGE.varied(dependence="tau", objective="concave"),
        COVERAGE.varied(information_weight=1.0),
        MRMR.varied(redundancy_weight=0.3, prediction="argmax", **unbiased),
    ]
