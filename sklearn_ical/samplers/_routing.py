"""Which of the arguments of a model's `fit` go to a part of it, as its own `fit` passes them on."""

import inspect
from typing import Any

import sklearn
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import MetadataRouter, process_routing

from sklearn_ical._fit_params import FitParams
from sklearn_ical.exceptions import UnsupportedModelError
from sklearn_ical.samplers._models import is_search, model_inside, name_of, refittable


def _routes(model: Any) -> bool:
    """Return whether a model passes arguments on by scikit-learn's metadata routing."""
    enabled = sklearn.get_config()["enable_metadata_routing"] and not isinstance(model, type)
    request = getattr(model, "get_metadata_routing", None) if enabled else None
    try:
        return request is not None and isinstance(request(), MetadataRouter)
    except NotImplementedError:  # of those of scikit-learn that do not route
        return False


def params_of_chosen(model: Any, params: FitParams) -> FitParams:
    """Return the arguments for the model inside a search, a frozen model or a learner."""
    while params and (inside := model_inside(model)) is not None:
        if _routes(model):
            params = params.renamed(process_routing(model, "fit", **params)["estimator"]["fit"])
        elif is_search(model) and "groups" in params:  # for the splitter
            params = params.renamed({k: v for k, v in params.items() if k != "groups"})
        model = inside
    return params


def params_of_refit(model: Any, params: FitParams) -> FitParams:
    """Return the arguments for what the sampler of a fitted model refits.

    As :func:`params_of_chosen`, also for a search at the end of a Pipeline, which is replaced by
    the model that it chose.
    """
    params = params_of_chosen(model, params)
    model = refittable(model) if params else None
    if not isinstance(model, Pipeline) or _routes(model):
        return params
    name, last = model.steps[-1]
    inner = params_of_refit(last, params_of_step(model, name, params))
    others = {k: value for k, value in params.items() if not k.startswith(f"{name}__")}
    return params.renamed(others | {f"{name}__{k}": value for k, value in inner.items()})


def params_of_part(pipeline: Any, part: Any, params: FitParams) -> FitParams:
    """Return the arguments for the `fit` of the last step of a Pipeline, or of some of its steps.

    `part` is the last step itself, or a Pipeline of the steps from one on.
    """
    name, last = pipeline.steps[-1]
    if part is last:
        return params_of_step(pipeline, name, params)
    kept = [name for name, _ in part.steps]
    if not _routes(pipeline):
        return params.renamed({k: v for k, v in params.items() if k.partition("__")[0] in kept})
    routed = process_routing(pipeline, "fit", **params)
    used = {id(v) for step in kept for given in routed[step].values() for v in given.values()}
    return params.renamed({k: v for k, v in params.items() if id(v) in used})


def params_of_step(pipeline: Any, step: str, params: FitParams) -> FitParams:
    """Return the arguments for the `fit` of one step of a Pipeline."""
    if params and _routes(pipeline):
        return params.renamed(process_routing(pipeline, "fit", **params)[step]["fit"])
    prefix = f"{step}__"
    return params.renamed(
        {k.removeprefix(prefix): v for k, v in params.items() if k.startswith(prefix)}
    )


def check_accepted(model: Any, params: FitParams, caller: str) -> None:
    """Raise if the `fit` of a model, or of what it passes arguments on to, lacks one of them."""
    if not params:
        return
    if _routes(model):
        process_routing(model, "fit", **params)
    elif isinstance(model, Pipeline):
        _check_steps(model, params, caller)
    elif not _takes_any(model):
        known = inspect.signature(model.fit).parameters
        _raise_for([name for name in params if name not in known], name_of(model), caller)
    elif is_search(model):
        groups = {name: value for name, value in params.items() if name != "groups"}
        check_accepted(model.estimator, params.renamed(groups), caller)


def _check_steps(pipeline: Any, params: FitParams, caller: str) -> None:
    """Raise if an argument is not one of the `fit` of a step, as ``step__name``."""
    steps = dict(pipeline.steps)
    for name in params:
        step, divider, inner = name.partition("__")
        if not divider or step not in steps:
            raise ValueError(
                f"fit_params of a Pipeline must have names of the form step__name, with a step of "
                f"{list(steps)}. Got {name!r} in {caller}; pass {list(steps)[-1]}__{name}."
            )
        model = steps[step]
        if hasattr(model, "fit"):
            check_accepted(model, params.renamed({inner: params[name]}), caller)


def _takes_any(model: Any) -> bool:
    """Return whether `fit` takes arguments of any name, as where it passes them on."""
    try:
        parameters = inspect.signature(model.fit).parameters.values()
    except (TypeError, ValueError):  # of a compiled function
        return True
    return any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)


def _raise_for(names: list[str], model: str, caller: str) -> None:
    if names:
        raise UnsupportedModelError(
            f"fit_params must hold arguments of the model's fit. Got {names[0]!r} in {caller}, "
            f"which fit of {model} does not take; leave it out, or use a model that does."
        )
