"""A scikit-learn classifier around the paper's nets: its training, its draws; no active learning.

The estimator holds plain parameters, makes a skorch net in `fit` and trains it as the paper does:
Adam, epochs of a fixed number of images, early stopping by the accuracy on validation images.
"""

from typing import Any

import numpy as np
import torch
from nets import NETS
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted
from skorch import NeuralNetClassifier
from skorch.callbacks import EarlyStopping
from skorch.dataset import Dataset
from skorch.helper import predefined_split

from sklearn_ical.samplers import MCDropoutSampler

TRAIN_ROWS, EVAL_ROWS = 64, 128  # of one batch
MOST_MEAN_DRAWS = 100  # in a prediction
PREDICT_ROWS = 4096  # whose draws are held at once


class DropoutClassifier(ClassifierMixin, BaseEstimator):
    """A net whose predictions are means over dropout masks.

    Parameters
    ----------
    net : str
        Name of the module, see `nets.NETS`.
    n_classes, width : int
        What the module is made with. Labels are 0 to ``n_classes - 1``.
    X_validation, y_validation : array
        Images and labels that the training is stopped by. Their accuracy is taken without dropout,
        and the weights of the best epoch are kept.
    n_draws : int, default=50
        Draws that strategies get; predictions are means over as many, at most 100.
    epoch_size : int, default=5056
        Images in an epoch, drawn with repetition; labeled rows that are more make one pass.
    max_epochs : int, default=30
    patience : int, default=3
        Epochs without a better accuracy that end the training.
    device : str, default="cpu"
    random_state : int or None, default=None
        Seeds weights, batches and dropout of the training, and the masks of the predictions. The
        global generators are left as they are.
    """

    def __init__(
        self,
        net: str,
        n_classes: int,
        width: int,
        X_validation: Any,
        y_validation: Any,
        n_draws: int = 50,
        epoch_size: int = 5056,
        max_epochs: int = 30,
        patience: int = 3,
        device: str = "cpu",
        random_state: Any = None,
    ) -> None:
        self.net = net
        self.n_classes = n_classes
        self.width = width
        self.X_validation = X_validation
        self.y_validation = y_validation
        self.n_draws = n_draws
        self.epoch_size = epoch_size
        self.max_epochs = max_epochs
        self.patience = patience
        self.device = device
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> "DropoutClassifier":
        """Train new weights on float32 images (n, channels, height, width) and int labels (n,)."""
        self.seed_ = int(np.random.SeedSequence(self.random_state).generate_state(1)[0])
        self.classes_ = np.arange(self.n_classes)
        stop = EarlyStopping(
            "valid_acc", patience=self.patience, threshold=0, lower_is_better=False, load_best=True
        )
        with torch.random.fork_rng():
            torch.manual_seed(self.seed_)
            self.net_ = self._make_net(len(X), stop).fit(X, y)
        n_epochs = sum("valid_acc" in epoch for epoch in self.net_.history)
        if n_epochs < self.max_epochs and stop.misses_ < self.patience:
            raise KeyboardInterrupt  # skorch ended the training without raising it
        return self

    def draw(self, n_draws: int | None = None, random_state: Any = None) -> Any:
        """Fix dropout masks as posterior draws."""
        check_is_fitted(self)
        n_draws = self.n_draws if n_draws is None else n_draws
        return MCDropoutSampler(self.net_).draw(n_draws, random_state)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return means over draws, (n, n_classes) in float64."""
        draws = self.draw(min(self.n_draws, MOST_MEAN_DRAWS), self.seed_)
        parts = (X[start : start + PREDICT_ROWS] for start in range(0, len(X), PREDICT_ROWS))
        return np.concatenate([draws(part).mean().cpu().numpy().astype(float) for part in parts])

    def predict(self, X: Any) -> np.ndarray:
        """Return the likeliest labels, (n,)."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def _make_net(self, n_rows: int, stop: EarlyStopping) -> NeuralNetClassifier:
        """Return a skorch net to train on so many rows."""
        batches: dict[str, Any] = {"iterator_train__shuffle": True}
        if n_rows < self.epoch_size:
            sampler = torch.utils.data.RandomSampler(
                range(n_rows), replacement=True, num_samples=self.epoch_size
            )
            batches = {"iterator_train__sampler": sampler}
        return NeuralNetClassifier(
            NETS[self.net],
            module__n_classes=self.n_classes,
            module__width=self.width,
            criterion=torch.nn.CrossEntropyLoss,
            optimizer=torch.optim.Adam,
            lr=1e-3,  # of the paper's code; its text says 0.1 for CIFAR
            optimizer__betas=(0.9, 0.999),
            max_epochs=self.max_epochs,
            batch_size=TRAIN_ROWS,
            iterator_valid__batch_size=EVAL_ROWS,
            train_split=predefined_split(Dataset(self.X_validation, self.y_validation)),
            classes=self.classes_,
            callbacks=[stop],
            device=self.device,
            verbose=0,
            **batches,
        )
