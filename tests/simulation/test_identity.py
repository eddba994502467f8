"""Tests of descriptions: equal for equal things in any process, and unlike for unlike ones."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_ical import CoreSetQuery, ICALQuery
from sklearn_ical.simulation._identity import describe, describe_data, differences

ROOT = Path(__file__).resolve().parents[2]


def test_descriptions_are_the_same_in_another_process():
    code = (
        "import numpy as np, json\n"
        "from sklearn.ensemble import RandomForestClassifier as F\n"
        "from sklearn.model_selection import KFold\n"
        "from sklearn_ical.simulation._identity import describe, describe_data\n"
        "print(json.dumps([describe(F(3, max_features=np.float64(0.5))), describe(KFold(3)),\n"
        "    describe({'b': max, 'a': (1, np.ones(3))}),\n"
        "    describe_data(np.array(['x', 'yy'], dtype=object)), describe_data(['a b', 'c'])]))\n"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    printed = [
        subprocess.run(
            [sys.executable, "-c", code],
            env=environment | {"PYTHONHASHSEED": str(seed)},
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        ).stdout
        for seed in (1, 2)
    ]
    assert printed[0] == printed[1]
    assert "KFold" in printed[0]


def test_parameters_are_named_where_they_differ():
    one = make_pipeline(StandardScaler(), LogisticRegression(C=1.0, random_state=1))
    two = make_pipeline(StandardScaler(with_mean=False), LogisticRegression(C=2.0, n_jobs=3))
    found = differences({"estimator": describe(one)}, {"estimator": describe(two)})
    assert len(found) == 2
    assert "with_mean is True there and False here" in found[0]
    assert "C is 1.0 there and 2.0 here" in found[1]


def test_classes_of_objects_differ():
    (found,) = differences(describe(ICALQuery().set_params()), describe(MyICAL()))
    assert found.startswith("class is 'sklearn_ical")
    assert differences(describe(KFold(3)), describe(KFold(4))) != []
    assert differences(describe(max), describe(min)) != []


class MyICAL(ICALQuery):
    pass


def test_equal_things_have_no_differences():
    forest = RandomForestClassifier(3)
    assert differences(describe(forest), describe(RandomForestClassifier(3, random_state=8))) == []
    X = np.random.default_rng(0).normal(size=(6, 4))
    assert describe_data(X) == describe_data(np.asfortranarray(X))
    assert describe_data(X[:, ::2]) == describe_data(X[:, ::2].copy())
    assert describe_data(sparse.csr_array(X)) == describe_data(sparse.csr_array(X.copy()))


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_frames_name_the_column_that_differs(kind):
    frame = pytest.importorskip(kind).DataFrame
    one = describe_data(frame({"a": [1.0, 2.0], "b": ["x", "y"]}))
    two = describe_data(frame({"a": [1.0, 2.0], "b": ["x", "z"]}))
    again = describe_data(frame({"a": [1.0, 2.0], "b": ["x", "y"]}))
    assert differences(one, again) == []
    (found,) = differences(one, two)
    assert found.startswith("values.b is")
    renamed = describe_data(frame({"c": [1.0, 2.0], "b": ["x", "y"]}))
    assert any(found.startswith("columns is ['a', 'b']") for found in differences(one, renamed))


def test_index_of_a_frame_does_not_matter():
    pandas = pytest.importorskip("pandas")
    one = pandas.DataFrame({"a": [1.0, 2.0]}, index=[5, 6])
    assert describe_data(one) == describe_data(one.reset_index(drop=True))


def test_a_transformer_of_features_is_described_with_its_fitted_state() -> None:
    X = np.random.default_rng(0).normal(size=(20, 3))
    scalers = [StandardScaler().fit(rows) for rows in (X, X, X * [1, 1, 0.1])]
    first, same, other = (describe(CoreSetQuery(features=scaler)) for scaler in scalers)
    assert first == same != other
