"""Lists, tuples and dicts of fitted models: members as draws, classes by name, members refused."""

import pickle
from functools import cache
from typing import Any

import joblib
import numpy as np
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.cluster import KMeans
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from sklearn_ical.exceptions import UnsupportedModelError
from sklearn_ical.samplers import Draws, EnsembleSampler, get_sampler
from sklearn_ical.samplers._base import evaluate_in_chunks

NAMES = np.array(["ant", "bee", "cat"])


class Constant(ClassifierMixin, BaseEstimator):
    """A classifier that gives each row the same probabilities."""

    def __init__(self, classes: Any, proba: Any) -> None:
        self.classes = classes
        self.proba = proba
        self.classes_ = np.array(classes)

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict(self, X: Any) -> np.ndarray:
        return np.full(len(X), self.classes_[0])

    def predict_proba(self, X: Any) -> np.ndarray:
        return np.tile(self.proba, (len(X), 1))


class Level(RegressorMixin, BaseEstimator):
    """A regressor that predicts the same outputs for each row."""

    def __init__(self, output: Any) -> None:
        self.output = output

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict(self, X: Any) -> np.ndarray:
        return np.array([self.output] * len(X))


def rows(n: int = 60, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, 4))


def codes(X: np.ndarray) -> np.ndarray:
    return np.digitize(X[:, 0] + 0.5 * X[:, 1], [-0.5, 0.5])


@cache
def classifiers() -> tuple[Any, ...]:
    X = rows()
    y = NAMES[codes(X)]
    return (
        GaussianNB().fit(X, y),
        LogisticRegression().fit(X, y),
        KNeighborsClassifier(algorithm="brute").fit(X, y),  # trees of points count their calls
        make_pipeline(StandardScaler(), LogisticRegression(C=0.1)).fit(X, y),
        MLPClassifier(4, solver="lbfgs", max_iter=5000, random_state=0).fit(X, y),
        RandomForestClassifier(5, random_state=0).fit(X, y),
        GridSearchCV(GaussianNB(), {"var_smoothing": [1e-9, 0.1]}, cv=2).fit(X, y),
        CalibratedClassifierCV(LinearSVC(), cv=2).fit(X, y),
    )


@cache
def regressors() -> tuple[Any, ...]:
    X = rows()
    return (
        LinearRegression().fit(X, codes(X)),
        KNeighborsRegressor(algorithm="brute").fit(X, codes(X)[:, None]),  # predicts (n, 1)
        make_pipeline(StandardScaler(), Ridge()).fit(X, codes(X)),
        RandomForestRegressor(5, random_state=0).fit(X, codes(X)),
    )


def as_dict(members: Any) -> dict[str, Any]:
    return {f"member {k}": member for k, member in enumerate(members)}


@pytest.mark.parametrize("container", [list, tuple, as_dict])
def test_unlike_classifiers_are_the_draws_in_order(container: Any) -> None:
    pool = rows(20, seed=3)
    samples = get_sampler(container(classifiers())).sample(pool)
    assert (samples.kind, samples.values.shape) == ("proba", (20, 8, 3))
    assert samples.classes.tolist() == ["ant", "bee", "cat"]
    for k, member in enumerate(classifiers()):
        expected = member.predict_proba(pool)
        np.testing.assert_allclose(samples.values[:, k], expected, rtol=0, atol=1e-15)
    mean = sum(member.predict_proba(pool) for member in classifiers()) / 8
    np.testing.assert_allclose(samples.mean(), mean, rtol=0, atol=1e-12)


@pytest.mark.parametrize("container", [list, tuple, as_dict])
def test_unlike_regressors_are_the_draws_in_order(container: Any) -> None:
    pool = rows(20, seed=3)
    samples = get_sampler(container(regressors())).sample(pool)
    assert (samples.kind, samples.values.shape, samples.classes) == ("value", (20, 4), None)
    for k, member in enumerate(regressors()):
        np.testing.assert_array_equal(samples.values[:, k], np.ravel(member.predict(pool)))


def test_regressors_of_several_targets_give_three_axes() -> None:
    X, pool = rows(), rows(7, seed=3)
    y = np.column_stack([X[:, 0], X[:, 1] ** 2])
    members = [LinearRegression().fit(X, y), DecisionTreeRegressor(max_depth=2).fit(X, y)]
    values = get_sampler(members).sample(pool).values
    assert values.shape == (7, 2, 2)
    np.testing.assert_array_equal(values[:, 0], members[0].predict(pool))
    np.testing.assert_array_equal(values[:, 1], members[1].predict(pool))


