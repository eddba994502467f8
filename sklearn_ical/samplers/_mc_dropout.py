"""MCDropoutSampler: the dropout masks of a net as posterior draws; loads torch when it draws."""

from collections.abc import Callable
from typing import Any

from numpy.typing import ArrayLike

from sklearn_ical._random import root_seed
from sklearn_ical._typing import Integer, NetKind, Seed
from sklearn_ical.samplers._base import BaseSampler, Draws, number_of_draws
from sklearn_ical.samplers._models import torch_file


class MCDropoutSampler(BaseSampler):
    """Takes the dropout masks of a fitted net as posterior draws.

    Monte Carlo dropout [1]_ with consistent masks: a draw is one set of masks, the same for every
    row and every chunk, and so one function on all rows [2]_. Fresh masks for each row, which is
    what a net in train mode gives, would leave no dependence between rows to choose by.

    Parameters
    ----------
    model : skorch net or torch.nn.Module
        Fitted, with dropout. A net at the end of a Pipeline or inside a search is found by
        :func:`get_sampler`. Not modified; what it is trained on after `draw` does not reach the
        draws.
    kind : {"proba", "value"}, default=None
        What the net predicts: class probabilities or real targets. None: what its class tells,
        class probabilities for bare modules.
    nonlinearity : callable, default=None
        Applied to the output tensor, (n_rows, n_outputs), such as ``torch.nn.Softmax(dim=-1)``.
        None: that of a skorch net, as in its `predict_proba`, and none for bare modules. Outputs
        must then be probabilities; logits are refused. A single output is the probability of the
        second of two classes.
    classes : array-like of shape (n_classes,), default=None
        Labels of the outputs. None: the net's `classes_` if these are as many as the outputs,
        else 0, 1, ...
    batch_size : int, default=None
        Most rows of one forward pass. None: as the net's own `iterator_valid` has them, 128 for
        bare modules. Memory may make them fewer, see Notes.

    Raises
    ------
    UnsupportedModelError
        If the net cannot be looked into (`torch.jit`, `torch.compile`, `DataParallel`), or is no
        fixed function for fixed masks.
    NoDropoutError
        From the draws, if no dropout is active: neither `torch.nn` layers nor functional calls,
        which count whatever they are told about training; p = 0 switches them off.
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
    Everything else is in eval mode: batch normalization goes by its running statistics.

    Rows become rows x draws at the first dropout, so that what comes before it is done once per
    row: cost of one pass for the layers before it, and of n_draws passes for those after it. On
    the first rows this is compared with one pass for each draw, under the same masks and with the
    rows in another order. Nets for which it does not hold are asked once for each draw; their
    draws tell why in the text `fallback`, and so does the log "sklearn_ical.samplers".

    The largest tensor of a pass stays within ``working_memory``, on the host within 16 MB of it, as
    long as one row of one draw does. Where memory runs out all the same, passes are halved. Samples
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
    ) -> None:
        self.model = model
        self.kind = kind
        self.nonlinearity = nonlinearity
        self.classes = classes
        self.batch_size = batch_size

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
        owner = "MCDropoutSampler"
        nets, draws = torch_file("_nets", owner), torch_file("_draws", owner)
        net = nets.Net(
            self.model,
            kind=self.kind,
            nonlinearity=self.nonlinearity,
            classes=self.classes,
            batch_size=self.batch_size,
            owner=owner,
        )
        n_draws = number_of_draws(n_draws, owner)
        return draws.DropoutDraws(net, n_draws, root_seed(random_state, owner))
