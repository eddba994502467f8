"""Covariances of observed label vectors: standard units, and inverses where they are singular."""

from sklearn_ical import _array
from sklearn_ical._array import Array

# Directions of less variance, relative to that of an output, are rounding and count as known.
DAMPING = 1e-9
# Smaller variances lose precision, also in sums of products.
SMALLEST = 1e-305


def inverse(matrices: Array) -> Array:
    """Return pseudo-inverses of (n, size, size) covariances whose entries are about 1.

    An eigenvalue v becomes v / (v^2 + DAMPING^2), the real part of 1 / (v + i DAMPING): 1 / v up to
    a relative (DAMPING / v)^2, and about 0 for rounding in place of 0. So no rank has to be
    determined, and nearly singular matrices have about the same inverse as singular ones.
    """
    xp, device = _array.namespace(matrices), _array.device(matrices)
    identity = xp.eye(matrices.shape[1], dtype=xp.complex128, device=device)
    shifted = xp.astype(matrices, xp.complex128) + identity * (1j * DAMPING)
    return xp.real(xp.linalg.inv(shifted))


def inverse_root(x: Array) -> Array:
    """Return 1 / sqrt(x), and 0 where x is negligible: a constant output has no scale."""
    xp = _array.namespace(x)
    varies = x > SMALLEST
    return xp.where(varies, 1 / xp.sqrt(xp.where(varies, x, xp.ones_like(x))), xp.zeros_like(x))


def whitening(covariance: Array) -> tuple[Array, Array]:
    """Return W with W W' the pseudo-inverses of (n, size, size) covariances, as in `inverse`.

    Also bounds by which relative errors of a covariance are magnified in W W', (n,).
    """
    xp = _array.namespace(covariance)
    diagonal = xp.linalg.diagonal(covariance)
    factors = inverse_root(diagonal)
    units = factors[:, :, None] * factors[:, None, :]
    values, vectors = xp.linalg.eigh(covariance * units)
    values = xp.where(values > 0, values, xp.zeros_like(values))
    inverses = values / (values**2 + DAMPING**2)
    magnified = xp.max(inverses**2 * values, axis=1)
    return factors[:, :, None] * vectors * xp.sqrt(inverses)[:, None, :], magnified