def test_columns_follow_the_union_of_classes_with_zeros() -> None:
    members = [
        Constant(["cat", "ant"], [0.9, 0.1]),  # also in an order of its own
        Constant(["bee"], [1.0]),
        Constant(["ant", "bee", "dog"], [0.2, 0.3, 0.5]),
    ]
    samples = get_sampler(members).sample(rows(2))
    assert samples.classes.tolist() == ["ant", "bee", "cat", "dog"]
    expected = [[0.1, 0, 0.9, 0], [0, 1, 0, 0], [0.2, 0.3, 0, 0.5]]
    np.testing.assert_array_equal(samples.values, [expected, expected])


def test_model_that_missed_a_class_has_zeros_there() -> None:
    X = rows()
    y = codes(X) + 1
    few = GaussianNB().fit(X[y != 2], y[y != 2])
    full = LogisticRegression().fit(X, y)
    samples = get_sampler([few, full]).sample(X)
    assert samples.classes.tolist() == [1, 2, 3]
    np.testing.assert_array_equal(samples.values[:, 0, [0, 2]], few.predict_proba(X))
    assert not samples.values[:, 0, 1].any()
    np.testing.assert_allclose(samples.values.sum(axis=2), 1, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("first", "second", "union"),
    [
        ([0, 1], [1, 4], [0, 1, 4]),
        ([False, True], [0, 2], [0, 1, 2]),
        ([1, 2], [2.0, 3.5], [1, 2, 3.5]),
        (np.array(["b", "a"], dtype=object), ["a", "longer"], ["a", "b", "longer"]),
        (["b", "a"], np.array(["longer", "a"], dtype=object), ["a", "b", "longer"]),
    ],
)
def test_label_types_that_compare_are_joined(first: Any, second: Any, union: list[Any]) -> None:
    members = [Constant(first, [0.25, 0.75]), Constant(second, [0.5, 0.5])]
    samples = get_sampler(members).sample(rows(1))
    assert samples.classes.tolist() == union
    for k, (classes, proba) in enumerate([(first, [0.25, 0.75]), (second, [0.5, 0.5])]):
        found = [samples.values[0, k, union.index(label)] for label in classes]
        assert found == proba


def test_members_without_probabilities_all_vote() -> None:
    X, pool = rows(), rows(20, seed=3)
    members = [LinearSVC().fit(X, NAMES[codes(X)]), SVC().fit(X, NAMES[codes(X)])]
    samples = get_sampler(members).sample(pool)
    assert (samples.kind, samples.values.shape) == ("label", (20, 2))
    for k, member in enumerate(members):
        np.testing.assert_array_equal(samples.classes[samples.values[:, k]], member.predict(pool))


def test_votes_among_probabilities_are_certain() -> None:
    X, pool = rows(), rows(20, seed=3)
    y = NAMES[codes(X)]
    few = SVC().fit(X[y != "bee"], y[y != "bee"])
    probable = GaussianNB().fit(X, y)
    samples = get_sampler([few, probable]).sample(pool)
    assert samples.kind == "proba"
    expected = (few.predict(pool)[:, None] == samples.classes).astype(float)
    np.testing.assert_array_equal(samples.values[:, 0], expected)
    np.testing.assert_allclose(samples.values[:, 1], probable.predict_proba(pool), atol=1e-15)


class Voter(ClassifierMixin, BaseEstimator):
    """A classifier without probabilities that votes for what the first column says."""

    def __init__(self, classes: Any) -> None:
        self.classes_ = np.array(classes)

    def predict(self, X: Any) -> np.ndarray:
        return X[:, 0]


@pytest.mark.parametrize("order", [["cat", "ant"], ["bee", "cat", "ant"]])
def test_votes_are_read_where_classes_are_in_an_order_of_their_own(order: list[str]) -> None:
    pool = np.array([["ant"], ["cat"], ["cat"]])
    samples = get_sampler([Voter(order), Voter(["dog", "cat", "ant"])]).sample(pool)
    names = samples.classes[samples.values].tolist()
    assert names == [["ant", "ant"], ["cat", "cat"], ["cat", "cat"]]


def test_vote_for_an_unknown_label_is_refused_by_name() -> None:
    draws = get_sampler([Voter(["ant", "cat"])]).draw()
    for label in ("aaa", "bee", "zzz"):
        message = (
            r"^predict of member 0 \(Voter\) of EnsembleSampler must give one of classes_ for each "
            rf"of 2 rows\. Got {label}\.$"
        )
        with pytest.raises(UnsupportedModelError, match=message):
            draws(np.array([["ant"], [label]]))


