"""Surrogates on the device: values of scores (B, width) at true labels, and what scores tell.

Each class is one way to write Φ(θ, y), the same functions as in `consistruct.surrogates`:

    Quadratic   ½ (θ + u_y)ᵀ Ḡ (θ + u_y), for every loss and score space
    Listed      sums and maxima over listed labels: (a, b), log, sparsemax, hinge, …

Forms of the Hamming loss that come apart into parts are in `part_values`.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from consistruct.exceptions import CapabilityError, NotInSpanError, TooManyLabelsError
from consistruct.losses.base import Loss
from consistruct.structures import Structure
from consistruct.structures.base import ENUMERATION_LIMIT
from consistruct.surrogates import BaseSurrogate
from consistruct.surrogates.linear_regret import TIE_BREAK
from consistruct.torch.constants import Constants
from consistruct.torch.forms import form_of
from consistruct.torch.true_labels import TrueLabels, true_labels_of

__all__ = ["BY_MEMBER", "LISTED", "MARGINS", "Listed", "Quadratic", "Values", "half_mean_square"]

MARGINS = ("log", "hinge", "softmax-margin")
BY_MEMBER = "member-log"  # F-measure only
LISTED = ("logistic", "exponential", "square", "sparsemax", "linear-regret", *MARGINS)


class Values(Constants):
    """Required: `width`, `space`, `values`; `expected_target` where the minimizer tells it."""

    true_labels: TrueLabels

    @property
    def has_link(self) -> bool:
        """Whether `expected_target` returns values."""
        return True

    @property
    def probabilistic(self) -> bool:
        """Whether scores stand for a distribution of y: the highest is not yet a decision."""
        return False

    def __init__(self, loss: Loss, space: Structure) -> None:
        super().__init__()
        self.loss, self.space = loss, space
        self.true_labels = true_labels_of(loss)
        self._constant_offset: float | None = _constant_offset(loss)
        self._identity = loss.score_space.one_per_label
        if not self._identity and (loss.n_labels or 2**62) <= ENUMERATION_LIMIT:
            self.hold("every", loss.score_space.matrix(limit=ENUMERATION_LIMIT))

    def listed(self, theta: Tensor) -> Tensor:
        """⟨F_c, θ⟩ of every prediction c in the loss's own scores, (B, k)."""
        if self._identity:
            return theta
        if not hasattr(self, "every_64"):
            raise TooManyLabelsError(
                self.loss.n_labels,
                ENUMERATION_LIMIT,
                f"one number per prediction of {self.loss!r}",
                "decode, or take the expected target",
            )
        return theta @ self.held("every", theta.dtype).T

    @property
    def width(self) -> int:
        """Scores that a network must give."""
        return self.space.width

    def expand(self, theta: Tensor) -> Tensor:
        """Parameters of `space` from what a network gives, (B, width of the space)."""
        return theta

    def values(self, theta: Tensor, true: Tensor) -> Tensor:
        """Φ(θ, y), (B,)."""
        raise NotImplementedError

    def mean(self, theta: Tensor, true: Tensor) -> Tensor | None:
        """The plain mean over the batch where there is a faster way to it, else None."""
        return None

    def expected_target(self, theta: Tensor) -> Tensor:
        """E[u_y | x] in the loss's own scores, (B, width of these)."""
        raise NotImplementedError

    def expected_offset(self, theta: Tensor) -> Tensor:
        """E[o_y | x], (B,)."""
        if self._constant_offset is None:
            raise CapabilityError(
                self.loss,
                "a constant offset",
                "an expected loss from scores",
                "its offset depends on the true label; compare predictions by their scores",
            )
        return torch.full_like(theta[:, 0], self._constant_offset)


