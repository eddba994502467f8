"""MCDropoutSampler and DeepEnsembleSampler: draws of torch nets; torch is loaded when they draw."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from sklearn_ical._random import root_seed
from sklearn_ical._typing import DependentRows, Integer, NetKind, Numbers, Seed
from sklearn_ical._validation import n_rows
from sklearn_ical.exceptions import UnsupportedModelError
from sklearn_ical.samplers._base import (
    BaseSampler,
    Draws,
    choose_members,
    member_weights,
    number_of_draws,
)
from sklearn_ical.samplers._bootstrap import BootstrapSampler
from sklearn_ical.samplers._models import is_net, name_of, torch_file


class MCDropoutSampler(BaseSampler):
    """Takes the dropout masks of a fitted net as posterior draws.

    Monte Carlo dropout [1]_ with consistent masks: a draw is one set of masks, the same for every
    row and every chunk, and so one function on all rows [2]_. Independent masks for each row, as of
    a net in train mode, would remove the dependence between rows.

    Read more in the :ref:`User Guide <mc_dropout>`.

    Parameters
    ----------
    model : skorch net or torch.nn.Module
        Fitted, with dropout. A net at the end of a Pipeline or inside a search is found by
        :func:`get_sampler`. Not modified; training it after `draw` does not change the draws.
    kind : {"proba", "value"}, default=None
        Predictions of the net: class probabilities or real targets. None: real targets for a skorch
        regressor, class probabilities otherwise.
    nonlinearity : callable, default=None
        Applied to the output tensor, (n_rows, n_outputs), such as ``torch.nn.Softmax(dim=-1)``.
        None: that of a skorch net, as in its `predict_proba`, and none for bare modules. Outputs
        must then be probabilities; logits raise an error. A single output is the probability of the
        second of two classes.
    classes : array-like of shape (n_classes,), default=None
        Labels of the outputs. None: the net's `classes_` if these are as many as the outputs,
        else 0, 1, ...
    batch_size : int, default=None
        Largest number of rows of one forward pass. None: that of the net's own `iterator_valid`,
        128 for bare modules. Limited memory may make them fewer, see Notes.
    dependent_rows : {"raise", "allow"}, default="raise"
        Nets whose prediction for a row depends on the other rows of its batch, as by batch
        normalization without running statistics: an error, or draws that change with the batches.

    Raises
    ------
    UnsupportedModelError
        If the layers of the net cannot be accessed (`torch.jit`, `torch.compile`, `DataParallel`),
        it is not a fixed function for fixed masks, or its rows depend on each other.
    NoDropoutError
        From the draws, if no dropout is active: neither `torch.nn` layers nor functional calls,
        which are active for any value of their argument `training`; p = 0 switches them off.
    NotFittedError
        If a skorch net is not fitted.
    ImportError
        If torch is not installed.

    Notes
    -----
    The mask of draw k at the j-th dropout call of a pass keeps an entry where a uniform number of
    ``PCG64(SeedSequence(root, spawn_key=(0, k, j)))`` is at least p. It has the shape of torch's
    own noise without the batch axis; where each row has several entries on that axis, as in a
    tensor (n_rows * n_steps, n_features), the axis is that long. Dropout inside attention and
    recurrent layers has such masks, too; for packed sequences it stays off, with a warning.
    Everything else is in eval mode: batch normalization uses its running statistics.

    Rows become rows x draws at the first dropout, so that the layers before it are run once per
    row: cost of one pass for the layers before it, and of n_draws passes for those after it. On the
    first rows this is compared with one pass for each draw, under the same masks and with the rows
    in another order. Nets for which the two differ are run once for each draw; the reason is in the
    attribute `fallback` of their draws and in the log "sklearn_ical.samplers".

    The largest tensor of a pass stays within ``working_memory``, on the host within 16 MB of it, as
    long as one row of one draw does. If memory runs out nevertheless, passes are halved. Samples
    are tensors on the device of the net.

    References
    ----------
    .. [1] Gal and Ghahramani, "Dropout as a Bayesian approximation", ICML 2016, equation 8.
    .. [2] Kirsch, van Amersfoort and Gal, "BatchBALD", NeurIPS 2019, section 3.2.

    Examples
    --------
    >>> import numpy as np
    >>> import torch
    >>> from sklearn_ical.samplers import MCDropoutSampler
    >>> net = torch.nn.Sequential(
    ...     torch.nn.Linear(4, 32), torch.nn.ReLU(), torch.nn.Dropout(), torch.nn.Linear(32, 3)
    ... )
    >>> sampler = MCDropoutSampler(net, nonlinearity=torch.nn.Softmax(dim=-1))
    >>> X = np.random.default_rng(0).normal(size=(10, 4))
    >>> sampler.sample(X, n_draws=20, random_state=0).values.shape
    torch.Size([10, 20, 3])
    """

    source = "its dropout masks"
    cost = "one pass up to the first dropout, one per draw from there"

    def __init__(
        self,
        model: Any,
        *,
        kind: NetKind | None = None,
        nonlinearity: Callable[[Any], Any] | None = None,
        classes: ArrayLike | None = None,
        batch_size: Integer | None = None,
        dependent_rows: DependentRows = "raise",
    ) -> None:
        self.model = model
        self.kind = kind
        self.nonlinearity = nonlinearity
        self.classes = classes
        self.batch_size = batch_size
        self.dependent_rows = dependent_rows

    def draw(self, n_draws: Integer | None = None, random_state: Seed = None) -> Draws:
        """Fix dropout masks as draws.

        Parameters
        ----------
        n_draws : int, default=None
            Number of draws; None for 50.
        random_state : int, RandomState, Generator or None, default=None
            See :term:`random_state`.

        Returns
        -------
        draws : Draws
            Immutable; call it on rows to get `PredictionSamples`.
        """
        caller = "MCDropoutSampler"
        net, n_draws = self._net(), number_of_draws(n_draws, caller)
        root = root_seed(random_state, caller)
        return torch_file("_draws", caller).DropoutDraws(net, n_draws, root)

    def _net(self) -> Any:
        """Return the net with its weights as they are now."""
        caller = "MCDropoutSampler"
        return torch_file("_nets", caller).Net(
            self.model,
            kind=self.kind,
            nonlinearity=self.nonlinearity,
            classes=self.classes,
            batch_size=self.batch_size,
            dependent_rows=self.dependent_rows,
            caller=caller,
        )


class DeepEnsembleSampler(BaseSampler):
    """Takes several fitted nets as posterior draws.

    A deep ensemble [1]_: nets of the same or of different architectures, fitted from different
    initial weights. Each is one draw, evaluated without dropout.

    Read more in the :ref:`User Guide <deep_ensemble>`.

    Parameters
    ----------
    members : list or tuple of nets or paths
        Fitted skorch nets and torch modules, or files with the state of one each, written by
        ``torch.save(module.state_dict(), path)`` or by ``net.save_params(f_params=path)`` of
        skorch. Nets among scikit-learn models are members of an :class:`EnsembleSampler`.
    template : skorch net or torch.nn.Module, default=None
        The net that states in files belong to. A skorch net must be fitted or initialized. Not
        modified.
    weights : array-like of shape (n_members,), default=None
        Non-negative weights of any positive sum; None for equal ones.
    kind, nonlinearity, classes, batch_size, dependent_rows
        As in :class:`MCDropoutSampler`, for all members alike.

    Raises
    ------
    UnsupportedModelError
        From `draw`, if a member is not a net, or cannot be used.
    ValueError, FileNotFoundError
        From `draw`, if a state does not fit the template, or a file does not exist.
    NotFittedError
        From `draw`, if a member is not fitted.
    ImportError
        From `draw`, if torch is not installed.

    Notes
    -----
    Samples are tensors on the device of the first net. Nets may have different classes: columns
    follow the union, with probability 0 for a class that a net does not have. Only tensors are read
    from files, so no code in them is run. Cost of one pass per member.

    References
    ----------
    .. [1] Lakshminarayanan, Pritzel and Blundell, "Simple and scalable predictive uncertainty
       estimation using deep ensembles", NeurIPS 2017, section 2.4.

    Examples
    --------
    >>> import numpy as np
    >>> import torch
    >>> from sklearn_ical.samplers import DeepEnsembleSampler
    >>> nets = [torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Softmax(dim=-1)) for _ in "abc"]
    >>> X = np.random.default_rng(0).normal(size=(10, 4))
    >>> DeepEnsembleSampler(nets).sample(X).values.shape
    torch.Size([10, 3, 3])
    """

    source = "its members"
    cost = "one prediction per member"

    def __init__(
        self,
        members: Any,
        *,
        template: Any = None,
        weights: Numbers | None = None,
        kind: NetKind | None = None,
        nonlinearity: Callable[[Any], Any] | None = None,
        classes: ArrayLike | None = None,
        batch_size: Integer | None = None,
        dependent_rows: DependentRows = "raise",
    ) -> None:
        self.members = members
        self.template = template
        self.weights = weights
        self.kind = kind
        self.nonlinearity = nonlinearity
        self.classes = classes
        self.batch_size = batch_size
        self.dependent_rows = dependent_rows

    def draw(self, n_draws: Integer | None = None, random_state: Seed = None) -> Draws:
        """Fix members of the ensemble as draws.

        Parameters
        ----------
        n_draws : int, default=None
            None takes every member once; fewer than there are, a seeded subset in member order;
            more is an error.
        random_state : int, RandomState, Generator or None, default=None
            Seeds the choice of a subset.

        Returns
        -------
        draws : Draws
            Immutable; call it on rows to get `PredictionSamples`.
        """
        caller = "DeepEnsembleSampler"
        if not isinstance(self.members, list | tuple) or not self.members:
            raise UnsupportedModelError(
                "members must be a list of at least one fitted net or state file. Got "
                f"{self.members!r} in {caller}."
            )
        chosen = choose_members(len(self.members), n_draws, random_state, caller)
        weights = member_weights(self.weights, len(self.members), chosen, caller)
        nets = [self._net(k) for k in chosen.tolist()]
        kinds = {net.kind for net in nets}
        if len(kinds) > 1:
            raise UnsupportedModelError(
                "Members must be all classifiers or all regressors. Got both in "
                f"{caller}: {[f'{net.name} ({net.kind})' for net in nets]}."
            )
        return torch_file("_net_draws", caller).NetDraws(nets, weights)

    def _net(self, k: int) -> Any:
        """Return member k as a net, with the state of its file if it is one."""
        member, caller = self.members[k], "DeepEnsembleSampler"
        model, state = member, None
        if isinstance(member, str | os.PathLike):
            if not is_net(self.template):
                raise ValueError(
                    "template must be the net that the states in files belong to. Got "
                    f"{self.template!r} with the file {os.fspath(member)} in {caller}."
                )
            model = self.template
            state = torch_file("_net_draws", caller).read_state(Path(member), model, caller)
        elif not is_net(member):
            raise UnsupportedModelError(
                f"Member {k} must be a fitted skorch net, a torch.nn.Module or the path of a state "
                f"file. Got {name_of(member)} in {caller}; EnsembleSampler accepts nets among "
                "models of other kinds."
            )
        return torch_file("_nets", caller).Net(
            model,
            kind=self.kind,
            nonlinearity=self.nonlinearity,
            classes=self.classes,
            batch_size=self.batch_size,
            dependent_rows=self.dependent_rows,
            caller=caller,
            state=state,
        )


class NetSampler(MCDropoutSampler):
    """Draws of a net that is passed as a model: its dropout masks, or refits if it has none."""

    def with_labeled(
        self, X_labeled: Any, y_labeled: Any, fit_params: Mapping[str, Any] | None = None
    ) -> BaseSampler:
        """Return the bootstrap of a skorch net without dropout; other nets ignore labeled rows."""
        if X_labeled is None or not hasattr(self.model, "fit") or self._drops_out(X_labeled):
            return self
        return BootstrapSampler(self.model).with_labeled(X_labeled, y_labeled, fit_params)

    def _drops_out(self, X: Any) -> bool:
        """Return whether dropout is active in a pass over the first rows, True for none."""
        net = self._net()
        return n_rows(X, "X_labeled") == 0 or torch_file("_draws", net.caller).drops_out(net, X)


def find_sampler(model: Any) -> MCDropoutSampler | None:
    """Return the sampler of a net, or None for other objects of torch and skorch."""
    return NetSampler(model) if is_net(model) else None
