"""get_embedding: the features that the last part of a model gets."""

import pickle
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_ical import ActiveLearner, PredictionSamples
from sklearn_ical.exceptions import UnsupportedModelError
from sklearn_ical.samplers._base import get_embedding

X = np.random.default_rng(0).normal(size=(30, 4)).astype(np.float32)
Y = (X[:, 0] > 0).astype(np.int64)


class Learner:
    """A learner in the form of modAL."""

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def teach(self, X: Any, y: Any) -> None:
        raise AssertionError


class Committee(Learner):
    """A committee in the form of modAL."""

    def __init__(self, learner_list: list[Learner]) -> None:
        self.learner_list = learner_list


def pipeline() -> Any:
    return make_pipeline(StandardScaler(), PCA(2, svd_solver="full"), GaussianNB())


@pytest.mark.parametrize(
    "around",
    [
        lambda model: model.fit(X, Y),
        lambda model: GridSearchCV(model, {}, cv=2).fit(X, Y),
        lambda model: FrozenEstimator(model.fit(X, Y)),
        lambda model: Learner(model.fit(X, Y)),
        lambda model: ActiveLearner(model, "random").fit(X, Y),
        lambda model: Learner(FrozenEstimator(GridSearchCV(model, {}, cv=2).fit(X, Y))),
        lambda model: make_pipeline(model.fit(X, Y)),
        lambda model: make_pipeline(model[0], model[1:]).fit(X, Y),
        lambda model: make_pipeline(model[:2], GridSearchCV(model[2], {}, cv=2)).fit(X, Y),
    ],
    ids=[
        "alone", "search", "frozen", "modAL", "learner", "nested", "only step", "last step",
        "search last",
    ],
)  # fmt: skip
def test_embedding_of_a_pipeline_is_what_its_last_step_gets(around: Any) -> None:
    embedding = get_embedding(around(pipeline()))
    expected = PCA(2, svd_solver="full").fit_transform(StandardScaler().fit_transform(X))
    np.testing.assert_allclose(embedding(X), expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(embedding))(X), embedding(X))


def test_embedding_of_texts_stays_sparse() -> None:
    texts = ["a word", "two words", "a word or two"]
    model = make_pipeline(CountVectorizer(), MultinomialNB()).fit(texts, [0, 1, 1])
    features = get_embedding(model)(texts)
    assert sparse.issparse(features)
    assert (features != model[0].transform(texts)).nnz == 0


@pytest.mark.parametrize(
    "model",
    [
        RandomForestClassifier(2).fit(X, Y),
        make_pipeline(GaussianNB()).fit(X, Y),
        GridSearchCV(GaussianNB(), {}, cv=2).fit(X, Y),
        Committee([Learner(pipeline().fit(X, Y))]),
        [pipeline().fit(X, Y)],
        StandardScaler,
        PredictionSamples(np.full((30, 2, 2), 0.5)),
        np.zeros((30, 2, 2)),
        None,
    ],
    ids=lambda model: type(model).__name__,
)
def test_other_objects_have_no_embedding(model: Any) -> None:
    assert get_embedding(model) is None


def test_embedding_of_a_model_that_is_not_fitted_raises() -> None:
    with pytest.raises(NotFittedError, match="GridSearchCV is not fitted yet"):
        get_embedding(GridSearchCV(pipeline(), {}))
    with pytest.raises(NotFittedError):
        get_embedding(pipeline())(X)


def test_embedding_of_a_registered_class_is_what_was_registered() -> None:
    class Odd(LogisticRegression):
        pass

    get_embedding.register(Odd, lambda model: np.negative)
    steps = make_pipeline(StandardScaler(), Odd()).fit(X, Y)
    np.testing.assert_array_equal(get_embedding(steps)(X), -steps[0].transform(X))


torch = pytest.importorskip("torch")
skorch = pytest.importorskip("skorch")
F = torch.nn.functional
# Copies of nets: skorch 1.1 loads its own pickles in a way that torch 2.5 warns about.
pytestmark = pytest.mark.filterwarnings("ignore:You are using .torch.load.:FutureWarning")


