"""Padded batches of examples of different sizes: parts of sequences, items of queries."""

from __future__ import annotations

import torch
from torch import Tensor

from consistruct.exceptions import CapabilityError
from consistruct.losses.base import Loss
from consistruct.torch.constants import Constants, can_check, ensure
from consistruct.torch.rankings import Gains, n_present
from consistruct.torch.true_labels import one_hot, true_labels_of
from consistruct.torch.values import MARGINS

__all__ = ["ItemFamily", "PartFamily", "family_of"]


class PartFamily(Constants):
    """Hamming loss of sequences of any length: scores (B, T, s), true labels and mask (B, T)."""

    def __init__(self, loss: Loss, surrogate: str) -> None:
        super().__init__()
        if surrogate not in ("quadratic", *MARGINS):
            raise _not_here(loss, surrogate, ("quadratic", *MARGINS))
        assert loss.hamming_shape is not None
        self.loss, self.s, self.surrogate = loss, loss.hamming_shape[1], surrogate

    @property
    def width(self) -> int:
        """Scores per part."""
        return self.s

    @property
    def has_link(self) -> bool:
        return self.surrogate in ("quadratic", "log")

    def check(self, theta: Tensor, true: Tensor, mask: Tensor) -> None:
        if theta.ndim != 3 or theta.shape[2] != self.s or true.shape != theta.shape[:2]:
            raise ValueError(
                f"{self.loss!r} takes input (B, T, {self.s}) and target (B, T), got "
                f"{tuple(theta.shape)} and {tuple(true.shape)}"
            )
        if not can_check(true):
            return
        fine = (true >= 0) & (true < self.s) | ~mask
        ensure(fine.all(), f"target must contain states 0..{self.s - 1} where the mask is set")

    def values(self, theta: Tensor, true: Tensor, mask: Tensor) -> Tensor:
        present = mask[:, :, None]
        parts = torch.where(present, theta, 0.0)
        share = 1.0 / mask.sum(1).clamp(min=1).to(theta.dtype)[:, None, None]
        right = one_hot(torch.where(mask, true, 0), self.s, theta.dtype)
        if self.surrogate == "quadratic":
            residual = torch.where(present, parts - right * share, 0.0)
            mean = residual.mean(2, keepdim=True)
            spread = (residual - mean).square().sum((1, 2)) / self.s
            return 0.5 * (mean.sum((1, 2)).square() + spread)
        own = (parts * right).sum(2)
        raised = parts if self.surrogate == "log" else parts + (1.0 - right) * share
        top = raised.amax(2) if self.surrogate == "hinge" else torch.logsumexp(raised, 2)
        return torch.where(mask, top - own, 0.0).sum(1)

    def decode(self, theta: Tensor, mask: Tensor) -> Tensor:
        return torch.where(mask, theta.argmax(2), -1)


class ItemFamily(Constants):
    """Rankings of queries of any length: one score per item, true labels and mask (B, n)."""

    def __init__(self, loss: Loss, surrogate: str) -> None:
        super().__init__()
        if surrogate != "quadratic":
            raise _not_here(loss, surrogate, ("quadratic",))
        true_labels = true_labels_of(loss)
        if not true_labels.by_item:
            raise CapabilityError(
                loss,
                "one score per item",
                "a padded batch of queries",
                "pass members of one size, for example loss.at(10)",
            )
        self.loss, self.true_labels, self.text = loss, true_labels, repr(loss)
        self.has_link = True

    @property
    def width(self) -> int:
        """Scores per item."""
        return 1

    def check(self, theta: Tensor, true: Tensor, mask: Tensor) -> None:
        if theta.ndim != 2 or true.shape != theta.shape:
            raise ValueError(
                f"{self.loss!r} takes input (B, n) and target (B, n), got "
                f"{tuple(theta.shape)} and {tuple(true.shape)}"
            )
        if not can_check(true):
            return
        true_labels: Gains = self.true_labels  # type: ignore[assignment]
        ensure(
            true_labels.valid(true, mask).all(),
            f"target must contain true labels of {self.text} where the mask is set",
        )

    def values(self, theta: Tensor, true: Tensor, mask: Tensor) -> Tensor:
        dtype, size = theta.dtype, theta.shape[1]
        true_labels: Gains = self.true_labels  # type: ignore[assignment]
        wanted = true_labels.wanted(true, dtype, mask)
        residual = torch.where(mask, theta - wanted, 0.0)
        n = n_present(true, mask)
        discount = true_labels.discount(n, size, dtype)
        count = n.clamp(min=1).to(dtype)
        mean = discount.sum(1) / count
        variance = (torch.where(_first(n, size), discount - mean[:, None], 0.0)).square().sum(1)
        contrast = variance / (count - 1).clamp(min=1.0)  # Var·n/(n − 1)
        total = residual.sum(1)
        deviation = torch.where(mask, residual - (total / count)[:, None], 0.0)
        return 0.5 * (contrast * deviation.square().sum(1) + (mean * total).square())

    def decode(self, theta: Tensor, mask: Tensor) -> Tensor:
        """Items by falling scores, (B, n); −1 behind the last one that is present."""
        scores = torch.where(mask, theta, -torch.inf)
        order = torch.sort(scores, dim=1, descending=True, stable=True).indices
        return torch.where(_first(mask.sum(1), theta.shape[1]), order, -1)


def _first(n: Tensor, size: int) -> Tensor:
    return torch.arange(size, device=n.device) < n[:, None]


def _not_here(loss: Loss, surrogate: str, allowed: tuple[str, ...]) -> ValueError:
    return ValueError(
        f"on padded batches {loss!r} has the surrogates {', '.join(allowed)}, got {surrogate!r}; "
        f"use ChainCRF for chains, or members of one size"
    )


def family_of(loss: Loss, surrogate: str) -> PartFamily | ItemFamily:
    """The padded form of a loss whose size is open."""
    family = ItemFamily if loss.hamming_shape is None else PartFamily
    return family(loss, surrogate)
