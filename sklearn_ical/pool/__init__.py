"""What one call sees: the rows of the pool, of the reference and of the labeled set."""

from sklearn_ical.pool._pool import Pool, RowSet

__all__ = ["Pool", "RowSet"]