class HeadFirst(torch.nn.Module):
    """A net that names its layers in another order than it runs them, with every dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.head = torch.nn.Linear(6, 3)
        self.dropout = torch.nn.Dropout(0.5)
        self.body = torch.nn.Linear(4, 6)
        self.unused = torch.nn.Linear(2, 2)

    def forward(self, X: Any) -> Any:
        hidden = F.dropout(self.dropout(torch.relu(self.body(X))), training=True)
        return torch.softmax(self.head(input=hidden), dim=-1)

    def features(self, X: np.ndarray) -> np.ndarray:
        """Return what `head` gets without dropout."""
        return torch.relu(self.body(torch.from_numpy(X))).detach().numpy()


def head_first() -> HeadFirst:
    torch.manual_seed(0)
    return HeadFirst()


def classifier(module: Any, **params: Any) -> Any:
    return skorch.NeuralNetClassifier(
        module, max_epochs=1, verbose=0, train_split=None, iterator_valid__batch_size=7, **params
    )


def test_embedding_of_a_module_is_the_input_of_the_last_linear_layer_that_ran() -> None:
    net = head_first()
    features = get_embedding(net)(X)
    assert features.dtype == np.float32
    np.testing.assert_array_equal(features, net.features(X))


def test_embedding_of_a_skorch_net_is_the_same_in_batches_and_behind_steps() -> None:
    net = classifier(head_first()).fit(X, Y)
    np.testing.assert_allclose(get_embedding(net)(X), net.module_.features(X), rtol=1e-6)
    found = GridSearchCV(make_pipeline(StandardScaler(), classifier(HeadFirst)), {}, cv=2).fit(X, Y)
    steps = found.best_estimator_
    expected = steps[-1].module_.features(steps[0].transform(X))
    np.testing.assert_allclose(get_embedding(found)(X), expected, rtol=1e-6)


def test_embedding_leaves_the_net_as_it_was() -> None:
    net = head_first()
    net.body.eval()
    weights = {name: value.clone() for name, value in net.state_dict().items()}
    embedding, generator = get_embedding(net), torch.get_rng_state()
    before = embedding(X)
    assert [module.training for module in net.modules()] == [True, True, True, False, True]
    assert not any(module._forward_pre_hooks for module in net.modules())
    assert all(torch.equal(value, weights[name]) for name, value in net.state_dict().items())
    assert all(value.grad is None for value in net.parameters())
    assert torch.equal(torch.get_rng_state(), generator)
    with torch.no_grad():
        net.body.weight.zero_()  # later training
    np.testing.assert_array_equal(embedding(X), before)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(embedding))(X), before)


def test_embedding_of_steps_in_time_is_flat() -> None:
    net = torch.nn.Sequential(torch.nn.Unflatten(1, (2, 2)), torch.nn.Linear(2, 3))
    np.testing.assert_array_equal(get_embedding(net)(X), X)


def test_net_without_a_linear_layer_has_no_embedding() -> None:
    assert get_embedding(torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Softmax(dim=-1))) is None


class SequenceFirst(torch.nn.Linear):
    """A net whose linear layer has the rows on its second axis."""

    def __init__(self) -> None:
        super().__init__(1, 2)
        self.layer = torch.nn.Linear(1, 2)

    def forward(self, X: Any) -> Any:
        return self.layer(X.T[:, :, None])[0]


class Idle(HeadFirst):
    """A net that runs no linear layer."""

    def forward(self, X: Any) -> Any:
        return X[:, :2]


@pytest.mark.parametrize(
    ("net", "shape"), [(SequenceFirst(), r"\(4, 30, 1\)"), (Idle(), "None")], ids=["time", "idle"]
)
def test_linear_layer_that_does_not_have_the_rows_is_refused(net: Any, shape: str) -> None:
    message = (
        rf"^The last linear layer of {type(net).__name__} must run, and its input must have one "
        rf"entry for each of the 30 rows .* Got an input of shape {shape} in get_embedding; pass "
    )
    with pytest.raises(UnsupportedModelError, match=message):
        get_embedding(net)(X)


def test_embedding_of_a_net_that_is_not_fitted_raises() -> None:
    with pytest.raises(NotFittedError, match="NeuralNetClassifier is not fitted yet"):
        get_embedding(classifier(HeadFirst))