@pytest.mark.parametrize("members", [classifiers, regressors])
def test_rows_that_a_member_cannot_predict_are_refused_by_its_name(members: Any) -> None:
    draws = get_sampler({"first": members()[0], "second": members()[1]}).draw()
    message = r"^Member 'first' \(\w+\) of EnsembleSampler cannot predict these rows\. X has 3 feat"
    with pytest.raises(ValueError, match=message):
        draws(rows(5)[:, :3])


def test_weights_of_any_positive_sum_are_scaled() -> None:
    members = [Constant([0, 1], [1.0, 0.0]), Constant([0, 1], [0.0, 1.0])]
    samples = EnsembleSampler(members, weights=[30, 10]).sample(rows(2))
    assert samples.weights.tolist() == [0.75, 0.25]
    np.testing.assert_array_equal(samples.mean(), [[0.75, 0.25]] * 2)
    values = EnsembleSampler([Level(1.0), Level(5.0)], weights=(1, 3)).sample(rows(2))
    assert values.mean().tolist() == [4.0, 4.0]


def test_subset_keeps_the_weights_of_its_members() -> None:
    levels = [Level(float(k)) for k in range(6)]
    sampler = EnsembleSampler(levels, weights=[1, 2, 3, 4, 5, 6])
    seen = set()
    for seed in range(6):
        samples = sampler.sample(rows(1), n_draws=3, random_state=seed)
        members = samples.values[0]
        assert members.tolist() == sorted(set(members))
        np.testing.assert_allclose(samples.weights, (members + 1) / (members + 1).sum())
        seen.add(tuple(members))
    assert len(seen) > 2


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1, 1], r"one entry per member, shape \(3,\)\. Got shape \(2,\) in EnsembleSampler"),
        (1.0, r"one entry per member, shape \(3,\)\. Got shape \(\)"),
        ([0, 0, 0], r"positive sum\. Got 0 for 3 members in EnsembleSampler"),
        ([3, -1, 1], r"finite and >= 0\. Got -1\.0 in EnsembleSampler"),
        ([1, np.nan, 1], r"finite and >= 0\. Got nan"),
        ([1, np.inf, 1], r"finite and >= 0\. Got inf"),
    ],
)
def test_impossible_weights_are_refused(weights: Any, message: str) -> None:
    sampler = EnsembleSampler([Level(0.0), Level(1.0), Level(2.0)], weights=weights)
    with pytest.raises(ValueError, match=message):
        sampler.draw()


def test_subset_of_members_without_weight_is_refused() -> None:
    sampler = EnsembleSampler([Level(0.0), Level(1.0)], weights=[0, 1])
    with pytest.raises(ValueError, match=r"drawn members must have a positive sum\. Got 0 for 1"):
        [sampler.draw(1, random_state=seed) for seed in range(20)]


@pytest.mark.parametrize("n_draws", [0, 3, True])
def test_impossible_numbers_of_draws_are_refused(n_draws: Any) -> None:
    with pytest.raises((ValueError, TypeError), match=f"n_draws must be .* Got {n_draws}"):
        get_sampler([Level(0.0), Level(1.0)]).draw(n_draws)


@pytest.mark.parametrize("members", [classifiers, regressors])
@pytest.mark.parametrize("size", [1, 7, 20, 50])
def test_chunks_equal_one_call_to_rounding(members: Any, size: int) -> None:
    draws, pool = get_sampler(list(members())).draw(), rows(20, seed=3)
    parts = list(evaluate_in_chunks(draws, pool, size))
    assert [part.n_points for part in parts] == [min(size, 20 - a) for a in range(0, 20, size)]
    joined = np.concatenate([part.values for part in parts])
    np.testing.assert_allclose(joined, draws(pool).values, rtol=0, atol=1e-12)


def test_frames_keep_their_names() -> None:
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    names = ["d", "a", "c", "b"]
    X = rows()
    for frame in (pandas.DataFrame(X, columns=names), polars.DataFrame(X, schema=names)):
        members = [
            GaussianNB().fit(frame, codes(X)),
            RandomForestClassifier(3).fit(frame, codes(X)),
        ]
        draws = get_sampler(members).draw()
        joined = np.concatenate([part.values for part in evaluate_in_chunks(draws, frame, 7)])
        np.testing.assert_allclose(joined[:, 0], members[0].predict_proba(frame), atol=1e-12)
        np.testing.assert_allclose(joined[:, 1], members[1].predict_proba(frame), atol=1e-12)


