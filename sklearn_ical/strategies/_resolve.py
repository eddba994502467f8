"""Strategies by name: all classes of the list, and parameters that may be names."""

import inspect
from importlib import import_module
from typing import Any

from sklearn.base import clone

from sklearn_ical._names import STRATEGIES, Named, check_name


def all_strategies() -> list[type]:
    """Return the classes of all query strategies of the package.

    Returns
    -------
    classes : list of type
        In the order of ``sklearn-ical strategies``. :class:`~sklearn_ical.StochasticQuery` and
        :class:`~sklearn_ical.FilteredQuery` are built from other strategies, all others without
        arguments.

    Examples
    --------
    >>> from sklearn_ical.strategies import all_strategies
    >>> [strategy.__name__ for strategy in all_strategies()][:3]
    ['RandomQuery', 'MaxEntropyQuery', 'MarginQuery']
    """
    return [_class_of(named) for named in STRATEGIES.values()]


def resolve_strategy(value: Any, parameter: str, caller: str) -> Any:
    """Return the strategy of a parameter.

    A name gives an instance of its class with default parameters. A composite strategy of which
    some parts are names gives a clone with objects in their place, so that every `random_state`
    in it can be set. Anything else is returned as it is, for the caller to check. The value is
    never changed.

    Parameters
    ----------
    value : str or object
        Value of the parameter.
    parameter, caller : str
        The parameter and the function or class that it belongs to, for the error.

    Returns
    -------
    strategy : object

    Raises
    ------
    ValueError
        If `value`, or a part of it, is a string that names no strategy.
    """
    if isinstance(value, str):
        check_name(value, parameter, caller)
        return build(value)
    if isinstance(value, type):
        return value
    parts = {name: getattr(value, name) for name in getattr(value, "_part_names", ())}
    resolved = {
        name: resolve_strategy(part, name, type(value).__name__) for name, part in parts.items()
    }
    changed = {name: part for name, part in resolved.items() if part is not parts[name]}
    return clone(value).set_params(**changed) if changed else value


def needs_model(strategy: Any) -> bool:
    """Return whether a strategy needs a fitted model; True without tags."""
    if not hasattr(strategy, "query_tags"):
        return True
    return bool({"draws", "mean", "gradients", "refits"} & set(strategy.query_tags().reads))


def takes_labeled(strategy: Any) -> bool:
    """Return whether a strategy, or the sampler of its model, may use the labeled rows."""
    if not hasattr(strategy, "query_tags"):
        return False
    tags = strategy.query_tags()
    return needs_model(strategy) or "labeled" in (*tags.reads, *tags.uses)


def takes_fit_params(strategy: Any) -> bool:
    """Return whether the `query` of a strategy has the argument `fit_params`."""
    parameters = inspect.signature(strategy.query).parameters.values()
    return any(p.name == "fit_params" or p.kind is p.VAR_KEYWORD for p in parameters)


def build(name: str) -> Any:
    """Return the strategy of a name in the list, with default parameters."""
    named = STRATEGIES[name]
    return _class_of(named)(*map(build, named.parts))


def _class_of(named: Named) -> type:
    module = import_module(f"sklearn_ical.strategies.{named.module}")
    return getattr(module, named.class_name)
