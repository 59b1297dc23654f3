"""The training loop of networks: AdamW, early stopping, checkpoints; knows nothing of losses.

Every random number comes from the seed and the number of the epoch, so that a fit that was stopped
and goes on from its checkpoint ends where it would have ended.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from consistruct.learning.files.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from consistruct.protocols import FloatArray, IntArray

if TYPE_CHECKING:
    import torch

__all__ = ["Training", "seeded", "train"]

logger = logging.getLogger(__name__)

Arrays = dict[str, np.ndarray]


@dataclass(frozen=True, eq=False)
class Training:
    """How a network is trained.

    Attributes
    ----------
    learning_rate, weight_decay : float
        Of AdamW; the rate falls to zero over `max_epochs` by half a cosine.
    batch_size, max_epochs, patience : int
    seed : int
    checkpoint : str or None
        File that is written after every epoch and gone on from.
    fingerprint : str
        Identifies the fit that a checkpoint belongs to.
    """

    learning_rate: float
    weight_decay: float
    batch_size: int
    max_epochs: int
    patience: int
    seed: int
    checkpoint: str | None
    fingerprint: str


def train(
    network: torch.nn.Module,
    value: Callable[[IntArray], torch.Tensor],
    validate: Callable[[], tuple[float, float]] | None,
    rows: IntArray,
    settings: Training,
) -> tuple[Arrays, dict[str, FloatArray]]:
    """The weights of the best epoch, by name, and what each epoch was worth.

    Parameters
    ----------
    network : Module, on its device
    value : function
        Mean of the criterion over rows of the training data, with derivatives.
    validate : function or None
        (task loss, criterion) on rows that are not trained on; None trains all epochs.
    rows : (n,) int array
        Rows that are trained on.
    settings : Training
    """
    import torch

    optimizer = torch.optim.AdamW(
        network.parameters(), lr=settings.learning_rate, weight_decay=settings.weight_decay
    )
    best: tuple[float, ...] = (np.inf, np.inf)
    best_weights, waited, start = _weights(network), 0, 0
    path: dict[str, list[float]] = {"training": [], "held_out": []}
    found = None
    if settings.checkpoint is not None:
        found = read_checkpoint(settings.checkpoint, settings.fingerprint)
    if found is not None:
        start, waited = found.numbers["epoch"], found.numbers["waited"]
        best, path = tuple(found.numbers["best"]), found.numbers["path"]
        best_weights = _part(found.arrays, "best.")
        _load(network, _part(found.arrays, "now."))
        _resume(optimizer, _part(found.arrays, "step."))
    for epoch in range(start, settings.max_epochs):
        if validate is not None and waited >= settings.patience:
            break
        order = np.random.default_rng([settings.seed, epoch]).permutation(rows)
        rate = 0.5 * settings.learning_rate * (1 + np.cos(np.pi * epoch / settings.max_epochs))
        for group in optimizer.param_groups:
            group["lr"] = rate
        with seeded(settings.seed + 1 + epoch):
            network.train()
            total = _epoch(value, optimizer, order, settings.batch_size)
        network.eval()
        path["training"].append(total)
        if validate is None:
            best_weights = _weights(network)
        else:
            score = validate()
            path["held_out"].append(score[0])
            waited += 1
            if score < best:  # ties of the task loss: the smaller value of the criterion
                best, best_weights, waited = score, _weights(network), 0
            logger.info(
                "network: epoch %d, criterion %.5g, held-out task loss %.5g",
                epoch + 1,
                total,
                score[0],
            )
        if settings.checkpoint is not None:
            numbers = {
                "epoch": epoch + 1,
                "waited": waited,
                "best": [float(number) for number in best],
                "path": path,
            }
            arrays = {
                **{f"now.{name}": array for name, array in _weights(network).items()},
                **{f"best.{name}": array for name, array in best_weights.items()},
                **{f"step.{name}": array for name, array in _moments(optimizer).items()},
            }
            write_checkpoint(settings.checkpoint, Checkpoint(arrays, numbers, settings.fingerprint))
    return best_weights, {name: np.array(values) for name, values in path.items()}


def _epoch(value: Any, optimizer: Any, order: IntArray, size: int) -> float:
    """One pass; the mean of the criterion over it."""
    total: Any = 0.0
    for start in range(0, len(order), size):
        part = order[start : start + size]
        optimizer.zero_grad(set_to_none=True)
        mean = value(part)
        mean.backward()
        optimizer.step()
        total = total + mean.detach() * len(part)
    total = float(total) / len(order)
    if not np.isfinite(total):
        raise ValueError(
            f"training diverged: the criterion is {total}; lower learning_rate, or standardize"
        )
    return total


class seeded:  # noqa: N801 - used like a function
    """Torch's generators with a seed of our own inside, and as they were before outside."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def __enter__(self) -> None:
        import torch

        devices = list(range(torch.cuda.device_count()))
        self._fork: Any = torch.random.fork_rng(devices=devices)
        self._fork.__enter__()
        torch.manual_seed(self._seed)

    def __exit__(self, *error: Any) -> None:
        self._fork.__exit__(*error)


def _weights(network: Any) -> Arrays:
    """A copy of everything in the state_dict."""
    return {name: t.detach().cpu().numpy().copy() for name, t in network.state_dict().items()}


def _load(network: Any, arrays: Arrays) -> None:
    import torch

    network.load_state_dict({name: torch.from_numpy(a.copy()) for name, a in arrays.items()})


def _moments(optimizer: Any) -> Arrays:
    state = optimizer.state_dict()["state"]
    return {
        f"{number}.{name}": tensor.detach().cpu().numpy()
        for number, entry in state.items()
        for name, tensor in entry.items()
    }


def _resume(optimizer: Any, arrays: Arrays) -> None:
    import torch

    state: dict[int, dict[str, Any]] = {}
    for key, array in arrays.items():
        number, _, name = key.partition(".")
        state.setdefault(int(number), {})[name] = torch.from_numpy(np.array(array))
    whole = optimizer.state_dict()
    whole["state"] = state
    optimizer.load_state_dict(whole)


def _part(arrays: Arrays, prefix: str) -> Arrays:
    return {name.removeprefix(prefix): a for name, a in arrays.items() if name.startswith(prefix)}
