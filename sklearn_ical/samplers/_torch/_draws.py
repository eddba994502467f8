"""Draws of a net by dropout masks: the plain way, one pass per draw, and the fast way, one for all.

In the fast way rows become rows x draws at the first dropout, so that the layers before it are run
once per row. It is used only where a comparison showed that both give the same.
"""

import logging
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch

from sklearn_ical import _array
from sklearn_ical._validation import warn
from sklearn_ical.exceptions import DropoutOffWarning, NoDropoutError, UnsupportedModelError
from sklearn_ical.samplers._base import first_rows
from sklearn_ical.samplers._torch._alone import (
    PASS_ERRORS,
    close,
    depend_on_each_other,
    dependent_rows_error,
    some_rows,
)
from sklearn_ical.samplers._torch._batches import Size, form_of, in_passes, part_of, rows_of
from sklearn_ical.samplers._torch._dropout import Call, NotSteadyError, Trace, located
from sklearn_ical.samplers._torch._masks import Masked, Masks, NotExpandableError
from sklearn_ical.samplers._torch._nets import Net
from sklearn_ical.samples import PredictionSamples

_LOG = logging.getLogger("sklearn_ical.samplers")

# Reason as long as the fast way has not been tested.
TOO_FEW = "the rows seen so far, one or all alike, do not show whether one pass does for all draws"
MIXED = "the output of a row depends on the rows beside it"
# How the net itself can be refitted, by whether it is one of skorch.
REFITS = {
    True: "the labeled rows, as in query(net, X_pool, X_labeled=X, y_labeled=y), to refit this one "
    "on resamples of them",
    False: "a skorch net around this module, with X_labeled and y_labeled: unlike a module, it can "
    "be refitted on resamples of them",
}
# Number of draws for the comparisons of the two ways and of rows, which the masks of one may hide.
COMPARED_DRAWS = 2


@dataclass
class PassPlan(Size):
    """How rows of one form are evaluated.

    Attributes
    ----------
    n_draws : int
        Number of draws of one pass, where one pass serves several.
    calls : list of Call
        Dropout calls of a pass.
    masks : Masks
    fallback : str
        Why every draw needs its own pass; empty if one pass serves all.
    """

    n_draws: int
    calls: list[Call]
    masks: Masks
    fallback: str = ""

    def halve(self, n_rows: int) -> bool:
        if n_rows == 1 and self.n_draws > 1 and not self.fallback:
            self.n_draws //= 2
            return True
        return super().halve(n_rows)


