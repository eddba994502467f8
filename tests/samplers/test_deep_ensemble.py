"""DeepEnsembleSampler, and nets as members among scikit-learn models."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

from sklearn_ical import ICALQuery, MarginQuery, MaxEntropyQuery
from sklearn_ical.exceptions import UnsupportedModelError
from sklearn_ical.samplers import DeepEnsembleSampler, EnsembleSampler, get_sampler
from sklearn_ical.testing import check_sampler

torch = pytest.importorskip("torch")
skorch = pytest.importorskip("skorch")

# Copies of nets: skorch 1.1 loads its own pickles in a way that torch 2.5 warns about.
pytestmark = pytest.mark.filterwarnings("ignore:You are using .torch.load.:FutureWarning")

X = np.random.default_rng(0).normal(size=(40, 4)).astype(np.float32)
CODES = (X[:, 0] > 0).astype(np.int64) + (X[:, 1] > 0.5)


def module(seed: int, n_outputs: int = 3) -> Any:
    torch.manual_seed(seed)
    return torch.nn.Sequential(
        torch.nn.Linear(4, 6), torch.nn.ReLU(), torch.nn.Linear(6, n_outputs)
    )


def classifier(seed: int, y: np.ndarray = CODES, **params: Any) -> Any:
    net = skorch.NeuralNetClassifier(
        module(seed), criterion=torch.nn.CrossEntropyLoss, max_epochs=1, verbose=0,
        train_split=None, **params,
    )  # fmt: skip
    return net.fit(X, y)


def proba(net: Any) -> np.ndarray:
    return torch.softmax(net.module_(torch.from_numpy(X)), dim=-1).detach().numpy()


def test_members_are_draws_in_their_order() -> None:
    nets = [classifier(seed) for seed in range(3)]
    samples = get_sampler(nets).sample(X)
    assert isinstance(samples.values, torch.Tensor)
    expected = np.stack([proba(net) for net in nets], axis=1)
    np.testing.assert_allclose(samples.values, expected, rtol=1e-6, atol=1e-7)


def test_modules_with_a_nonlinearity_and_of_values() -> None:
    nets = [module(0), module(1)]
    logits = np.stack([net(torch.from_numpy(X)).detach().numpy() for net in nets], axis=1)
    values = DeepEnsembleSampler(nets, kind="value").sample(X).values
    np.testing.assert_allclose(values, logits, rtol=1e-6, atol=1e-6)
    sampler = DeepEnsembleSampler(nets, nonlinearity=torch.nn.Softmax(dim=-1), classes=list("abc"))
    samples = sampler.sample(X)
    np.testing.assert_allclose(
        samples.values, torch.softmax(torch.from_numpy(logits), dim=-1), atol=1e-6
    )
    assert samples.classes.tolist() == ["a", "b", "c"]


def test_ensemble_keeps_the_protocol_of_samplers() -> None:
    check_sampler(get_sampler([classifier(0), classifier(1), classifier(2)]), X)
    check_sampler([classifier(0), RandomForestClassifier(3, random_state=0).fit(X, CODES)], X)


def test_states_of_files_are_those_of_the_nets(tmp_path: Path) -> None:
    nets = [classifier(seed) for seed in range(3)]
    nets[0].save_params(f_params=tmp_path / "0.pt")
    torch.save(nets[1].module_.state_dict(), tmp_path / "1.pt")
    members = [tmp_path / "0.pt", str(tmp_path / "1.pt"), nets[2]]
    before = {name: value.clone() for name, value in nets[2].module_.state_dict().items()}
    draws = DeepEnsembleSampler(members, template=nets[2]).draw()
    expected = get_sampler(nets).sample(X).values
    assert torch.equal(draws(X).values, expected)
    assert torch.equal(pickle.loads(pickle.dumps(draws))(X).values, expected)
    assert all(torch.equal(before[k], v) for k, v in nets[2].module_.state_dict().items())


def test_training_after_draw_does_not_reach_the_draws() -> None:
    net = classifier(0)
    for draws in (get_sampler([net]).draw(), get_sampler({"net": net}).draw()):
        before = np.asarray(draws(X).values).copy()
        net.partial_fit(X, CODES[::-1].copy())
        np.testing.assert_array_equal(draws(X).values, before)


def test_columns_follow_the_union_of_classes() -> None:
    two = skorch.NeuralNetClassifier(
        module(3, 2), criterion=torch.nn.CrossEntropyLoss, max_epochs=0, verbose=0, classes=[2, 5]
    ).initialize()
    three = classifier(0)
    samples = get_sampler([three, two]).sample(X)
    assert samples.classes.tolist() == [0, 1, 2, 5]
    np.testing.assert_allclose(samples.values[:, 1, [2, 3]], proba(two), atol=1e-6)
    assert bool((samples.values[:, 1, :2] == 0).all() and (samples.values[:, 0, 3] == 0).all())


def test_three_outputs_fitted_on_two_labels_name_their_columns_by_place() -> None:
    net = classifier(0, np.where(CODES == 1, 0, CODES))
    assert net.classes_.tolist() == [0, 2]
    forest = RandomForestClassifier(3, random_state=0).fit(X, CODES)
    for models in ([net, net], [net, forest]):
        samples = get_sampler(models).sample(X)
        assert samples.classes.tolist() == [0, 1, 2]
        np.testing.assert_allclose(np.asarray(samples.values)[:, 0], proba(net), atol=1e-6)
    picks = MarginQuery().query(net, X, batch_size=3)
    margins = np.diff(np.sort(proba(net), axis=1)[:, -2:], axis=1)[:, 0]
    np.testing.assert_array_equal(picks, np.argsort(margins)[:3])


def test_net_and_forest_in_a_list_are_two_draws() -> None:
    net, forest = classifier(0), RandomForestClassifier(3, random_state=0).fit(X, CODES)
    sampler = get_sampler([net, forest])
    assert isinstance(sampler, EnsembleSampler)
    values = np.asarray(sampler.sample(X).values)
    np.testing.assert_allclose(values[:, 0], proba(net), atol=1e-6)
    np.testing.assert_allclose(values[:, 1], forest.predict_proba(X), atol=1e-6)
    assert len(ICALQuery(random_state=0).query([net, forest], X, batch_size=4)) == 4


def test_regressor_nets_mix_with_regressors() -> None:
    targets = X[:, :1] ** 2
    net = skorch.NeuralNetRegressor(module(0, 1), max_epochs=1, verbose=0).fit(X, targets)
    forest = RandomForestRegressor(3, random_state=0).fit(X, targets[:, 0])
    values = np.asarray(get_sampler([net, forest]).sample(X).values)
    np.testing.assert_allclose(values[:, 0], net.predict(X)[:, 0], atol=1e-6)
    np.testing.assert_allclose(values[:, 1], forest.predict(X), atol=1e-6)
    assert len(MaxEntropyQuery().query([net, forest], X, batch_size=4)) == 4


def test_weights_and_subsets_are_those_of_members() -> None:
    nets = [classifier(seed) for seed in range(4)]
    sampler = DeepEnsembleSampler(nets, weights=[1, 2, 3, 4])
    np.testing.assert_allclose(sampler.sample(X).weights, [0.1, 0.2, 0.3, 0.4])
    draws: Any = sampler.draw(2, random_state=0)
    full = [np.asarray(get_sampler([net]).sample(X).values[:, 0]) for net in nets]
    taken = [
        k for k in range(4) if any(np.array_equal(full[k], v) for v in draws(X).values.unbind(1))
    ]
    assert len(taken) == 2
    np.testing.assert_allclose(draws.weights, (np.array(taken) + 1) / (sum(taken) + 2))


@pytest.mark.parametrize("training", [True, False])
def test_modes_and_generators_come_back(training: bool) -> None:
    net = classifier(0)
    net.module_.train(training)
    state = torch.get_rng_state()
    get_sampler([net, net]).sample(X)
    MarginQuery().query(net, X, batch_size=2)
    assert all(part.training is training for part in net.module_.modules())
    assert torch.equal(state, torch.get_rng_state())


def test_files_are_refused_by_name(tmp_path: Path) -> None:
    net = classifier(0)
    torch.save(module(0, 4).state_dict(), tmp_path / "other.pt")
    torch.save(module(0), tmp_path / "code.pt")
    (tmp_path / "text.pt").write_text("no state")
    for name, error, said in (
        ("none.pt", FileNotFoundError, "There is no state file"),
        ("other.pt", ValueError, r"must fit the template of DeepEnsembleSampler.*2\.bias"),
        ("code.pt", ValueError, "must hold a state_dict"),
        ("text.pt", ValueError, "must hold a state_dict"),
    ):
        with pytest.raises(error, match=said):
            DeepEnsembleSampler([tmp_path / name], template=net).draw()
    with pytest.raises(ValueError, match="template must be the net"):
        DeepEnsembleSampler([tmp_path / "other.pt"]).draw()


def test_members_that_are_no_nets_are_refused_by_place() -> None:
    net, forest = classifier(0), RandomForestClassifier(3).fit(X, CODES)
    with pytest.raises(UnsupportedModelError, match="Member 1 must be a fitted skorch net"):
        DeepEnsembleSampler([net, forest]).draw()
    with pytest.raises(UnsupportedModelError, match="at least one fitted net"):
        DeepEnsembleSampler([]).draw()
    regressor = skorch.NeuralNetRegressor(module(0, 1), max_epochs=0, verbose=0).initialize()
    with pytest.raises(UnsupportedModelError, match="all classifiers or all regressors"):
        DeepEnsembleSampler([net, regressor]).draw()
    with pytest.raises(ValueError, match="must give class probabilities"):
        DeepEnsembleSampler([module(0)]).sample(X)
