"""Criteria for networks: any task loss as an `nn.Module`, and its decoder."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from consistruct.exceptions import CapabilityError
from consistruct.losses import parse_loss
from consistruct.losses.base import Loss
from consistruct.losses.fbeta import FBeta
from consistruct.structures import Structure
from consistruct.surrogates import BaseSurrogate, make_surrogate
from consistruct.torch.constants import autocast_off, working
from consistruct.torch.decoders import decoder_of
from consistruct.torch.families import ItemFamily, PartFamily, family_of
from consistruct.torch.part_values import Linked, Logits, MemberLog, Separate
from consistruct.torch.values import BY_MEMBER, LISTED, MARGINS, Listed, Quadratic, Values

__all__ = ["Decoder", "TaskLoss", "preferred_surrogate"]

FEW_SETS = 256
REDUCTIONS = ("mean", "sum", "none")
Scores = Structure | Literal["logits"] | None


class TaskLoss(nn.Module):
    """A surrogate of any task loss as a criterion: ``criterion(input, target)``.

    The network gives `width` scores per example; targets are the labels themselves, as tensors, and
    what the loss makes of them is computed on their device. With the quadratic surrogate the best
    scores are minus the expected target, so that `Decoder` (or `decode` here) gives the decision of
    least expected loss, whatever the loss.

    Parameters
    ----------
    loss : Loss or str
        A loss of `consistruct.losses`, or a spec such as ``"ordinal:5"``.
    surrogate : str
        "quadratic" serves every loss. "logistic", "exponential", "square", "log", "sparsemax",
        "hinge", "softmax-margin" and "linear-regret" need labels that can be listed; for the
        Hamming loss "log", "hinge" and "softmax-margin" work with any number of parts. "member-log"
        is for F-measures of any number of labels: cross-entropy of each label and the size of its
        set. Networks learn better from logarithms than from squares: take "log" where the loss is
        over classes or few label sets, "member-log" for F-measures, "quadratic" elsewhere.
    reduction : {"mean", "sum", "none"}
        "mean" is weighted by `weight` and over what `mask` leaves.
    scores : ScoreSpace or "logits", optional
        Where the scores live; as in `consistruct.surrogates` if not given. "logits" is for
        two-state parts (label sets): one score per label, as `BCEWithLogitsLoss` has it.

    Attributes
    ----------
    width : int
        Scores that the network must give for each example (each part or item of a family).

    Notes
    -----
    Half precision is computed in float32, float64 in float64. Families of sizes (``Hamming(None,
    26)``, ``NDCG(None)``) take padded batches with a mask (B, T): input (B, T, s), or (B, n) with
    one score per item. Of other losses a mask (B,) states which examples are there. Values of
    labels are checked on the host only; on a GPU, as with PyTorch's criteria, nothing waits for a
    check.

    Examples
    --------
    >>> import torch, consistruct as cs
    >>> from consistruct.torch import TaskLoss
    >>> criterion = TaskLoss(cs.losses.CostMatrix([[0, 10], [1, 0]], rows="pred"))
    >>> scores = torch.zeros(3, criterion.width, requires_grad=True)
    >>> criterion(scores, torch.tensor([0, 1, 1])).backward()
    >>> scores.grad.shape
    torch.Size([3, 2])
    """

    body: Values | PartFamily | ItemFamily

    def __init__(
        self,
        loss: Loss | str,
        surrogate: str = "quadratic",
        *,
        reduction: str = "mean",
        scores: Scores = None,
    ) -> None:
        super().__init__()
        if reduction not in REDUCTIONS:
            raise ValueError(
                f"reduction must be one of {', '.join(map(repr, REDUCTIONS))}, got {reduction!r}"
            )
        self.loss = parse_loss(loss) if isinstance(loss, str) else loss
        if not isinstance(self.loss, Loss):
            raise TypeError(f"loss must be a Loss or a spec, got {type(loss).__name__}")
        self.surrogate = _surrogate_name(surrogate)
        self.reduction, self.scores = reduction, scores
        self.body = _body(self.loss, self.surrogate, scores)
        self.decoder = _Decision(self.body) if isinstance(self.body, Values) else None
        self.padded = self.decoder is None

    @property
    def width(self) -> int:
        return self.body.width

    def extra_repr(self) -> str:
        """What a network prints of it."""
        return f"{self.loss!r}, {self.surrogate!r}, reduction={self.reduction!r}"

    def forward(
        self,
        input: Tensor,  # noqa: A002 - the name that criteria have
        target: Tensor,
        mask: Tensor | None = None,
        weight: Tensor | None = None,
    ) -> Tensor:
        """The surrogate at scores and true labels.

        Parameters
        ----------
        input : (B, width) tensor; of families (B, T, s) or (B, n)
        target : (B, …) tensor of labels
        mask : (B,) tensor of Booleans, optional; of families (B, T) or (B, n)
            What is there; nothing else is read.
        weight : (B,) tensor, optional
            Weight of each example.

        Returns
        -------
        value : scalar tensor, (B,) with reduction "none"
        """
        theta, body = working(input), self.body
        with autocast_off(theta):
            if isinstance(body, Values):
                return self._members(body, theta, target, mask, weight)
            if mask is None:
                mask = torch.ones(target.shape[:2], dtype=torch.bool, device=theta.device)
            _check_mask(mask, tuple(target.shape[:2]))
            body.check(theta, target, mask)
            values = body.values(theta, target, mask)
            return self._reduced(values, mask.any(1), weight)

    def _members(
        self,
        body: Values,
        theta: Tensor,
        true: Tensor,
        mask: Tensor | None,
        weight: Tensor | None,
    ) -> Tensor:
        n, width = theta.shape if theta.ndim == 2 else (-1, -1)
        if width != body.width:
            raise ValueError(
                f"input must have shape (B, {body.width}) for {body.true_labels.text}, "
                f"got {tuple(theta.shape)}"
            )
        if true.ndim == 0 or true.shape[0] != n:
            raise ValueError(
                f"target must have one row per row of input ({n}), got shape {tuple(true.shape)}"
            )
        if mask is not None:
            _check_mask(mask, (n,))
            theta = torch.where(mask[:, None], theta, 0.0)
        body.true_labels.check(true, mask)
        if mask is not None:
            true = _first_where_absent(true, mask)
        elif weight is None and self.reduction == "mean":
            found = body.mean(theta, true)
            if found is not None:
                return found
        return self._reduced(body.values(theta, true), mask, weight)

    def _reduced(self, values: Tensor, mask: Tensor | None, weight: Tensor | None) -> Tensor:
        if weight is not None:
            if weight.shape != values.shape:
                raise ValueError(
                    f"weight must contain one number per example, shape {tuple(values.shape)}, "
                    f"got {tuple(weight.shape)}"
                )
            weight = weight.to(values.dtype)
        if mask is not None:
            there = mask.to(values.dtype)
            values = torch.where(mask, values, 0.0)
            weight = there if weight is None else weight * there
        total = values if weight is None else values * weight
        if self.reduction == "none":
            return total
        if self.reduction == "sum":
            return total.sum()
        if weight is None:
            return total.mean()
        return total.sum() / weight.sum().clamp(min=torch.finfo(values.dtype).tiny)

    # --- what scores tell ---

    def decode(self, input: Tensor, mask: Tensor | None = None) -> Tensor:  # noqa: A002
        """Predictions, (B, …): of least expected loss, or of highest score if only that is known.

        Padded batches: −1 where the mask is not set.
        """
        theta = working(input.detach())
        with autocast_off(theta):
            if self.decoder is not None:
                if mask is not None:
                    raise ValueError(
                        "mask is only for padded batches; leave out absent examples instead"
                    )
                return self.decoder(theta)
            assert not isinstance(self.body, Values)
            if mask is None:
                mask = torch.ones(theta.shape[:2], dtype=torch.bool, device=theta.device)
            return self.body.decode(theta, mask)

    def expected_target(self, input: Tensor) -> Tensor:  # noqa: A002
        """E[target(y) | x] as the scores tell it, (B, width of the loss's own scores)."""
        theta = working(input)
        with autocast_off(theta):
            return self._linked().expected_target(theta)

    def expected_losses(self, input: Tensor) -> Tensor:  # noqa: A002
        """E[L(c, y) | x] of every listed prediction c, (B, k)."""
        body = self._linked()
        theta = working(input)
        with autocast_off(theta):
            expected = body.listed(body.expected_target(theta))
            return expected + body.expected_offset(theta)[:, None]

    def _linked(self) -> Values:
        if not isinstance(self.body, Values) or not self.body.has_link:
            raise CapabilityError(
                self,
                "expected_target",
                "an expected loss",
                "its scores only rank labels, or are padded; use 'quadratic' or 'log' on members",
            )
        return self.body


class Decoder(nn.Module):
    """Predictions from scores, on their device: the other half of `TaskLoss`, for inference.

    Parameters
    ----------
    loss, surrogate, scores
        As in `TaskLoss`: what the scores were trained with.

    Notes
    -----
    Results and ties are those of the NumPy decoders, but for linear assignment, whose ties may
    differ. Losses judged by pairs are decoded exactly up to 14 items and refused above. It holds
    tensors only, so that `torch.export` takes a network with its decoder.

    Examples
    --------
    >>> import torch
    >>> Decoder("fbeta:3")(torch.zeros(1, Decoder("fbeta:3").width))
    tensor([[0, 0, 0]])
    """

    def __init__(
        self, loss: Loss | str, surrogate: str = "quadratic", *, scores: Scores = None
    ) -> None:
        super().__init__()
        self.criterion = TaskLoss(loss, surrogate, scores=scores)

    @property
    def width(self) -> int:
        return self.criterion.width

    def forward(self, input: Tensor, mask: Tensor | None = None) -> Tensor:  # noqa: A002
        """Predictions, (B, …) of int64; −1 where a padded batch has nothing."""
        return self.criterion.decode(input, mask)


class _Decision(nn.Module):
    """Scores to predictions: by the expected target where scores are logarithms of probabilities.

    Elsewhere the highest score is the decision: of least expected loss with the quadratic and the
    (a, b) surrogates, whose scores fall with it.
    """

    def __init__(self, body: Values) -> None:
        super().__init__()
        self.body = body
        self.by_target = body.has_link and body.probabilistic
        space = body.loss.score_space if self.by_target else body.space
        self.decoder = decoder_of(space)

    def forward(self, theta: Tensor) -> Tensor:
        body = self.body
        own = -body.expected_target(theta) if self.by_target else body.expand(theta)
        decided: Tensor = self.decoder(own)
        return decided


def preferred_surrogate(loss: Loss) -> str:
    """The surrogate that networks learn best from: logarithms of probabilities where they serve.

    The F-measure of few labels: of all label sets; it was ahead of "member-log" on held-out rows
    (scene, 6 labels: .797 against .781, quadratic .756).
    """
    if isinstance(loss, FBeta):
        return "log" if 2**loss.T <= FEW_SETS else BY_MEMBER
    if loss.hamming_shape is not None and loss.n_labels is not None:
        return "log"
    return "quadratic"


def _surrogate_name(surrogate: object) -> str:
    name = surrogate.replace("_", "-") if isinstance(surrogate, str) else surrogate
    if name == "max-min-margin":
        raise ValueError(
            "surrogate 'max-min-margin' is a linear program per example and has no form on the "
            "device; use 'quadratic', or cs.models.Linear(surrogate='max-min-margin')"
        )
    allowed = ("quadratic", *LISTED, BY_MEMBER)
    if name not in allowed:
        raise ValueError(f"surrogate must be one of {', '.join(allowed)}, got {surrogate!r}")
    return str(name)


def _body(loss: Loss, surrogate: str, scores: Scores) -> Values | PartFamily | ItemFamily:
    if loss.n_labels is None and loss.solver is None:  # a family of sizes
        if scores is not None:
            raise ValueError("scores are fixed for padded batches; omit them")
        return family_of(loss, surrogate)
    if isinstance(scores, str):
        if scores != "logits" or loss.hamming_shape is None or loss.hamming_shape[1] != 2:
            raise ValueError(
                f"scores='logits' is for Hamming losses of two-state parts, got {scores!r} for "
                f"{loss!r}"
            )
        if surrogate not in ("quadratic", *MARGINS):
            raise ValueError(
                f"scores='logits' works only with {', '.join(('quadratic', *MARGINS))}, got "
                f"{surrogate!r}"
            )
        return Logits(loss, surrogate)
    if surrogate == BY_MEMBER:
        if not isinstance(loss, FBeta) or scores is not None:
            raise ValueError(
                f"surrogate {BY_MEMBER!r} is only for F-measures, with scores omitted; got {loss!r}"
            )
        return MemberLog(loss)
    made: BaseSurrogate = make_surrogate(surrogate, loss, scores)
    space = made.score_space
    if surrogate == "quadratic":
        return Quadratic(loss, space)
    if loss.hamming_shape is not None and surrogate in MARGINS:
        if space.linked_states is not None:
            return Linked(loss, space, surrogate)
        if space.separate_states is not None:
            return Separate(loss, surrogate)
    return Listed(made)


def _check_mask(mask: Tensor, shape: tuple[int, ...]) -> None:
    if mask.dtype != torch.bool or tuple(mask.shape) != shape:
        raise ValueError(
            f"mask must contain Booleans of shape {shape}, got {mask.dtype} of shape "
            f"{tuple(mask.shape)}"
        )


def _first_where_absent(true: Tensor, mask: Tensor) -> Tensor:
    """Labels, with zeros in place of those of absent examples: nothing is looked up there."""
    there = mask.reshape(-1, *[1] * (true.ndim - 1))
    return torch.where(there, true, torch.zeros_like(true))
