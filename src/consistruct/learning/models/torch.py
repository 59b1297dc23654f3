"""A neural network as a model of the expected target."""

from __future__ import annotations

import copy
import hashlib
import os
from collections.abc import Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from consistruct._validation import (
    check_count,
    check_number,
    check_unused_params,
    is_sparse,
    to_dense,
)
from consistruct.decisions.statistics import Statistic
from consistruct.exceptions import CapabilityError
from consistruct.learning.models.base import TargetModel
from consistruct.learning.models.features.feature_maps import Scaling
from consistruct.learning.models.network_output import RANKING, Output
from consistruct.learning.models.network_training import Training, seeded, train
from consistruct.losses.base import Loss
from consistruct.losses.partial_labels import PartialLabels
from consistruct.protocols import FloatArray, IntArray, LabelArray
from consistruct.structures import Ragged

if TYPE_CHECKING:
    import torch

__all__ = ["Torch"]

HIDDEN = (128, 128)
PREDICTED_AT_ONCE = 4096  # rows


class Torch(TargetModel):
    """Train a network of your own with a criterion of `consistruct.torch`.

    With the quadratic surrogate the network estimates the expected target of any loss; with "log"
    it estimates probabilities (of classes; of the states of each part for the Hamming loss), with
    "member-log" those that F-measures need; the expected target follows from them. A tenth of the
    rows is not trained on: the epoch with the least task loss there is kept.

    Parameters
    ----------
    module_factory : callable or sequence of int, optional
        ``module_factory(n_inputs, n_outputs)`` gives the `torch.nn.Module`, from (B, n_inputs) to
        (B, n_outputs) scores; or the sizes of the hidden layers of a plain network, (128, 128) if
        not given. A function at the top of a module can be pickled, a lambda cannot.
    surrogate : str
        "auto" is "log" for classes, the Hamming loss and few label sets, "member-log" for other
        F-measures, "quadratic" elsewhere. Or one of those of `consistruct.torch.TaskLoss`; such as
        only rank labels ("hinge", "softmax-margin") decide without estimating.
    standardize : bool
        Whether inputs are standardized first.
    learning_rate, weight_decay : float
        Of AdamW.
    batch_size, max_epochs : int
    validation_fraction : float
        Share of the rows (or groups) that epochs are validated on; 0 trains `max_epochs` on all
        rows.
    patience : int
        Epochs without a better task loss after which training stops.
    device : str
        "auto" is the GPU where there is one; else a name as PyTorch has it.
    checkpoint : path, optional
        File that is written after every epoch; a fit with the same data and settings goes on from
        there.

    Attributes
    ----------
    statistic_ : Statistic
        What `expected` estimates: class probabilities where these were learned, else targets.
    weights_ : dict of arrays
        The network's state_dict.
    path_ : dict
        The criterion and the held-out task loss of every epoch.
    n_iter_ : int

    Notes
    -----
    Model files hold networks of hidden layers given by their sizes; those of your own factory go by
    pickle.

    Examples
    --------
    >>> import consistruct as cs
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> network = cs.models.Torch((16,), max_epochs=20, batch_size=16, device="cpu")
    >>> cs.TaskLossClassifier("zero_one", network, random_state=0).fit(X, y).score(X, y) > -0.1
    True
    """

    weights_: dict[str, np.ndarray]
    path_: dict[str, FloatArray]
    n_iter_: int
    _module: Any  # the network, rebuilt from the weights on use

    def __init__(
        self,
        module_factory: Any = None,
        *,
        surrogate: str = "auto",
        standardize: bool = True,
        learning_rate: float = 1e-3,
        weight_decay: float = 1e-2,
        batch_size: int = 64,
        max_epochs: int = 100,
        validation_fraction: float = 0.1,
        patience: int = 10,
        device: str = "auto",
        checkpoint: str | PathLike[str] | None = None,
    ) -> None:
        self.module_factory = module_factory
        self.surrogate = surrogate
        self.standardize = standardize
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.device = device
        self.checkpoint = checkpoint

    def fit(
        self,
        X: Any,
        codes: Any,
        statistic: Statistic,
        *,
        sample_weight: FloatArray | None = None,
        groups: Any = None,
        rng: np.random.Generator,
    ) -> Self:
        """Train, and keep the best epoch."""
        torch = _torch()
        settings = self._settings(X, codes, statistic, rng)
        n = X.shape[0]
        weight = np.ones(n) if sample_weight is None else sample_weight
        task = self._criterion(statistic)
        output = self._output = Output.of(statistic, task, codes, weight)
        self.statistic_ = output.statistic
        self.scaling_ = Scaling.standard(X, weight) if self.standardize else Scaling()
        self.n_inputs_, self.n_outputs_ = X.shape[1], output.n_outputs
        self.shift_, self.scale_ = output.shift, output.scale
        device = self._device()
        held, rows = self._hold_out(n, groups, settings.seed)
        with seeded(settings.seed):
            network = self._network().to(device)
        training = copy.deepcopy(output).to(device)  # the other one stays on the host
        true = torch.as_tensor(_as_labels(statistic.loss, codes)).to(device)
        weights = torch.as_tensor(np.array(weight, dtype=np.float32)).to(device)

        def value(part: IntArray) -> Any:
            where = torch.as_tensor(part).to(device)
            scores = self._scores(network, self._tensor(X, part, device))
            return training.value(scores, true[where], weights[where])

        def validate() -> tuple[float, float]:
            with torch.no_grad():
                total = [float(value(part)) * len(part) for part in _chunks(held)]
                self._module = network
                predicted = self.decisions(X[held])
            own = self.statistic_.loss(predicted, _rows(codes, held))
            return float(np.average(own, weights=weight[held])), sum(total) / len(held)

        try:
            self.weights_, self.path_ = train(
                network, value, validate if len(held) else None, rows, settings
            )
        finally:
            self._module = None
        self.n_iter_ = len(self.path_["training"])
        return self

    # --- settings ---

    def _settings(
        self, X: Any, codes: Any, statistic: Statistic, rng: np.random.Generator
    ) -> Training:
        fraction = check_number(self.validation_fraction, "validation_fraction", low=0.0, high=0.9)
        check_unused_params(self, "validation_fraction above 0", fraction > 0, ("patience",))
        file = None if self.checkpoint is None else os.fspath(self.checkpoint)
        seed = int(rng.integers(2**31))
        kept = {
            name: value
            for name, value in self.get_params(deep=False).items()
            if name not in ("checkpoint", "device")
        }
        digest = hashlib.sha256(repr((kept, statistic, seed, X.shape)).encode())
        labels = codes.values if isinstance(codes, Ragged) else codes
        digest.update(np.ascontiguousarray(labels).tobytes())
        return Training(
            learning_rate=check_number(self.learning_rate, "learning_rate", low=0.0, open_low=True),
            weight_decay=check_number(self.weight_decay, "weight_decay", low=0.0),
            batch_size=check_count(self.batch_size, "batch_size"),
            max_epochs=check_count(self.max_epochs, "max_epochs"),
            patience=check_count(self.patience, "patience"),
            seed=seed,
            checkpoint=file,
            fingerprint=digest.hexdigest(),
        )

    def _device(self) -> Any:
        torch = _torch()
        name = self.device
        if name == "auto":
            name = "cuda" if torch.cuda.is_available() else "cpu"
        try:
            return torch.empty(0, device=name).device
        except (RuntimeError, AssertionError, TypeError) as error:
            reason = str(error).splitlines()[0]
            raise ValueError(
                f"device must be 'auto' or a device of this machine such as 'cpu', got "
                f"{self.device!r} ({reason})"
            ) from None

    def _hold_out(self, n: int, groups: Any, seed: int) -> tuple[IntArray, IntArray]:
        """Rows that epochs are validated on and rows that are trained on; whole groups."""
        if self.validation_fraction == 0 or n < 2:
            return np.arange(0), np.arange(n)
        codes = np.arange(n) if groups is None else np.unique(groups, return_inverse=True)[1]
        n_groups = int(codes.max()) + 1
        if n_groups < 2:
            raise ValueError(
                "all rows are one group, so none can be held out: set validation_fraction=0"
            )
        size = min(max(1, round(self.validation_fraction * n_groups)), n_groups - 1)
        chosen = np.random.default_rng([seed, 0]).permutation(n_groups)[:size]
        out = np.isin(codes, chosen)
        return np.flatnonzero(out), np.flatnonzero(~out)

    def _criterion(self, statistic: Statistic) -> Any:
        """The criterion, or None where it is the cross-entropy of classes."""
        from consistruct.torch import TaskLoss
        from consistruct.torch.criteria import preferred_surrogate

        classes = statistic.of_classes
        name = self.surrogate
        if name == "auto":
            name = "log" if classes else preferred_surrogate(statistic.loss)
        task = TaskLoss(statistic.loss, name, reduction="none")
        return None if classes and task.surrogate == "log" else task

    # --- the network ---

    def _network(self) -> torch.nn.Module:
        torch = _torch()
        factory = HIDDEN if self.module_factory is None else self.module_factory
        if callable(factory):
            network = factory(self.n_inputs_, self.n_outputs_)
            if not isinstance(network, torch.nn.Module):
                raise TypeError(
                    f"module_factory must return a torch.nn.Module, got {type(network).__name__}"
                )
            return network
        if isinstance(factory, str) or not isinstance(factory, Sequence):
            raise TypeError(
                "module_factory must be a function of two sizes, or the sizes of hidden layers "
                f"such as [64, 64], got {factory!r}"
            )
        sizes = [check_count(size, "a hidden size of module_factory") for size in factory]
        layers: list[Any] = []
        before = self.n_inputs_
        for size in sizes:
            layers += [torch.nn.Linear(before, size), torch.nn.ReLU()]
            before = size
        return torch.nn.Sequential(*layers, torch.nn.Linear(before, self.n_outputs_))

    def _tensor(self, X: Any, part: Any, device: Any) -> Any:
        rows = self.scaling_(X[part])
        dense = to_dense(rows) if is_sparse(rows) else np.asarray(rows)
        return _torch().as_tensor(np.array(dense, dtype=np.float32)).to(device)

    def _scores(self, network: Any, inputs: Any) -> Any:
        """Scores in the units of the criterion."""
        torch = _torch()
        found = network(inputs)
        if found.shape != (len(inputs), self.n_outputs_):
            raise ValueError(
                f"the network must return {self.n_outputs_} scores per row, got shape "
                f"{tuple(found.shape)}"
            )
        return torch.as_tensor(self.shift_).to(found) + self.scale_ * found

    def _fitted(self) -> Any:
        """The trained network on its device, ready to predict."""
        torch = _torch()
        if getattr(self, "_module", None) is None:
            with seeded(0):
                module = self._network()
            module.load_state_dict(
                {k: torch.from_numpy(a.copy()) for k, a in self.weights_.items()}
            )
            self._module = module.to(self._device())
        return self._module.eval()

    def _raw(self, X: Any) -> Any:
        """Scores of rows as one float64 tensor on the host."""
        torch = _torch()
        network, device = self._fitted(), self._device()
        with torch.no_grad():
            parts = [
                self._scores(network, self._tensor(X, part, device)).double().cpu()
                for part in _chunks(np.arange(X.shape[0]))
            ]
        return torch.cat(parts)

    def expected(self, X: Any) -> FloatArray:
        check_is_fitted(self, "n_inputs_")
        if not self.estimates:
            raise CapabilityError(
                self,
                "expected",
                "an expected target",
                "its scores only rank labels: use surrogate='quadratic' or 'log'",
            )
        return self._outputs().expected(self._raw(X))

    @property
    def estimates(self) -> bool:  # type: ignore[override]
        return self.surrogate.replace("_", "-") not in RANKING

    @property
    def decides(self) -> bool:  # type: ignore[override]
        return not self.estimates

    def decisions(self, X: Any) -> LabelArray:
        if self.estimates:
            return self.statistic_.decode(self.expected(X))
        return self._outputs().decide(self._raw(X))

    def _outputs(self) -> Output:
        if getattr(self, "_output", None) is None:
            task = self._criterion(self.statistic_)
            self._output = Output(self.statistic_, task, self.shift_, self.scale_)
        return self._output

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        hidden = ("_module", "_output")  # rebuilt from the weights and the statistic
        return {name: value for name, value in state.items() if name not in hidden}


def _as_labels(loss: Loss, codes: Any) -> Any:
    """True labels as one array: packed candidates become masks."""
    if not isinstance(codes, Ragged):
        return np.array(codes)
    if isinstance(loss, PartialLabels):
        return loss._masks(codes)
    raise CapabilityError(
        loss, "true labels of one shape", "cs.models.Torch", "use ChainCRF of consistruct.torch"
    )


def _rows(codes: Any, rows: IntArray) -> Any:
    return codes.take(rows) if isinstance(codes, Ragged) else codes[rows]


def _chunks(rows: IntArray) -> list[IntArray]:
    n_parts = max(1, -(-len(rows) // PREDICTED_AT_ONCE))
    return np.array_split(rows, n_parts)


def _torch() -> Any:
    try:
        import torch
    except ImportError:
        raise ImportError("cs.models.Torch needs PyTorch: pip install consistruct[torch]") from None
    return torch
