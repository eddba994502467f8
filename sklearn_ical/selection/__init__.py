"""How a batch is picked: exact ties, costs and budgets, greedily."""

from sklearn_ical.selection._batch import Batch, Selection, best_k
from sklearn_ical.selection._maximize import Objective, maximize

__all__ = ["Batch", "Objective", "Selection", "best_k", "maximize"]