class Quadratic(Values):
    """Least squares between scores and minus the loss, in any score space."""

    def __init__(self, loss: Loss, space: Structure) -> None:
        super().__init__(loss, space)
        own = loss.score_space
        self.form = form_of(space)
        common = self.form.common
        self._scale = None if common is None else common * self.width
        self.other = space != own
        self.padded = 0
        if not self.other:
            return
        if space.linked_states is not None and loss.hamming_shape is not None:
            self.padded = space.width - own.width
        else:
            every = np.eye(own.width)
            try:
                self.hold("into", space.coordinates(own)(every))
            except NotInSpanError:  # the projection Ḡ⁺E_c[F_c L(c, y)]
                moments = space.cross_gram(own)(every)
                self.hold("into", space.gram().solve(moments))
                if not space.contains_constant:
                    self.hold("constant", space.gram().solve(space.mean_embedding()[None])[0])
        if own.width * space.width <= ENUMERATION_LIMIT**2:
            every = np.eye(space.width)
            self.hold("back", own.gram().solve(own.cross_gram(space)(every)))

    def wanted(self, true: Tensor, dtype: torch.dtype) -> Tensor:
        """−u_y in the coordinates of the score space, (B, width)."""
        wanted = self.true_labels.wanted(true, dtype)
        if self.padded:
            return torch.nn.functional.pad(wanted, (0, self.padded))
        if not self.other:
            return wanted
        mapped = wanted @ self.held("into", dtype)
        if hasattr(self, "constant_64"):
            offset = self.true_labels.offset(true, dtype)[:, None]
            mapped = mapped - offset * self.held("constant", dtype)
        return mapped

    def values(self, theta: Tensor, true: Tensor) -> Tensor:
        value: Tensor = 0.5 * self.form(theta - self.wanted(true, theta.dtype))
        return value

    def mean(self, theta: Tensor, true: Tensor) -> Tensor | None:
        if self._scale is None:
            return None
        half = half_mean_square(theta, self.wanted(true, theta.dtype))
        return half if self._scale == 1.0 else self._scale * half

    def expected_target(self, theta: Tensor) -> Tensor:
        if not self.other:
            return -theta
        if not hasattr(self, "back_64"):
            raise CapabilityError(
                self.space, "a small width", "expected losses from its scores", "decode instead"
            )
        return -theta @ self.held("back", theta.dtype)


class Listed(Values):
    """Sums and maxima over listed labels; L(c, y) and f_c = ⟨F_c, θ⟩ of each."""

    def __init__(self, surrogate: BaseSurrogate) -> None:
        loss, space = surrogate.loss, surrogate.score_space
        super().__init__(loss, space)
        self.name = surrogate.name
        self.kappa = surrogate.kappa or 1.0
        self.largest = loss.max_value or 1.0
        self.full = space.one_per_label
        if not self.full:
            self.hold("F", space.matrix(limit=ENUMERATION_LIMIT))
        own = loss.score_space.matrix(limit=ENUMERATION_LIMIT)
        measure = space.predictions.weights(limit=ENUMERATION_LIMIT)
        self.hold("measure", measure)
        # E[u] from expected losses: the closest in L²(μ)
        self.hold("solve", loss.score_space.gram().solve(measure[:, None] * own))
        self.by_true_label = self.name in ("sparsemax", *MARGINS)
        if self.by_true_label:
            every = loss.true_labels.enumerate()
            named = space.predictions.index(loss.true_label_as_prediction(every))
            self.index = _Index(every)
            self.hold_index("named", named)
            self.hold("targets", -_rows(self.true_labels, every))
            self.hold("offsets", loss.offset(every))

    @property
    def has_link(self) -> bool:
        return self.name not in ("hinge", "softmax-margin")

    @property
    def probabilistic(self) -> bool:
        return self.name in ("log", "sparsemax")

    def scores(self, theta: Tensor) -> Tensor:
        """f, (B, k)."""
        return theta if self.full else theta @ self.held("F", theta.dtype).T

    def losses(self, true: Tensor, dtype: torch.dtype) -> Tensor:
        """L(c, y) of every prediction, (B, k)."""
        wanted = self.listed(self.true_labels.wanted(true, dtype))
        return self.true_labels.offset(true, dtype)[:, None] - wanted

    def values(self, theta: Tensor, true: Tensor) -> Tensor:
        f = self.scores(theta)
        if self.by_true_label:
            named: Tensor = self.named  # type: ignore[assignment]
            label = named.index_select(0, self.index(true))
            own = f.gather(1, label[:, None])[:, 0]
            return self._above(f, true) - own
        losses = self.losses(true, f.dtype)
        if self.name == "linear-regret":
            outside = f - _projected(f)
            return (losses * f).sum(1) + 0.5 * self.kappa * outside.square().sum(1)
        if self.name == "logistic":
            each = losses * f / self.largest - logsigmoid(f)
        elif self.name == "exponential":
            each = losses * 2.0 * torch.sinh(f) / self.largest + torch.exp(-f)
        else:
            each = losses * f + 0.5 * f.square()
        return each @ self.held("measure", f.dtype)

    def _above(self, f: Tensor, true: Tensor) -> Tensor:
        """What the score of the true label is taken from, (B,)."""
        if self.name == "log":
            return torch.logsumexp(f, 1)
        if self.name == "sparsemax":
            p = _projected(f)
            return 0.5 + (f * p).sum(1) - 0.5 * p.square().sum(1)
        raised = self.losses(true, f.dtype) + f
        if self.name == "softmax-margin":
            return torch.logsumexp(raised, 1)
        return raised.max(1).values  # the first label that attains it

    def _probabilities(self, theta: Tensor) -> Tensor:
        f = self.scores(theta).index_select(1, self.named)  # type: ignore[arg-type]
        return torch.softmax(f, 1) if self.name == "log" else _projected(f)

    def expected_target(self, theta: Tensor) -> Tensor:
        if self.by_true_label:
            return self._probabilities(theta) @ self.held("targets", theta.dtype)
        f = self.scores(theta)
        if self.name == "linear-regret":
            mixed = _projected(f)
            losses = self.kappa * (mixed - f) - TIE_BREAK * self.kappa * mixed
        elif self.name == "logistic":
            losses = self.largest * torch.sigmoid(-f)
        elif self.name == "exponential":  # e^{−f}/(2 cosh f)
            losses = self.largest * torch.sigmoid(-2.0 * f)
        else:
            losses = -f
        offset = self.expected_offset(theta)[:, None]
        return (losses - offset) @ self.held("solve", theta.dtype)

    def expected_offset(self, theta: Tensor) -> Tensor:
        if self.by_true_label:
            return self._probabilities(theta) @ self.held("offsets", theta.dtype)
        return super().expected_offset(theta)


