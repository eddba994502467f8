"""The type that each column had in the data that a model was fitted on; no file is read here."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import get_tags

from sklearn_ical.cli._conversion import ColumnType
from sklearn_ical.cli._csv import place_of
from sklearn_ical.cli._errors import note
from sklearn_ical.samplers._models import is_fitted, model_inside

Found = dict[str, ColumnType]
# The columns that a part of a model is given: for each, the one of the file that it is, or None.
Columns = list[str | None]

NUMBER = ColumnType("number")
# Packages whose models keep to their tags; other code may read anything.
KNOWN_PACKAGES = {"sklearn", "sklearn_ical", "imblearn", "modAL", "skactiveml"}
# Parameters of models that hand their rows to others.
HOLDERS = {"estimator", "estimators", "base_estimator", "regressor", "classifier"}


def first_model(model: Any) -> Any:
    """Return the first model of a list or dict of models."""
    while isinstance(model, list | tuple | dict) and model:
        model = next(iter(model.values() if isinstance(model, dict) else model))
    return model


def fitted_names(model: Any, columns: Iterable[str] = ()) -> list[str] | None:
    """Return the names of the columns that a model was fitted on, None if they had none.

    Parameters
    ----------
    model : object
        Of any kind.
    columns : iterable of str, default=()
        Names in a file. LightGBM replaces blanks in names, which are then spelled as in the file.

    Returns
    -------
    names : list of str or None
    """
    inside = _first_inside(model)
    if inside is not None:
        return fitted_names(inside, columns)
    names = getattr(model, "feature_names_in_", None)
    if "catboost" in _packages(model):
        names = model.feature_names_
        names = None if names == [str(i) for i in range(len(names or ()))] else names
    if "lightgbm" in _packages(model) and names is not None:
        spelled = {column.replace(" ", "_"): column for column in columns}
        names = [spelled.get(name, name) for name in names]
    return None if names is None else [str(name) for name in names]


def _first_inside(model: Any) -> Any:
    """Return the part of a model that is given its rows first, None if it has no such part."""
    if isinstance(model, Pipeline):
        return next((step for _, step in model.steps if step not in (None, "passthrough")), None)
    return model_inside(model)


def n_columns_of(model: Any) -> int | None:
    """Return the number of columns that a model was fitted on, None if it is unknown."""
    inside = _first_inside(model)
    if inside is not None:
        return n_columns_of(inside)
    if "catboost" in _packages(model):  # whose own count is 0 in a model that was saved
        return len(model.feature_names_ or ()) or None
    return getattr(model, "n_features_in_", None)


def fitted_types(model: Any, columns: list[str]) -> Found:
    """Return the types of the columns that a model was fitted on, as far as they are known.

    Parameters
    ----------
    model : object
        Of several models the first one counts.
    columns : list of str
        Names of the features in a file. For a model that was fitted without names, all of them,
        in its order.

    Returns
    -------
    types : dict of {str: ColumnType}
    """
    model = first_model(model)
    if not is_fitted(model):
        return {}
    names = fitted_names(model, columns)
    if names is not None:
        found = _types(model, list(names))
        return {name: type_ for name, type_ in found.items() if name in columns}
    return _types(model, list(columns)) if n_columns_of(model) in (None, len(columns)) else {}


def reads_documents(model: Any) -> bool:
    """Return whether the rows of a model are texts, not columns."""
    if fitted_names(model) is not None or n_columns_of(model) is not None:
        return False
    return any(type_.kind == "document" for type_ in fitted_types(model, ["text"]).values())


def type_of_labels(model: Any) -> ColumnType | None:
    """Return the type of the labels that a classifier was fitted on, None if it is unknown."""
    classes = getattr(first_model(model), "classes_", None)
    if not isinstance(classes, np.ndarray) or classes.ndim != 1 or len(classes) == 0:
        return None
    found = _type_of(classes)
    return None if found is None else replace(found, as_objects=False)


def _types(model: Any, columns: Columns) -> Found:
    """Return what is known about the columns that a model, or a part of it, is given."""
    columns = _aligned(model, columns)
    for applies, read in READERS:
        if applies(model):
            return read(model, columns)
    return _in_parts(model, columns)


def _aligned(model: Any, columns: Columns) -> Columns:
    """Return the columns that a part reads, by its names for them where it has these."""
    names = fitted_names(model)
    if n_columns_of(model) in (None, len(columns)):
        return columns
    if names is None:
        return []
    return [name if name in columns else None for name in names]


def _at(columns: Columns, types: Iterable[ColumnType | None]) -> Found:
    """Return the types that are known of the columns that are known."""
    pairs = zip(columns, types, strict=False)
    return {column: type_ for column, type_ in pairs if column is not None and type_ is not None}


def _merged(*found: Found) -> Found:
    """Return the strongest evidence for each column, the first among equals."""
    merged: Found = {}
    for types in found:
        for column, type_ in types.items():
            if column not in merged or _strength(merged[column]) < _strength(type_):
                merged[column] = type_
    return merged


def _strength(type_: ColumnType) -> int:
    """Return how much a type says: values of any model, those of an encoder, texts, categories."""
    if type_.categorical:
        return 3
    return 2 if type_.kind == "document" else int(type_.categories is not None)


def _type_of(categories: Any) -> ColumnType | None:
    """Return the type of a column with these values, None if they are of several types."""
    values = np.asarray(categories)
    type_ = ColumnType("any", tuple(values.tolist()), as_objects=values.dtype == object)
    if values.dtype.kind == "M":
        return replace(type_, kind="date", categories=())
    kinds = {_kind_of(value) for value in type_.known}
    return replace(type_, kind=kinds.pop()) if len(kinds) == 1 else None


def _kind_of(value: Any) -> str:
    if isinstance(value, str):
        return "text"
    if isinstance(value, bool | np.bool_):
        return "boolean"
    return "number" if isinstance(value, int | float | np.number) else "any"


def _in_pipeline(pipeline: Pipeline, columns: Columns) -> Found:
    """Return what the steps say, as long as they are given columns of the file."""
    found: Found = {}
    only_texts = False
    for _, step in pipeline.steps:
        if step in (None, "passthrough") or hasattr(step, "fit_resample"):
            continue
        here = _types(step, columns)
        if only_texts:
            here = {column: type_ for column, type_ in here.items() if type_.is_text}
        found = _merged(found, here)
        if _is_opaque(step):
            only_texts = True
        else:
            columns = _passed_on(step, columns)
    return found


def _is_opaque(step: Any) -> bool:
    """Return whether a step is code of the user, which may read texts and return numbers."""
    if isinstance(step, FunctionTransformer):
        return step.func is not None
    return not _is_known(step)


def _is_known(model: Any) -> bool:
    """Return whether the class of a model is of a package whose models keep to their tags."""
    return type(model).__module__.partition(".")[0] in KNOWN_PACKAGES


def _passed_on(step: Any, columns: Columns) -> Columns:
    """Return the columns that the next step is given; none where a step changes their values."""
    if step in (None, "passthrough") or isinstance(step, FunctionTransformer):
        return [] if _is_opaque(step) else columns
    if isinstance(step, Pipeline):
        for _, inner in step.steps:
            columns = _passed_on(inner, columns)
        return columns
    if isinstance(step, ColumnTransformer):
        return _through_column_transformer(step, columns)
    if isinstance(step, SimpleImputer):
        names = getattr(step, "feature_names_in_", [f"x{i}" for i in range(len(columns))])
        known = dict(zip(names, columns, strict=False))
        return [known.get(name) for name in step.get_feature_names_out()]
    return []


def _through_column_transformer(step: ColumnTransformer, columns: Columns) -> Columns:
    slices = step.output_indices_
    passed: Columns = [None] * max((place.stop for place in slices.values()), default=0)
    for name, transformer, inner in _fitted_transformers(step, columns):
        place, through = slices[name], _passed_on(transformer, inner)
        if len(through) == place.stop - place.start:
            passed[place] = through
    return passed


def _fitted_transformers(
    step: ColumnTransformer, columns: Columns
) -> Iterable[tuple[str, Any, Columns]]:
    """Yield the name, the transformer and the columns of each part."""
    names = list(getattr(step, "feature_names_in_", ()))
    for name, transformer, chosen in step.transformers_:
        if transformer != "drop":
            places = _places(chosen, names, len(columns))
            yield name, transformer, [columns[i] for i in places]


def _places(chosen: Any, names: list[str], n_columns: int) -> list[int]:
    """Return the positions of the columns that a part of a ColumnTransformer is given."""
    if isinstance(chosen, slice):
        first, last = chosen.start, chosen.stop
        first = names.index(first) if isinstance(first, str) else first
        last = names.index(last) + 1 if isinstance(last, str) else last
        return list(range(n_columns))[first : last : chosen.step]
    keys = list(np.atleast_1d(np.asarray(chosen, dtype=object)))
    if keys and all(isinstance(key, bool | np.bool_) for key in keys):
        return np.flatnonzero(np.asarray(keys, dtype=bool)).tolist()
    return [names.index(key) if isinstance(key, str) else int(key) for key in keys]


def _in_column_transformer(step: ColumnTransformer, columns: Columns) -> Found:
    if not hasattr(step, "transformers_") or len(columns) != step.n_features_in_:
        return {}
    parts = _fitted_transformers(step, columns)
    return _merged(*(_types(transformer, inner) for _, transformer, inner in parts))


def _in_union(union: FeatureUnion, columns: Columns) -> Found:
    return _merged(*(_types(part, columns) for _, part in union.transformer_list))


def _of_encoder(encoder: Any, columns: Columns) -> Found:
    return _at(columns, map(_type_of, encoder.categories_))


def _of_documents(vectorizer: Any, columns: Columns) -> Found:
    return _at(columns[:1], [ColumnType("document")])


def _of_imputer(imputer: SimpleImputer, columns: Columns) -> Found:
    """Return the types of the values that replace the missing ones."""
    statistics = getattr(imputer, "statistics_", np.empty(0))
    if statistics.dtype.kind in "biuf":
        return _at(columns, [NUMBER] * len(columns))
    if imputer.strategy != "most_frequent":
        return {}
    texts = [ColumnType("text") if isinstance(value, str) else None for value in statistics]
    return _at(columns, texts)


def _of_lightgbm(model: Any, columns: Columns) -> Found:
    booster = getattr(model, "booster_", None)
    categories = getattr(booster, "pandas_categorical", None) or []
    params = getattr(booster, "params", {})
    places = params.get("categorical_column", params.get("categorical_feature", []))
    if len(categories) != len(places):  # chosen by hand; LightGBM then raises without categories
        return {}
    types: list[ColumnType | None] = [NUMBER] * len(columns)
    for place, values in zip(places, categories, strict=True):
        if place < len(types):
            types[place] = _categorical(values)
    return _at(columns, types)


def _of_xgboost(model: Any, columns: Columns) -> Found:
    try:
        booster = model.get_booster()
    except Exception:  # its own NotFittedError
        return {}
    types: list[ColumnType | None] = [NUMBER] * len(columns)
    if "c" in (booster.feature_types or ()):
        if not hasattr(booster, "get_categories"):
            return {}
        arrays = booster.get_categories(export_to_arrow=True).to_arrow()
        for place, (_, values) in enumerate(arrays[: len(types)]):
            if values is not None:
                types[place] = _categorical(values.to_pylist())
    return _at(columns, types)


def _categorical(values: Any) -> ColumnType | None:
    found = _type_of(np.array(values, dtype=object))
    return None if found is None else replace(found, categorical=True)


def _of_catboost(model: Any, columns: Columns) -> Found:
    # The text of an integer is the same category as the integer.
    types = [NUMBER] * len(columns)
    for place in model.get_cat_feature_indices():
        types[place] = ColumnType("word", ())
    for place in model.get_text_feature_indices():
        types[place] = ColumnType("document")
    return _at(columns, types)


def _in_parts(model: Any, columns: Columns) -> Found:
    """Return what the models and encoders inside say, and that other models take numbers."""
    own = _at(columns, [NUMBER] * len(columns)) if _is_numeric(model) else {}
    # Other code may give its parts anything, which only names can tell.
    parts = [part for part in _parts(model) if _is_known(model) or fitted_names(part)]
    return _merged(own, *(_types(part, columns) for part in parts))


def _parts(model: Any) -> list[Any]:
    """Return the fitted models inside a model that may be given its columns."""
    inside = model_inside(model)
    if inside is not None:
        return [inside]
    parts = []
    for name, value in getattr(model, "__dict__", {}).items():
        if name == "final_estimator_":  # which is given predictions
            continue
        members = value if isinstance(value, list | tuple) else [value]
        # One fold of a calibrated classifier.
        members = [m.estimator if hasattr(m, "calibrators") else m for m in members]
        parts += [m for m in members if hasattr(m, "fit") and m is not model]
    return [part for part in parts if not isinstance(part, type) and is_fitted(part)]


def _is_numeric(model: Any) -> bool:
    """Return whether a model takes numbers only."""
    if not _is_known(model) or not hasattr(model, "n_features_in_"):
        return False
    tags = get_tags(model)
    reads = tags.input_tags
    of_numbers = reads.two_d_array and not (reads.categorical or reads.string or tags.no_validation)
    return of_numbers and not HOLDERS & model.get_params(deep=False).keys()


def _packages(model: Any) -> set[str]:
    """Return the packages of the classes that a model, or a class, derives from."""
    kind = model if isinstance(model, type) else type(model)
    return {cls.__module__.partition(".")[0] for cls in kind.__mro__}


READERS: tuple[tuple[Callable[[Any], bool], Callable[[Any, Columns], Found]], ...] = (
    (lambda model: isinstance(model, Pipeline), _in_pipeline),
    (lambda model: isinstance(model, ColumnTransformer), _in_column_transformer),
    (lambda model: isinstance(model, FeatureUnion), _in_union),
    (lambda model: isinstance(model, SimpleImputer), _of_imputer),
    (lambda model: isinstance(getattr(model, "categories_", None), list), _of_encoder),
    (lambda model: hasattr(model, "build_analyzer"), _of_documents),
    (lambda model: "lightgbm" in _packages(model), _of_lightgbm),
    (lambda model: "xgboost" in _packages(model), _of_xgboost),
    (lambda model: "catboost" in _packages(model), _of_catboost),
)


def column_types(
    model: Any, columns: list[str], asked: Mapping[str, str], spent: Collection[str]
) -> Found:
    """Return the types of a file's columns: those asked for, else those of the model.

    Parameters
    ----------
    model : object
        Of several models the first one counts.
    columns : list of str
        All columns of the file.
    asked : dict of {str: str}
        Types by column, as the user gave them; other columns of the file may be missing in it.
    spent : collection of str
        Columns with another use, which are not features of a model without column names.

    Returns
    -------
    types : dict of {str: ColumnType}
    """
    named = fitted_names(first_model(model)) is not None
    try:
        found = fitted_types(model, [c for c in columns if named or c not in spent])
    except Exception as error:  # a model may hold anything, and its attributes may raise
        note(f"columns have the type that they look like, as the model's is unknown: {error!r}")
        found = {}
    return found | asked_types(asked, columns, found)


def check_asked(names: Iterable[str], columns: list[str], source: str) -> None:
    """Raise if a name given with --column-type is not a column of the file."""
    for name in names:
        place_of(name, columns, source, "--column-type")


def asked_types(asked: Mapping[str, str], columns: list[str], found: Found) -> Found:
    """Return the types that the user asked for; the categories of the model keep their order."""
    types = {}
    for name in asked.keys() & set(columns):
        known = found.get(name, ColumnType("any"))
        if asked[name] == "category":
            types[name] = replace(known, categorical=True, asked=True)
        elif asked[name] == "text" and known.kind in ("document", "word"):
            types[name] = ColumnType("document", asked=True)
        elif known.kind == asked[name] and not known.categorical:
            types[name] = replace(known, asked=True)
        else:
            types[name] = ColumnType(asked[name], asked=True)
    return types
