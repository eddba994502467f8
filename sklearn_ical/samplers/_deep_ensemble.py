"""DeepEnsembleSampler: several fitted nets as posterior draws; loads torch when it draws."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from sklearn_ical._typing import Integer, NetKind, Numbers, Seed
from sklearn_ical.exceptions import UnsupportedModelError
from sklearn_ical.samplers._base import BaseSampler, Draws, choose_members
from sklearn_ical.samplers._ensemble import EnsembleSampler, member_weights
from sklearn_ical.samplers._models import is_net, name_of, torch_file
from sklearn_ical.samplers._registry import get_sampler


class DeepEnsembleSampler(BaseSampler):
    """Takes several fitted nets as posterior draws.

    A deep ensemble [1]_: nets of one or of unlike architectures, fitted from different starts.
    Each is one draw, asked without dropout.

    Parameters
    ----------
    members : list or tuple of nets or paths
        Fitted skorch nets and torch modules, or files that hold the state of one each: what
        ``torch.save(module.state_dict(), path)`` or ``net.save_params(f_params=path)`` of skorch
        has written. Nets among scikit-learn models are members of an :class:`EnsembleSampler`.
    template : skorch net or torch.nn.Module, default=None
        The net that states in files belong to. A skorch net must be fitted or initialized. Not
        modified.
    weights : array-like of shape (n_members,), default=None
        Non-negative weights of any positive sum; None for equal ones.
    kind, nonlinearity, classes, batch_size
        As in :class:`MCDropoutSampler`, for all members alike.

    Raises
    ------
    UnsupportedModelError
        From `draw`, if a member is no net, or cannot be used.
    ValueError, FileNotFoundError
        From `draw`, if a state does not fit the template, or is not there.
    NotFittedError
        From `draw`, if a member is not fitted.
    ImportError
        From `draw`, if torch is not installed.

    Notes
    -----
    Samples are tensors on the device of the first net. Nets may know different classes: columns
    follow the union, with probability 0 for a class that a net does not know. Files are read as
    tensors alone, so that what else they hold is not run. Cost of one pass per member.

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
    ) -> None:
        self.members = members
        self.template = template
        self.weights = weights
        self.kind = kind
        self.nonlinearity = nonlinearity
        self.classes = classes
        self.batch_size = batch_size

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
        owner = "DeepEnsembleSampler"
        if not isinstance(self.members, list | tuple) or not self.members:
            raise UnsupportedModelError(
                "members must be a list of at least one fitted net or state file. Got "
                f"{self.members!r} in {owner}."
            )
        chosen = choose_members(len(self.members), n_draws, random_state, owner)
        weights = member_weights(self.weights, len(self.members), chosen, owner)
        nets = [self._net(k) for k in chosen.tolist()]
        kinds = {net.kind for net in nets}
        if len(kinds) > 1:
            raise UnsupportedModelError(
                "Members must be all classifiers or all regressors. Got both in "
                f"{owner}: {[f'{net.name} ({net.kind})' for net in nets]}."
            )
        return torch_file("_members", owner).NetDraws(nets, weights)

    def _net(self, k: int) -> Any:
        """Return member k as a net, with the state of its file where it is one."""
        member, owner = self.members[k], "DeepEnsembleSampler"
        model, state = member, None
        if isinstance(member, str | os.PathLike):
            if not is_net(self.template):
                raise ValueError(
                    "template must be the net that the states in files belong to. Got "
                    f"{self.template!r} with the file {os.fspath(member)} in {owner}."
                )
            model = self.template
            state = torch_file("_members", owner).read_state(Path(member), model, owner)
        elif not is_net(member):
            raise UnsupportedModelError(
                f"Member {k} must be a fitted skorch net, a torch.nn.Module or the path of a state "
                f"file. Got {name_of(member)} in {owner}; EnsembleSampler takes nets among models "
                "of other kinds."
            )
        return torch_file("_nets", owner).Net(
            model,
            kind=self.kind,
            nonlinearity=self.nonlinearity,
            classes=self.classes,
            batch_size=self.batch_size,
            owner=owner,
            state=state,
        )


def _of_sequence(models: Any) -> BaseSampler:
    """Return the sampler of a list of models: nets alone stay on their device."""
    nets = len(models) > 0 and all(is_net(model) for model in models)
    return DeepEnsembleSampler(models) if nets else EnsembleSampler(models)


get_sampler.register(list, _of_sequence)
get_sampler.register(tuple, _of_sequence)