def half_mean_square(theta: Tensor, wanted: Tensor) -> Tensor:
    """½ mean of (θ − w)² over all entries, in one kernel each way.

    Huber's loss, quadratic up to where squares overflow, has the ½ inside; the operator itself is
    called because `torch.nn.functional` takes as long again to reach it.
    """
    found: Tensor = torch.ops.aten.huber_loss.default(theta, wanted, 1, 1e30)
    return found


class _Index(Constants):
    """Position of labels in a list of them, by the number that their digits spell."""

    def __init__(self, labels: np.ndarray) -> None:
        super().__init__()
        self.plain = labels.ndim == 1
        if self.plain:
            return
        base = int(labels.max(initial=1)) + 1
        powers = base ** np.arange(labels.shape[1])[::-1]
        codes = labels @ powers
        order = np.argsort(codes)
        self.hold_index("powers", powers)
        self.hold_index("codes", codes[order])
        self.hold_index("order", order)

    def forward(self, labels: Tensor) -> Tensor:
        if self.plain:
            return labels
        codes = (labels.long() * self.powers).sum(1)  # type: ignore[operator]
        place = torch.searchsorted(self.codes, codes).clamp(max=len(self.codes) - 1)  # type: ignore[arg-type]
        return self.order.index_select(0, place)  # type: ignore[operator]


def _projected(f: Tensor) -> Tensor:
    """The nearest probability distribution to each row."""
    falling = torch.sort(f, dim=1, descending=True).values
    sums = falling.cumsum(1) - 1.0
    sizes = torch.arange(1, f.shape[1] + 1, device=f.device, dtype=f.dtype)
    support = (falling * sizes > sums).sum(1, keepdim=True)
    threshold = sums.gather(1, support - 1) / support
    return (f - threshold).clamp(min=0.0)


def _rows(true_labels: TrueLabels, labels: np.ndarray) -> np.ndarray:
    return true_labels.wanted(torch.as_tensor(labels), torch.float64).numpy()


def _constant_offset(loss: Loss) -> float | None:
    """The offset where it is the same for every true label, else None."""
    if loss.true_labels.size is None:
        return 0.0  # cost vectors have none
    offsets = loss.offset(loss.true_labels.sample(256, np.random.default_rng(0)))
    same = np.ptp(offsets) <= 1e-12 * np.abs(offsets).max(initial=0.0)
    return float(offsets[0]) if same else None
