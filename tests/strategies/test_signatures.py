"""One `query` and one `select` for all strategies, with the arguments of the documents."""

import inspect

import pytest

from sklearn_ical import BaseQuery
from sklearn_ical.strategies import PointwiseQuery, all_strategies

PARAMETERS = {
    "query": (
        "model X_pool batch_size candidates X_labeled y_labeled fit_params X_reference reference "
        "features labeled_features reference_features costs budget return_utilities"
    ),
    "select": (
        "samples batch_size candidates X_pool X_labeled y_labeled features labeled_features "
        "reference_features labeled_samples reference_samples reference costs budget "
        "return_utilities"
    ),
}
DEFAULTS = {"batch_size": 1, "return_utilities": False}
REQUIRED = {"model", "X_pool"}


@pytest.mark.parametrize("strategy", [*all_strategies(), PointwiseQuery], ids=lambda s: s.__name__)
def test_no_strategy_overrides_query_select_and_call(strategy: type) -> None:
    for name in ("query", "select", "__call__", "_choose"):
        owners = [each for each in strategy.__mro__ if name in vars(each)]
        assert owners[0] is BaseQuery, name


@pytest.mark.parametrize("method", PARAMETERS)
def test_arguments_come_in_the_order_of_the_documents(method: str) -> None:
    _, *parameters = inspect.signature(getattr(BaseQuery, method)).parameters.values()
    assert [parameter.name for parameter in parameters] == PARAMETERS[method].split()
    required = REQUIRED if method == "query" else set()
    for parameter in parameters:
        first = parameter.name in ("model", "samples", "batch_size") or parameter.name in required
        assert (parameter.kind is parameter.POSITIONAL_OR_KEYWORD) == first, parameter.name
        expected = DEFAULTS.get(parameter.name)
        if parameter.name in required:
            expected = parameter.empty
        assert parameter.default is expected, parameter.name