@pytest.mark.parametrize("form", ["csr_array", "csc_matrix", "coo_matrix", "dia_array"])
def test_sparse_rows_are_sliced_in_every_format(form: str) -> None:
    X = np.where(rows() > 0.3, rows(), 0)
    model = LogisticRegression().fit(X, codes(X))
    draws, pool = get_sampler([model]).draw(), getattr(sparse, form)(X)
    joined = np.concatenate([part.values for part in evaluate_in_chunks(draws, pool, 7)])
    np.testing.assert_allclose(joined[:, 0], model.predict_proba(X), rtol=0, atol=1e-12)


def test_draws_are_picklable_and_follow_the_protocol() -> None:
    pool = rows(5)
    for members in (classifiers(), regressors()):
        draws = EnsembleSampler(members, weights=range(1, len(members) + 1)).draw()
        assert isinstance(draws, Draws)
        assert draws.joint is False
        copy = pickle.loads(pickle.dumps(draws))
        np.testing.assert_array_equal(copy(pool).values, draws(pool).values)
        np.testing.assert_array_equal(copy(pool).weights, draws.weights)


def test_members_are_unchanged() -> None:
    plain = [m for m in (*classifiers(), *regressors()) if not hasattr(m, "cv_results_")]
    before = joblib.hash(plain)  # which knows no masked arrays, as searches keep
    get_sampler(list(classifiers())).sample(rows(9))
    get_sampler(list(regressors())).sample(rows(9), n_draws=2, random_state=0)
    assert joblib.hash(plain) == before


def test_changing_the_list_later_changes_no_draws() -> None:
    members = [Level(0.0), Level(1.0)]
    draws = get_sampler(members).draw()
    members.append(Level(2.0))
    members[0] = Level(9.0)
    assert draws(rows(1)).values.tolist() == [[0.0, 1.0]]


def multi_output() -> Any:
    X = rows()
    return KNeighborsClassifier().fit(X, np.column_stack([codes(X), codes(X) > 0]))


def unnamed_columns() -> Any:
    model = Constant([0, 1], [0.5, 0.5])
    del model.classes_
    return model


def unfitted_search() -> Any:
    return GridSearchCV(GaussianNB(), {"var_smoothing": [0.1]})


@pytest.mark.parametrize(
    ("member", "message"),
    [
        (lambda: KMeans(2, n_init=1).fit(rows()), r"1 \(KMeans\).*no predict_proba"),
        (lambda: GaussianNB, r"1 \(\w+\).*no predict method; pass fitted models"),
        (lambda: StandardScaler().fit(rows()), r"1 \(StandardScaler\).*no predict method"),
        (lambda: None, r"1 \(NoneType\).*no predict method"),
        (lambda: "GaussianNB", r"1 \(str\).*no predict method"),
        (lambda: ("nb", classifiers()[0]), r"1 \(tuple\).*no predict method"),
        (lambda: np.ones((3, 2)) / 2, r"1 \(ndarray\).*from_array\(stack, layout='KNC'\)"),
        (multi_output, r"1 \(KNeighborsClassifier\).*2 class outputs"),
        (unnamed_columns, r"1 \(Constant\).*no classes_"),
    ],
)
@pytest.mark.parametrize("first", [lambda: classifiers()[0], lambda: regressors()[0]])
def test_unusable_member_is_refused_by_name(first: Any, member: Any, message: str) -> None:
    with pytest.raises(UnsupportedModelError, match=f"^Member {message}"):
        get_sampler([first(), member()]).draw()


@pytest.mark.parametrize(
    ("member", "name"),
    [
        (GaussianNB, "GaussianNB"),
        (Ridge, "Ridge"),
        (lambda: make_pipeline(StandardScaler(), LogisticRegression()), "Pipeline"),
        (RandomForestClassifier, "RandomForestClassifier"),
        (unfitted_search, "GridSearchCV"),
    ],
)
def test_unfitted_member_is_refused_by_name(member: Any, name: str) -> None:
    message = rf"^Member 'second' \({name}\) of EnsembleSampler is not fitted yet\. Call fit"
    with pytest.raises(NotFittedError, match=message):
        get_sampler({"first": classifiers()[0], "second": member()}).draw()


def test_members_of_a_dict_are_named_by_their_keys() -> None:
    means = KMeans(2, n_init=1).fit(rows())
    with pytest.raises(UnsupportedModelError, match=r"Member 'wide' \(KMeans\)"):
        get_sampler({"narrow": classifiers()[0], "wide": means}).draw()


def test_only_drawn_members_are_asked() -> None:
    class Broken(Level):
        def predict(self, X: Any) -> np.ndarray:
            raise RuntimeError("asked")

    members = [Level(0.0), Level(1.0), Broken(2.0)]
    outcomes = set()
    for seed in range(20):
        try:
            outcomes.add(get_sampler(members).draw(1, random_state=seed)(rows(1)).values[0, 0])
        except UnsupportedModelError as err:
            outcomes.add(str(err))
    message = "Member 2 (Broken) of EnsembleSampler cannot predict these rows. asked"
    assert outcomes == {0.0, 1.0, message}


