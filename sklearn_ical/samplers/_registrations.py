"""All registrations of samplers, means and embeddings of models.

A model is looked up by its class; an object of a package that may not be installed, by the name of
the package; other objects, by their attributes. Only ActiveLearner, which is of a higher layer,
registers itself elsewhere.
"""

from importlib import import_module
from typing import Any

from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import (
    BaggingClassifier,
    BaggingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.linear_model import ARDRegression, BayesianRidge
from sklearn.model_selection import FixedThresholdClassifier, TunedThresholdClassifierCV
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import Pipeline
from sklearn.semi_supervised import SelfTrainingClassifier

from sklearn_ical import _array
from sklearn_ical.samplers._base import Draws, get_embedding, get_mean, get_sampler
from sklearn_ical.samplers._bayesian_linear import BayesianLinearSampler
from sklearn_ical.samplers._bootstrap import bootstrap_sampler
from sklearn_ical.samplers._containers import (
    decider_sampler,
    frozen_sampler,
    learner_sampler,
    pipeline_sampler,
    target_sampler,
)
from sklearn_ical.samplers._embeddings import net_embedding, pipeline_embedding
from sklearn_ical.samplers._ensemble import EnsembleSampler, calibrated_sampler, list_sampler
from sklearn_ical.samplers._forest import FORESTS
from sklearn_ical.samplers._gaussian_process import (
    GaussianProcessSampler,
    process_classifier_sampler,
)
from sklearn_ical.samplers._label_codes import EncodedClassifier, encoded_sampler
from sklearn_ical.samplers._means import (
    model_mean,
    net_mean,
    outputs_mean,
    pipeline_mean,
    target_mean,
)
from sklearn_ical.samplers._models import (
    chosen_by,
    is_learner,
    is_net,
    is_search,
    model_inside,
)
from sklearn_ical.samplers._precomputed import SamplesSampler
from sklearn_ical.samples import PredictionSamples

# The sampler of each class.
SAMPLERS: dict[type, Any] = {
    **dict.fromkeys(FORESTS, EnsembleSampler),
    BaggingClassifier: EnsembleSampler,
    BaggingRegressor: EnsembleSampler,
    VotingClassifier: EnsembleSampler,
    VotingRegressor: EnsembleSampler,
    CalibratedClassifierCV: calibrated_sampler,
    dict: EnsembleSampler,
    list: list_sampler,
    tuple: list_sampler,
    BayesianRidge: BayesianLinearSampler,
    ARDRegression: BayesianLinearSampler,
    GaussianProcessRegressor: GaussianProcessSampler,
    GaussianProcessClassifier: process_classifier_sampler,
    PredictionSamples: SamplesSampler,
    Pipeline: pipeline_sampler,
    TransformedTargetRegressor: target_sampler,
    FrozenEstimator: frozen_sampler,
    EncodedClassifier: encoded_sampler,
    FixedThresholdClassifier: decider_sampler,
    TunedThresholdClassifierCV: decider_sampler,
    SelfTrainingClassifier: decider_sampler,
}
# Files with a function `find_sampler` for the models of a package; loaded only for objects of that
# package.
BY_PACKAGE = {
    "catboost": "sklearn_ical.samplers._boosting",
    "skactiveml": "sklearn_ical.samplers._skactiveml",
    "skorch": "sklearn_ical.samplers._net_samplers",
    "torch": "sklearn_ical.samplers._net_samplers",
    "xgboost": "sklearn_ical.samplers._boosting",
}

for model_class, make_sampler in SAMPLERS.items():
    get_sampler.register(model_class, make_sampler)
get_mean.register(Pipeline, pipeline_mean)
get_mean.register(TransformedTargetRegressor, target_mean)
get_mean.register(MultiOutputRegressor, outputs_mean)
get_embedding.register(Pipeline, pipeline_embedding)
get_embedding.register(EncodedClassifier, lambda model: get_embedding(model.estimator))


def unregistered_sampler(model: Any) -> Any:
    """Return the sampler of a model whose class is not registered, its bootstrap by default."""
    if _array.is_array(model):
        return get_sampler(PredictionSamples(model))
    if is_search(model):
        return get_sampler(chosen_by(model))
    if is_learner(model):
        return learner_sampler(model)
    return _package_sampler(model) or bootstrap_sampler(model)


def unregistered_mean(model: Any) -> Draws | None:
    """Return the mean of a model whose class is not registered, or None."""
    if isinstance(model, type):
        return None
    if is_net(model):
        return net_mean(model)
    inside = model_inside(model)
    if inside is not None:
        return get_mean(inside)
    # A committee has the mean of its members' draws: all committees have predict_proba, or predict
    # with return_std, whatever their members are.
    return None if is_learner(model) else model_mean(model)


def unregistered_embedding(model: Any) -> Any:
    """Return the embedding of a model whose class is not registered, or None."""
    if isinstance(model, type):
        return None
    if is_net(model):
        return net_embedding(model)
    inside = model_inside(model)
    return None if inside is None else get_embedding(inside)


def _package_sampler(model: Any) -> Any:
    """Return the sampler of a model from the file for its package, or None."""
    for cls in type(model).__mro__:
        module = BY_PACKAGE.get(cls.__module__.partition(".")[0])
        if module is not None:
            return import_module(module).find_sampler(model)
    return None
