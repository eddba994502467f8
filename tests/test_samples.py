"""PredictionSamples as made: kinds, checks, repairs, layouts and immutability on every backend."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sklearn

from sklearn_ical import _array
from sklearn_ical.objectives.hsic._make_dependence import sample_labels
from sklearn_ical.samples import PredictionSamples, concatenate

Backend = Callable[[np.ndarray], Any]
SamePlace = Callable[[Any, Any], None]


def probabilities(n_points: int = 4, n_draws: int = 3, n_classes: int = 5) -> np.ndarray:
    """Random class probabilities, (n_points, n_draws, n_classes), with zeros among them."""
    values = np.random.default_rng(0).random((n_points, n_draws, n_classes)) ** 3
    values[..., 1] = 0
    return values / values.sum(axis=-1, keepdims=True)


def labels() -> np.ndarray:
    return np.array([[0, 2, 2], [1, 1, 1], [0, 1, 2], [2, 2, 0]])


def weights() -> np.ndarray:
    return np.array([0.5, 0.25, 0.25])


# Shapes and dtypes


def test_proba_has_lengths_and_classes(backend: Backend, same_place: SamePlace) -> None:
    x = backend(probabilities())
    samples = PredictionSamples(x, classes=list("abcde"))
    assert (samples.n_points, samples.n_draws, samples.n_classes) == (4, 3, 5)
    assert len(samples) == 4
    assert samples.kind == "proba"
    assert samples.classes.tolist() == list("abcde")
    same_place(samples.values, x)
    np.testing.assert_array_equal(_array.to_host(samples.values), probabilities())


def test_label_counts_classes_by_the_largest_code(backend: Backend, same_place: SamePlace) -> None:
    x = backend(labels())
    samples = PredictionSamples(x, kind="label")
    assert samples.n_classes == 3
    assert samples.values.dtype == x.dtype
    same_place(samples.values, x)
    assert PredictionSamples(x, kind="label", classes=[1, 2, 3, 4]).n_classes == 4


@pytest.mark.parametrize("shape", [(4, 3), (4, 3, 2)])
def test_value_takes_one_or_more_targets(
    backend: Backend, same_place: SamePlace, shape: tuple[int, ...]
) -> None:
    x = backend(np.random.default_rng(0).normal(size=shape))
    samples = PredictionSamples(x, kind="value")
    assert (samples.n_points, samples.n_draws, samples.n_classes) == (4, 3, None)
    same_place(samples.values, x)


@pytest.mark.parametrize(
    ("kind", "shape", "dtype"),
    [("proba", (0, 3, 2), float), ("label", (0, 3), int), ("value", (0, 3), float)],
)
def test_no_points_are_allowed(
    backend: Backend, kind: str, shape: tuple[int, ...], dtype: Any
) -> None:
    samples = PredictionSamples(backend(np.zeros(shape, dtype=dtype)), kind=kind)
    assert len(samples) == 0
    assert samples.mean().shape[0] == 0


def test_one_class_one_point_and_one_draw_are_allowed() -> None:
    samples = PredictionSamples(np.ones((1, 1, 1)))
    assert samples.mean().tolist() == [[1.0]]
    assert sample_labels(samples.values, np.array([[0.999]])).tolist() == [[0]]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.longdouble, ">f8", ">f4"])
def test_proba_of_any_floating_dtype_sums_to_one(dtype: Any) -> None:
    samples = PredictionSamples(probabilities().astype(dtype))
    wide = np.dtype(dtype).itemsize >= 8
    assert samples.values.dtype == (np.float64 if wide else np.float32)
    sums = samples.values.sum(axis=-1, dtype=np.float64)
    np.testing.assert_allclose(sums, 1, rtol=0, atol=1e-12 if wide else 1e-6)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_proba_in_half_precision_of_torch_is_renormalized(dtype: str) -> None:
    torch = pytest.importorskip("torch")
    thirds = torch.full((2, 3, 3), 1 / 3, dtype=getattr(torch, dtype))
    samples = PredictionSamples(thirds)
    assert samples.values.dtype == torch.float32
    np.testing.assert_allclose(_array.to_host(samples.values), 1 / 3, rtol=1e-6)


@pytest.mark.parametrize("dtype", [int, np.uint8, bool])
def test_hard_probabilities_become_float64(dtype: Any) -> None:
    samples = PredictionSamples(np.eye(3, dtype=dtype)[None])
    assert samples.values.dtype == np.float64
    np.testing.assert_array_equal(samples.values[0], np.eye(3))


def test_values_are_not_copied_without_need() -> None:
    for values, kind in (
        (probabilities(), "proba"),
        (labels(), "label"),
        (np.ones((2, 3)), "value"),
    ):
        assert np.shares_memory(PredictionSamples(values, kind).values, values)


# Probabilities that need repair


def test_rows_off_by_more_than_rounding_are_renormalized(
    backend: Backend, same_place: SamePlace
) -> None:
    values = probabilities()
    values[1, 2] *= 1.0009
    x = backend(values)
    samples = PredictionSamples(x)
    same_place(samples.values, x)
    got = _array.to_host(samples.values)
    np.testing.assert_allclose(got, probabilities(), rtol=1e-12)
    untouched = np.ones((4, 3), dtype=bool)
    untouched[1, 2] = False
    np.testing.assert_array_equal(got[untouched], values[untouched])


def test_tiny_negative_entries_are_clipped(backend: Backend) -> None:
    values = probabilities()
    values[0, 0, 1] = -9e-10
    x = backend(values)
    samples = PredictionSamples(x)
    got = _array.to_host(samples.values)
    assert got.min() == 0
    np.testing.assert_allclose(got.sum(axis=-1), 1, rtol=0, atol=1e-12)
    assert _array.to_host(x)[0, 0, 1] == -9e-10


def test_tiny_negative_entries_are_clipped_also_where_sums_fit() -> None:
    values = probabilities().astype(np.float32)
    values[0, 0, 1] = -9e-10
    got = PredictionSamples(values).values
    assert got.min() == 0
    np.testing.assert_array_equal(got, np.maximum(values, 0))


def test_repair_does_not_depend_on_chunks() -> None:
    values = probabilities(n_points=200) * np.random.default_rng(1).uniform(
        0.9992, 1.0008, (200, 3, 1)
    )
    values[17, 1, 1] = -1e-10
    whole = PredictionSamples(values).values
    with sklearn.config_context(working_memory=1e-3):
        assert _array.chunk_rows(8 * 3 * 5) < 10
        chunked = PredictionSamples(values).values
    np.testing.assert_array_equal(chunked, whole)
    rows = [PredictionSamples(values[i : i + 1]).values for i in range(200)]
    np.testing.assert_array_equal(np.concatenate(rows), whole)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (np.nan, r"Predictions must be finite\. Got NaN or infinity in row 3"),
        (np.inf, r"Predictions must be finite\. Got NaN or infinity in row 3"),
        (-1e-3, r"must be >= 0 and sum to 1 .* Got a minimum of -0\.001"),
        (0.9, r"a sum that differs from 1 by 0\.9.*a softmax to logits"),
    ],
)
def test_wrong_probabilities_raise(backend: Backend, entry: float, message: str) -> None:
    values = probabilities()
    values[3, 1, 1] = entry
    with pytest.raises(ValueError, match=message):
        PredictionSamples(backend(values))


def test_non_finite_row_is_named_whatever_the_chunk() -> None:
    values = np.ones((300, 2))
    values[271, 1] = -np.inf
    with (
        sklearn.config_context(working_memory=1e-4),
        pytest.raises(ValueError, match="infinity in row 271"),
    ):
        PredictionSamples(values, kind="value")


@pytest.mark.parametrize("off", [1.0011, 0.9989])
def test_sums_beyond_the_tolerance_raise(off: float) -> None:
    with pytest.raises(ValueError, match=r"differs from 1 by 0\.0011"):
        PredictionSamples(probabilities() * off)


# Refusals


@pytest.mark.parametrize(
    ("values", "kind", "error", "message"),
    [
        (probabilities(), "prob", ValueError, r"kind must be one of .*'proba'.*Got 'prob'"),
        (probabilities().tolist(), "proba", TypeError, "Got a list of 4 items.*multi-output"),
        ((np.ones((2, 2)),), "value", TypeError, "Got a tuple of 1 items"),
        (
            None,
            "label",
            TypeError,
            r"values must be an array of shape \(n_points, n_draws\)\. Got N",
        ),
        (np.ones((4, 2)), "proba", ValueError, r"Got shape \(4, 2\)\. .* values\[:, None, :\]"),
        (np.ones((4, 2, 2, 2)), "proba", ValueError, r"Got shape \(4, 2, 2, 2\)"),
        (np.ones((4, 0, 2)), "proba", ValueError, r"at least one entry.*Got shape \(4, 0, 2\)"),
        (np.ones((4, 2, 0)), "proba", ValueError, r"Got shape \(4, 2, 0\)"),
        (labels()[..., None], "label", ValueError, r"Got shape \(4, 3, 1\)"),
        (np.ones(4), "value", ValueError, r"Got shape \(4,\)"),
        (np.ones((4, 2, 0)), "value", ValueError, r"Got shape \(4, 2, 0\)"),
        (np.float64(1), "value", ValueError, r"Got shape \(\)"),
        (labels() * 1.0, "label", TypeError, r"integer class codes.*float64.*searchsorted"),
        (labels() > 0, "label", TypeError, r"integer class codes.*Got dtype bool"),
        (labels() - 1, "label", ValueError, r"codes >= 0\. Got -1"),
        (probabilities() + 0j, "proba", TypeError, r"must be real numbers\. Got dtype complex128"),
        (labels().astype(str), "value", TypeError, r"must be real numbers\. Got dtype <U"),
        (labels().astype(object), "value", TypeError, r"real numbers\. Got dtype object"),
        (labels().astype(str), "label", TypeError, r"integer class codes"),
    ],
)
def test_values_of_a_wrong_form_raise(
    values: Any, kind: str, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        PredictionSamples(values, kind=kind)


@pytest.mark.parametrize(
    ("classes", "kind", "message"),
    [
        (["a", "b"], "proba", r"must name the 5 classes of the predictions\. .*shape \(2,\)"),
        (list("abcdef"), "proba", r"must name the 5 classes"),
        ([list("abcde")], "proba", r"shape \(1, 5\)"),
        (list("abcda"), "proba", "classes must be distinct"),
        ([0, 1], "label", "must name the 3 classes"),
        ([0, 1, 1], "label", "classes must be distinct"),
        ([0, 1, 2], "value", "classes do not apply to kind='value'"),
    ],
)
def test_wrong_classes_raise(classes: Any, kind: str, message: str) -> None:
    values = {"proba": probabilities(), "label": labels(), "value": np.ones((4, 3))}[kind]
    with pytest.raises(ValueError, match=message):
        PredictionSamples(values, kind, classes=classes)


def test_classes_of_mixed_types_are_kept() -> None:
    classes = np.array([None, "a", 3, 2.5, True], dtype=object)
    assert PredictionSamples(probabilities(), classes=classes).classes.tolist() == list(classes)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([0.5, 0.5], r"one entry per draw, shape \(3,\)\. Got shape \(2,\)"),
        ([[0.5, 0.25, 0.25]], r"Got shape \(1, 3\)"),
        (0.5, r"Got shape \(\)"),
        ([0.5, 0.5, 0.5], r"must sum to 1\. Got a sum of 1\.5; pass weights / sum\(weights\)"),
        ([1.5, -0.5, 0.0], r"finite and >= 0\. Got -0\.5"),
        ([0.5, np.nan, 0.5], r"finite and >= 0\. Got nan"),
        ([0.5, np.inf, 0.5], r"finite and >= 0\. Got inf"),
    ],
)
def test_wrong_weights_raise(given: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PredictionSamples(probabilities(), weights=given)


def test_weights_come_from_any_backend(backend: Backend) -> None:
    given = backend(weights().astype(np.float32))
    got = PredictionSamples(backend(probabilities()), weights=given).weights
    assert got.dtype == np.float64
    assert got.tolist() == weights().tolist()


def test_weights_off_by_rounding_are_renormalized() -> None:
    third = np.full(3, 1 / 3, dtype=np.float32)
    assert PredictionSamples(probabilities(), weights=third).weights.tolist() == [1 / 3] * 3
    assert third[0] == np.float32(1 / 3)


@pytest.mark.parametrize(
    ("noise", "kind", "message"),
    [
        (0.1, "proba", "noise_variance applies to kind='value' only. Got kind='proba'"),
        (0.1, "label", "noise_variance applies to kind='value' only"),
        (np.ones(3), "value", r"shape \(4,\) or \(4, 3\)\. Got shape \(3,\)"),
        (np.ones((4, 1)), "value", r"Got shape \(4, 1\)"),
        (-0.1, "value", r"finite and >= 0\. Got -0\.1"),
        (np.array([1.0, np.nan, 1.0, 1.0]), "value", r"finite and >= 0\. Got nan"),
    ],
)
def test_wrong_noise_raises(noise: Any, kind: str, message: str) -> None:
    values = {"proba": probabilities(), "label": labels(), "value": np.ones((4, 3))}[kind]
    with pytest.raises(ValueError, match=message):
        PredictionSamples(values, kind, noise_variance=noise)


# Immutability


def everything() -> list[PredictionSamples]:
    """One instance of each kind with all that it may hold."""
    noise = np.arange(12.0).reshape(4, 3)
    return [
        PredictionSamples(probabilities(), classes=list("abcde"), weights=weights()),
        PredictionSamples(labels(), kind="label", classes=[3, 4, 5]),
        PredictionSamples(np.ones((4, 3, 2)), "value", weights=weights(), noise_variance=noise),
        PredictionSamples(np.ones((4, 3)), "value", noise_variance=0.5),
        PredictionSamples(np.ones((4, 3)), "value", noise_variance=np.arange(4.0)),
    ]


def arrays(samples: PredictionSamples) -> dict[str, np.ndarray]:
    return {name: value for name, value in vars(samples).items() if isinstance(value, np.ndarray)}


@pytest.mark.parametrize("samples", everything(), ids=repr)
@pytest.mark.parametrize(
    "derive",
    [
        lambda s: s,
        lambda s: s[1:],
        lambda s: s[np.array([2, 0])],
        lambda s: s.take_draws(np.array([0, 2])),
        lambda s: concatenate([s[:1], s[1:]]),
        lambda s: pickle.loads(pickle.dumps(s)),
        copy.deepcopy,
    ],
    ids=["itself", "slice", "positions", "draws", "concatenate", "pickle", "deepcopy"],
)
def test_arrays_are_read_only(
    samples: PredictionSamples, derive: Callable[[PredictionSamples], PredictionSamples]
) -> None:
    held = arrays(derive(samples))
    assert held.keys() == arrays(samples).keys()
    assert [name for name, array in held.items() if array.flags.writeable] == []


@pytest.mark.parametrize("samples", everything(), ids=repr)
def test_pickling_keeps_everything(samples: PredictionSamples) -> None:
    again = pickle.loads(pickle.dumps(samples))
    assert repr(again) == repr(samples)
    assert vars(again).keys() == vars(samples).keys()
    for name, array in vars(samples).items():
        np.testing.assert_array_equal(getattr(again, name), array)


def test_the_callers_arrays_are_left_as_they_were() -> None:
    off = probabilities() * 1.0005
    off[0, 0, 1] = -1e-10
    shares, noise, names = weights() * (1 + 1e-7), np.ones(4), np.array(list("abcde"))
    log = np.log(np.full((4, 3, 5), 0.2))
    given = (off, shares, noise, names, log)
    before = [array.copy() for array in given]
    PredictionSamples(off, weights=shares, classes=names)
    PredictionSamples.from_array(log, log=True)
    PredictionSamples(off, kind="value", noise_variance=noise)
    for array, copied in zip(given, before, strict=True):
        np.testing.assert_array_equal(array, copied)
        assert array.flags.writeable


def test_the_callers_tensor_keeps_its_history() -> None:
    torch = pytest.importorskip("torch")
    logits = torch.zeros(2, 3, 4, requires_grad=True)
    predictions = torch.softmax(logits, dim=-1)
    samples = PredictionSamples(predictions)
    assert not samples.values.requires_grad
    assert predictions.requires_grad
    log = PredictionSamples.from_array(torch.log_softmax(logits, dim=-1), log=True)
    assert not log.values.requires_grad


# Layouts


@pytest.mark.parametrize("layout", ["NKC", "KNC", "NCK"])
@pytest.mark.parametrize("log", [False, True])
def test_from_array_brings_every_layout_to_nkc(
    backend: Backend, same_place: SamePlace, layout: str, log: bool
) -> None:
    values = probabilities()
    order = tuple("NKC".index(axis) for axis in layout)
    with np.errstate(divide="ignore"):
        given = np.log(values) if log else values
    x = backend(np.ascontiguousarray(given.transpose(order)))
    samples = PredictionSamples.from_array(x, layout, log=log, classes=list("abcde"))
    same_place(samples.values, x)
    np.testing.assert_allclose(_array.to_host(samples.values), values, rtol=1e-12)
    assert samples.classes.tolist() == list("abcde")


@pytest.mark.parametrize("layout", ["NKC", "KNC", "NCK"])
def test_from_array_without_class_axis_skips_its_letter(backend: Backend, layout: str) -> None:
    values = labels()
    x = backend(np.ascontiguousarray(values.T) if layout == "KNC" else values)
    samples = PredictionSamples.from_array(x, layout, kind="label")
    np.testing.assert_array_equal(_array.to_host(samples.values), values)


def test_from_array_passes_the_rest_on() -> None:
    values = np.random.default_rng(0).normal(size=(3, 4, 2))
    noise = np.arange(4.0)
    samples = PredictionSamples.from_array(
        values, "KNC", kind="value", weights=weights(), noise_variance=noise
    )
    np.testing.assert_array_equal(samples.values, values.transpose(1, 0, 2))
    assert samples.weights.tolist() == weights().tolist()
    assert samples.noise_variance.tolist() == noise.tolist()


def test_from_array_takes_a_list_of_members() -> None:
    members = list(probabilities().transpose(1, 0, 2))
    samples = PredictionSamples.from_array(members, "KNC")
    np.testing.assert_array_equal(samples.values, probabilities())


def test_from_array_takes_log_probabilities_in_half_precision() -> None:
    values = np.log(np.array([[[0.5, 0.5], [0.25, 0.75]]])).astype(np.float16)
    samples = PredictionSamples.from_array(values, log=True)
    assert samples.values.dtype == np.float32
    np.testing.assert_allclose(samples.values, [[[0.5, 0.5], [0.25, 0.75]]], atol=5e-4)


@pytest.mark.parametrize(
    ("a", "arguments", "message"),
    [
        (
            probabilities(),
            {"layout": "CKN"},
            "layout must be one of 'NKC', 'KNC', 'NCK'. Got 'CKN'",
        ),
        (probabilities(), {"layout": "nkc"}, "layout must be one of"),
        (np.ones(3), {}, r"layout 'NKC' with kind='proba' needs .*Got an array of shape \(3,\)"),
        (np.ones((1, 1, 1, 1)), {}, r"Got an array of shape \(1, 1, 1, 1\)"),
        (np.ones((2, 2)) / 2, {}, r"Got shape \(2, 2\)\. .* values\[:, None, :\]"),
        (
            labels(),
            {"kind": "label", "log": True},
            r"log=True needs kind='proba'\. Got kind='label'",
        ),
        (np.full((1, 2, 2), 800.0), {"log": True}, r"<= 0\. Got a maximum of 800 .*log-softmax"),
        (np.full((1, 2, 2), np.nan), {"log": True}, "NaN or infinity in row 0"),
        (np.full((1, 2, 2), -3.0), {"log": True}, "differs from 1 by"),
        (probabilities(), {"kind": "probability"}, "kind must be one of"),
        ([np.ones((4, 2)), np.ones((4, 3))], {"layout": "KNC"}, "multi-output model needs one"),
    ],
)
def test_from_array_of_a_wrong_form_raises(a: Any, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PredictionSamples.from_array(a, **arguments)


def test_repr_tells_kind_shape_and_weights() -> None:
    text = repr(PredictionSamples(labels(), kind="label", weights=weights()))
    assert text == "PredictionSamples(kind='label', shape=(4, 3), dtype=int64, weighted)"
