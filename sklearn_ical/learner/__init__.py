"""ActiveLearner: a model, the labels it was fitted on and the strategy that asks for more."""

from sklearn_ical.learner._learner import ActiveLearner

__all__ = ["ActiveLearner"]