class DropoutDraws:
    """Functions of a net under fixed dropout masks.

    Parameters
    ----------
    net : Net
    n_draws : int
    root : int
        The root seed of the masks.

    Attributes
    ----------
    fallback : str or None
        Why every draw needs its own pass; empty if the layers before the first dropout are run once
        per row; None before any rows were evaluated.
    """

    joint = False
    weights = None
    mean_differs = "the model predicts without dropout"

    def __init__(self, net: Net, n_draws: int, root: int) -> None:
        self.net = net
        self.n_draws = n_draws
        self.root = root
        self.kind = net.kind
        self.fallback: str | None = None
        self._n_outputs: int | None = None
        self._plans: dict[Any, PassPlan] = {}

    @property
    def classes(self) -> Any:
        """Labels of the columns; final once rows have been evaluated."""
        return self.net.classes(self._n_outputs)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_plans": {}, "fallback": None}

    def prepare(self, X: Any) -> None:
        """Determine from a few rows how the net is evaluated, or raise if it cannot be."""
        self(first_rows(X))

    def __call__(self, X: Any) -> PredictionSamples:
        values = self.net.answers(X, self._of_batch)
        if self.kind == "proba":
            self._n_outputs = int(values.shape[2])
        return self.net.samples(values, classes=self.classes)

    def _of_batch(self, inputs: Any) -> Any:
        """Return the outputs of one batch for all draws, (n_rows, n_draws, ...)."""
        plan = self._plan_for(inputs)
        return in_passes(inputs, plan, lambda rows: self._of_rows(rows, plan))

    def _of_rows(self, inputs: Any, plan: PassPlan) -> Any:
        """Return the outputs of as many rows as fit in one pass, (n_rows, n_draws, ...)."""
        try:
            if plan.fallback:
                draws = [self._plain(inputs, plan, k) for k in range(self.n_draws)]
                return torch.stack(draws, dim=1)
            firsts = range(0, self.n_draws, plan.n_draws)
            slices = [slice(k, min(k + plan.n_draws, self.n_draws)) for k in firsts]
            outputs = [self._expanded(inputs, plan, draws) for draws in slices]
            return outputs[0] if len(outputs) == 1 else torch.cat(outputs, dim=1)
        except NotSteadyError as err:
            raise self._unsteady(err) from err

    def _plain(self, inputs: Any, plan: PassPlan, k: int, net: Net | None = None) -> Any:
        """Return the outputs of one draw, (n_rows, ...), in float64 for a `net` in that."""
        mode = Masked(plan.calls, plan.masks, rows_of(inputs), slice(k, k + 1), expand=False)
        output = (net or self.net).outputs(inputs, mode)
        mode.check_end()
        return output

    def _expanded(self, inputs: Any, plan: PassPlan, draws: slice) -> Any:
        """Return the outputs of some draws by one pass, (n_rows, n_some, ...)."""
        n, m = rows_of(inputs), draws.stop - draws.start
        mode = Masked(plan.calls, plan.masks, n, draws, expand=True)
        output = self.net.outputs(inputs, mode)
        mode.check_end()
        if output.shape[0] != n * m:
            raise NotExpandableError(f"gives {output.shape[0]} outputs for {n} rows x {m} draws")
        return output.reshape(n, m, *output.shape[1:])

    def _unsteady(self, err: Exception) -> UnsupportedModelError:
        return UnsupportedModelError(
            f"{self.net.name} does not allow fixed dropout masks: it {err}. Got it in "
            f"{self.net.caller}; bring rows to one length before they are batched, or pass a list "
            "of several fitted nets."
        )

    def _plan_for(self, inputs: Any) -> PassPlan:
        """Return how rows of this form are evaluated, determined at the first large batch."""
        form = form_of(inputs), self._room()
        plan = self._plans.get(form)
        if plan is None or (plan.fallback == TOO_FEW and rows_of(inputs) > 1):
            plan = self._plan(inputs)
            if plan.fallback == MIXED and self.net.dependent_rows == "raise":
                raise dependent_rows_error(self.net)
            self._plans[form] = plan
            self.fallback = plan.fallback
            if plan.fallback:
                _LOG.info("%s: a pass for each draw: %s", self.net.name, plan.fallback)
        return plan

    def _plan(self, inputs: Any) -> PassPlan:
        n_few, n_more = 2, 3
        few, more = Trace(), Trace()
        try:
            self.net.outputs(some_rows(inputs, n_few), few)
            self.net.outputs(some_rows(inputs, n_more), more)
            self._check_dropout(few)
            calls = located(few, more, n_few, n_more)
            plan = self._compared(inputs, calls, _unlike_rows(few, more))
            if plan.fallback == MIXED and any(call.factor > 1 for call in calls):
                # Entries of one row that are not contiguous can only share a mask.
                calls = [replace(call, apart=False) for call in calls]
                plan = self._compared(inputs, calls, _unlike_rows(few, more))
        except NotSteadyError as err:
            raise self._unsteady(err) from err
        before, after = _row_bytes(few, more, n_more - n_few)
        room = self._room()
        if plan.fallback:
            plan.n_rows = max(1, room // max(before, after, 1))
        else:
            plan.n_draws = max(1, min(self.n_draws, room // max(after, 1)))
            plan.n_rows = max(1, room // max(before, after * plan.n_draws, 1))
        return plan

    def _room(self) -> int:
        """Return the largest number of bytes of a tensor of a pass."""
        on_host = all(tensor.device.type == "cpu" for tensor in self.net.module.parameters())
        room = _array.working_bytes()
        return min(room, _array.CHUNK_BYTES) if on_host else room

    def _check_dropout(self, trace: Trace) -> None:
        """Raise if a net has no dropout, and warn of layers whose dropout stays off."""
        names = [
            name.partition(".")[2] or type(module).__name__
            for name, module in self.net.module.named_modules()
            if isinstance(module, torch.nn.RNNBase) and module.dropout > 0 and module.num_layers > 1
        ]
        if trace.off and trace.calls:
            warn(
                f"The dropout inside {', '.join(names)} of {self.net.name} stays off for packed "
                f"sequences in {self.net.caller}; draws differ by its other dropouts alone.",
                DropoutOffWarning,
            )
        if not trace.calls:
            dropout = f"no dropout with p > 0 in {self.net.name}"
            if trace.off:
                dropout = (
                    f"dropout in {self.net.name} only inside {', '.join(names)}, which is off "
                )
                dropout += "for packed sequences"
            raise NoDropoutError(
                f"{self.net.caller} found {dropout}, so all {self.n_draws} draws would be "
                "identical. Train a net with dropout, or pass a list of several fitted nets, or "
                f"{REFITS[self.net.skorch]}. Code under `if self.training` is not run."
            )

    def _compared(self, inputs: Any, calls: list[Call], n: int) -> PassPlan:
        """Return a plan for these calls, with the fast way tested."""
        plan = PassPlan(1, self.n_draws, calls, Masks(self.root, self.n_draws))
        plan.fallback = self._difference(inputs, plan, n)
        return plan

    def _difference(self, inputs: Any, plan: PassPlan, n: int) -> str:
        """Return how the fast way differs from the plain one on a few rows, or nothing."""
        rows = some_rows(inputs, n)
        m = min(COMPARED_DRAWS, self.n_draws)
        plain = torch.stack([self._plain(rows, plan, k) for k in range(m)], dim=1)
        if not close(self._plain(rows, plan, 0), plain[:, 0]):
            raise UnsupportedModelError(
                f"{self.net.name} must be the same function in every pass with the same masks. Got "
                f"other outputs for the same rows in {self.net.caller}: it draws random numbers of "
                "its own, or counts passes."
            )
        if torch.equal(plain, plain[:1].expand_as(plain)):
            return TOO_FEW
        if depend_on_each_other(self.net, rows, partial(self._several, plan)):
            return MIXED
        order = torch.arange(n - 1, -1, -1)
        try:
            fast = self._expanded(rows, plan, slice(0, m))
            moved = self._expanded(part_of(rows, order), plan, slice(0, m))
        except NotExpandableError as err:
            return f"it {err}"
        except NotSteadyError as err:
            return f"with rows x draws it {err}"
        except PASS_ERRORS as err:
            return f"rows x draws do not pass: {str(err).strip().splitlines()[0]}"
        if not close(fast, plain) or not close(moved, plain[order]):
            return "rows x draws give other outputs than one pass for each draw"
        return ""

    def _several(self, plan: PassPlan, net: Net, rows: Any) -> Any:
        """Return outputs of some draws side by side, one pass for each of them."""
        draws = range(min(COMPARED_DRAWS, self.n_draws))
        return torch.stack([self._plain(rows, plan, k, net=net) for k in draws], dim=1)


def drops_out(net: Net, X: Any) -> bool:
    """Return whether dropout is active in a pass over the first rows of `X`."""
    trace = Trace()
    net.answers(first_rows(X), lambda inputs: net.outputs(inputs, trace))
    return bool(trace.calls)


def _unlike_rows(few: Trace, more: Trace) -> int:
    """Return a number of rows that no axis of the tensors of two traces has, alone or by draws."""
    pairs = zip(few.sizes, more.sizes, strict=False)
    taken = {
        a
        for (_, first), (_, second) in pairs
        for a, b in zip(first, second, strict=False)
        if a == b
    }
    n = 4
    while n in taken or n * COMPARED_DRAWS in taken:
        n += 1
    return n


def _row_bytes(few: Trace, more: Trace, n_rows: int) -> tuple[int, int]:
    """Return the bytes of the largest tensor per row, before the first dropout and from it on."""
    first = few.first or 0
    grown = [(b - a) // n_rows for (a, _), (b, _) in zip(few.sizes, more.sizes, strict=False)]
    return max(grown[:first], default=0), max(grown[first:], default=0)