def test_members_are_checked_whichever_are_drawn() -> None:
    for seed in range(5):
        with pytest.raises(UnsupportedModelError, match=r"Member 1 \(NoneType\)"):
            get_sampler([Level(0.0), None]).draw(1, random_state=seed)


def test_fewer_draws_keep_kind_and_classes_of_all_members() -> None:
    X, y = rows(9), np.repeat([0, 1, 2], 3)
    X = X + y[:, None]
    unlike = [GaussianNB().fit(X, y), RidgeClassifier().fit(X[:6], y[:6])]
    for seed in range(5):
        draws = get_sampler(unlike).draw(1, random_state=seed)
        assert draws.kind == "proba"
        assert draws.classes.tolist() == [0, 1, 2]
        assert draws(X).values.shape == (9, 1, 3)


def test_classifiers_and_regressors_do_not_mix() -> None:
    message = r"all classifiers or all regressors\. Got classifier 1 \(GaussianNB\) and regressor 0"
    with pytest.raises(UnsupportedModelError, match=message):
        get_sampler([regressors()[0], classifiers()[0]]).draw()


@pytest.mark.parametrize("words", [np.array(["1", "2"]), np.array(["1", "2"], dtype=object)])
def test_words_and_numbers_as_labels_do_not_mix(words: np.ndarray) -> None:
    members = [Constant([1, 2], [0.5, 0.5]), Constant(words, [0.5, 0.5])]
    message = r"one type of class label\. Got 1 in member 0 \(Constant\) and '1' in member 1"
    with pytest.raises(UnsupportedModelError, match=message):
        get_sampler(members).draw()


@pytest.mark.parametrize(
    ("proba", "message"),
    [
        ([0.2, 0.3, 0.5], r"predict_proba of member 1 \(Constant\).*\(4, 2\)\. Got \(4, 3\)"),
        ([1.0], r"predict_proba of member 1 \(Constant\).*\(4, 2\)\. Got \(4, 1\)"),
        ([0.9, 0.9], r"^predict_proba of member 1 \(Constant\) .* sum to 1\.8, not 1, for row 0;"),
        (
            [1.5, -0.5],
            r"^predict_proba of member 1 .* a negative probability, -0\.5, for row 0;",
        ),
        ([np.nan, 1.0], r"^predict_proba of member 1 .* gives NaN or infinity for row 0;"),
    ],
)
def test_unusable_probabilities_are_refused_by_name(proba: Any, message: str) -> None:
    draws = get_sampler([Constant([0, 1], [0.5, 0.5]), Constant([0, 1], proba)]).draw()
    with pytest.raises(UnsupportedModelError, match=message):
        draws(rows(4))


def test_probabilities_of_a_multilabel_model_are_refused_by_name() -> None:
    X = rows()
    y = np.column_stack([codes(X) > 0, codes(X) > 1, X[:, 2] > 0]).astype(int)
    model = OneVsRestClassifier(LogisticRegression()).fit(X, y)
    message = (
        r"Member 0 \(OneVsRestClassifier\).*fitted on 3 class outputs.* y of shape \(n_samples,"
    )
    with pytest.raises(UnsupportedModelError, match=message):
        get_sampler([model]).sample(X)


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ([1.0, 2.0], r"same targets\. Got shape \(4,\) from member 0.*\(4, 2\) from member 1"),
        (np.nan, r"Member 1 \(Level\).*no usable predictions.*must be finite"),
        ([[1.0, 2.0]], r"Member 1 \(Level\).*no usable predictions.*shape"),
    ],
)
def test_unusable_values_are_refused_by_name(output: Any, message: str) -> None:
    draws = get_sampler([Level(0.0), Level(output)]).draw()
    with pytest.raises(UnsupportedModelError, match=message):
        draws(rows(4))


@pytest.mark.parametrize("empty", [[], (), {}])
def test_empty_container_is_refused(empty: Any) -> None:
    with pytest.raises(ValueError, match="EnsembleSampler needs at least one fitted member"):
        get_sampler(empty).draw()


def test_forest_is_one_member_of_a_list() -> None:
    X = rows()
    forest = RandomForestClassifier(7, random_state=0).fit(X, codes(X))
    samples = get_sampler([forest, DecisionTreeClassifier().fit(X, codes(X))]).sample(X)
    assert samples.n_draws == 2
    np.testing.assert_array_equal(samples.values[:, 0], forest.predict_proba(X))
