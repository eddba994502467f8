"""Fixed masks without a batch axis, one set for each draw, and their use in a pass.

Nets, rows and chunks are not known here.
"""

from typing import Any

import numpy as np
import torch

from sklearn_ical._random import DRAWS
from sklearn_ical.samplers._torch._dropout import Call, DropoutMode, NotSteadyError

# SELU's limit for large negative inputs, negated.
ALPHA = 1.7580993408473766


class NotExpandableError(NotSteadyError):
    """Rows cannot become rows x draws at the first dropout of a net."""


class Masks:
    """The masks of all draws for every dropout call, made on first use.

    Parameters
    ----------
    root : int
        The root seed: the mask of draw k at call j keeps an entry where the stream of its own,
        ``SeedSequence(root, spawn_key=(DRAWS, k, j))``, is at least p.
    n_draws : int
    """

    def __init__(self, root: int, n_draws: int) -> None:
        self.root = root
        self.n_draws = n_draws
        self._made: dict[Any, Any] = {}

    def keep(self, j: int, call: Call, like: Any) -> Any:
        """Return the masks of call j, 1 where it keeps, (n_draws, *mask_shape)."""
        key = (j, like.device, like.dtype)
        if key not in self._made:
            self._made[key] = self._drawn(j, call, like)
        return self._made[key]

    def affine(self, j: int, call: Call, like: Any) -> tuple[Any, Any]:
        """Return the factor of the input of call j, and what is added to it or None."""
        key = (j, like.device, like.dtype)
        if key not in self._made:
            keep, p = self._drawn(j, call, like), call.p
            scale, shift = (keep / (1 - p) if p < 1 else torch.zeros_like(keep)), None
            if call.alpha and p < 1:
                a = ((ALPHA**2 * p + 1) * (1 - p)) ** -0.5
                scale, shift = a * keep, ALPHA * a * (keep - 1 + p)
            self._made[key] = scale, shift
        return self._made[key]

    def _drawn(self, j: int, call: Call, like: Any) -> Any:
        keep = np.empty((self.n_draws, *call.mask_shape), dtype=bool)
        for k in range(self.n_draws):
            seed = np.random.SeedSequence(self.root, spawn_key=(DRAWS, k, j))
            uniforms = np.random.Generator(np.random.PCG64(seed)).random(call.mask_shape)
            np.greater_equal(uniforms, call.p, out=keep[k])
        return torch.from_numpy(keep).to(like.device, like.dtype)


class Masked(DropoutMode):
    """Applies the masks of some draws to a pass over rows.

    Parameters
    ----------
    calls : list of Call
        Those of the net, located.
    masks : Masks
    n_rows : int
        Number of input rows.
    draws : slice
        Draws to apply: one, or with `expand` any number. Rows then become rows x draws at the first
        call, each row followed by itself for all draws.
    expand : bool
    """

    def __init__(
        self, calls: list[Call], masks: Masks, n_rows: int, draws: slice, *, expand: bool
    ) -> None:
        super().__init__()
        self.calls = calls
        self.masks = masks
        self.n_rows = n_rows
        self.draws = draws
        self.expand = expand

    def drop(self, x: Any, call: Call, inplace: bool) -> Any:
        known = self._known(call)
        parts = self.masks.affine(self.n_calls, known, x)
        scale, shift = (None if m is None else self._laid(m, known) for m in parts)
        wide, shape = self._wide(x, known)
        result = wide * scale if shift is None else wide * scale + shift
        result = result.reshape(shape)
        # A net that also uses its input after this point fails, as there are more rows now.
        return x.copy_(result) if inplace and result.shape == x.shape else result

    def keep(self, like: Any, call: Call) -> Any:
        known = self._known(call)
        if self.expand and self.n_calls == 0:
            raise NotExpandableError("has its first dropout inside attention or recurrence")
        keep = self._laid(self.masks.keep(self.n_calls, known, like), known)
        wide, shape = self._wide(like, known)
        return keep.expand(wide.shape).reshape(shape)

    def check_end(self) -> None:
        """Raise if a pass ended with fewer calls than expected."""
        if self.n_calls < len(self.calls):
            raise NotSteadyError(
                f"makes {self.n_calls} dropout calls for some rows and {len(self.calls)} for others"
            )

    def _known(self, call: Call) -> Call:
        """Return the call as it was located; raise if it is not the same."""
        if self.n_calls >= len(self.calls):
            raise NotSteadyError("makes more dropout calls for some rows than for others")
        known = self.calls[self.n_calls]
        rows = self.n_rows
        if self.expand and self.n_calls > 0:
            rows *= self.draws.stop - self.draws.start
        expected = list(known.shape)
        if known.axis >= 0:
            expected[known.axis] = rows * known.factor
        if (call.p, call.alpha, call.shape) != (known.p, known.alpha, tuple(expected)):
            raise NotSteadyError(
                f"drops {call.shape} entries with p={call.p} where {tuple(expected)} with "
                f"p={known.p} were expected"
            )
        return known

    def _laid(self, masks: Any, call: Call) -> Any:
        """Return masks (n_draws, *mask_shape) with the axes of :meth:`_wide`."""
        if not self.expand:
            mask = masks[self.draws.start]
            return mask.unsqueeze(call.axis) if call.axis >= 0 else mask
        if call.axis < 0:
            raise NotExpandableError("drops entries of a tensor without rows")
        chosen = masks[self.draws].movedim(0, call.axis)
        return chosen.unsqueeze(call.axis)  # (..., 1, n_draws, 1 or factor, ...)

    def _wide(self, x: Any, call: Call) -> tuple[Any, tuple[int, ...]]:
        """Return `x` with separate axes for rows and draws, and the shape of the result."""
        shape = tuple(x.shape)
        before, after = shape[: call.axis], shape[call.axis + 1 :]
        if self.expand:
            n_draws = self.draws.stop - self.draws.start
            here = 1 if self.n_calls == 0 else n_draws
            wide = x.reshape((*before, self.n_rows, here, call.factor, *after))
            return wide, (*before, self.n_rows * n_draws * call.factor, *after)
        if call.axis >= 0:
            return x.reshape((*before, self.n_rows, call.factor, *after)), shape
        return x, shape
