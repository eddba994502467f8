"""ActiveLearner: a model, the labels it was fitted on and a query strategy."""

from sklearn_ical.learner._learner import ActiveLearner

__all__ = ["ActiveLearner"]
