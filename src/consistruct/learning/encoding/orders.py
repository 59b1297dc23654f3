"""Label rankings as users write them: orders of named labels, full or with the rest left open."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from consistruct.decisions.classes import (
    UNSEEN,
    are_codes,
    distinct_labels,
    listed,
    lookup_codes,
    shown,
)
from consistruct.learning.encoding.labels import LabelEncoding
from consistruct.losses import Kendall, parse_loss
from consistruct.losses.base import Loss, Sizes
from consistruct.protocols import FloatArray, IntArray, LabelArray
from consistruct.structures import Permutations

__all__ = ["OrderLabels", "RankLabels", "order_labels", "orders_from_ranks", "prepare_orders"]


def orders_from_ranks(ranks: ArrayLike) -> IntArray:
    """Orders, best label first, from the rank of each label (smallest is best), (n, k) -> (n, k).

    Ties have no order and are refused; `Kendall` with ``ties="exclude"`` or ``"average"`` learns
    from ranks with ties.

    Examples
    --------
    >>> from consistruct.learning import orders_from_ranks
    >>> orders_from_ranks([[2, 1, 3], [1, 2, 3]])
    array([[1, 0, 2],
           [0, 1, 2]])
    """
    values = np.asarray(ranks, dtype=np.float64)
    if values.ndim != 2:
        raise ValueError(f"ranks must have shape (n, labels), got {values.shape}")
    if np.isnan(values).any():
        row = int(np.argmax(np.isnan(values).any(axis=1)))
        raise ValueError(
            f"row {row} of ranks contains NaN; Kendall(k, ties='exclude') learns from partial ranks"
        )
    order = np.argsort(values, axis=1, kind="stable")
    tied = (np.diff(np.take_along_axis(values, order, axis=1), axis=1) == 0).any(axis=1)
    if tied.any():
        row = int(np.argmax(tied))
        raise ValueError(
            f"row {row} of ranks has ties, {values[row].tolist()}, so it is not an order; break "
            "the ties, or pass the ranks as they are to Kendall(k, ties='exclude')"
        )
    return order.astype(np.int64)


class OrderLabels:
    """Orders of the labels `items`, best first; −1, NaN or None ends an order early.

    An order that ends early states that the labels it lists come before all others, in that order.
    """

    def __init__(self, items: Any) -> None:
        self.items = items  # (k,)

    def class_names(self, loss: Loss) -> Any:
        """What scikit-learn calls classes."""
        return np.arange(loss.true_labels.shape[0])

    def encode(self, y: Any, loss: Loss) -> LabelArray:
        """True labels of the loss: orders of 0..k−1, or ranks where the loss takes ties."""
        codes, unseen, open_end = self._codes(y)
        if unseen.any():
            row, place = np.argwhere(unseen)[0]
            raise ValueError(
                f"y contains {shown(np.asarray(y)[row, place])}, which is not one of "
                f"{listed(self.items)}"
            )
        if isinstance(loss.true_labels, Permutations):
            if open_end.any():
                row = int(np.argmax(open_end))
                raise ValueError(
                    f"row {row} of y is a partial order, but {type(loss).__name__} needs full "
                    f"ones; use loss='kendall' or Kendall({len(self.items)}, ties='exclude')"
                )
            return codes
        return ranks_of_partial_orders(codes)

    def decode(self, pred: LabelArray) -> Any:
        return self.items[pred]

    def losses(self, loss: Loss, pred: LabelArray, y: Any) -> FloatArray:
        """An order with a label that training never saw is as wrong as can be."""
        codes, unseen, open_end = self._codes(y)
        known = ~unseen.any(axis=1)
        values = np.full(len(codes), loss.max_value)
        if isinstance(loss, Kendall) and (loss.ties != "refuse" or open_end[known].any()):
            partial = loss if loss.ties != "refuse" else dataclasses.replace(loss, ties="exclude")
            values[known] = partial(pred[known], ranks_of_partial_orders(codes[known]))
        else:
            full = OrderLabels(np.arange(len(self.items))).encode(codes[known], loss)
            values[known] = loss(pred[known], full)
        return values

    def prediction_codes(self, pred: Any) -> LabelArray:
        """Orders as `decode` writes them -> orders of 0..k−1."""
        codes, unseen, open_end = self._codes(pred)
        if unseen.any() or open_end.any():
            row = int(np.argmax(unseen.any(axis=1) | open_end))
            raise ValueError(
                f"y_pred must contain full orders of {listed(self.items)}, got "
                f"{np.asarray(pred)[row].tolist()} at row {row}"
            )
        return codes

    def _codes(self, y: Any) -> tuple[IntArray, Any, Any]:
        """Codes (n, k) with −1 for places left open, [never seen] (n, k), [left open] (n,)."""
        labels = np.asarray(y)
        k = len(self.items)
        if labels.ndim != 2 or labels.shape[1] != k:
            raise ValueError(f"y must have shape (n, {k}), one order per row, got {labels.shape}")
        left = missing(labels)
        codes = lookup_codes(labels.ravel(), self.items).reshape(labels.shape)
        codes[left] = UNSEEN
        _refuse_ties(labels, codes)
        late = left[:, :-1] & ~left[:, 1:]
        if late.any():
            row = int(np.argmax(late.any(axis=1)))
            raise ValueError(
                f"row {row} of y has a gap, {labels[row].tolist()}; an order lists the best "
                "labels first, and -1 or NaN may mark only where it ends"
            )
        return codes, (codes == UNSEEN) & ~left, left.any(axis=1)


def order_labels(y: Any) -> tuple[OrderLabels, bool]:
    """Which labels are ranked, and whether some orders leave their end open."""
    labels = np.asarray(y)
    if labels.ndim != 2:
        raise ValueError(f"y must have shape (n, labels), one order per row, got {labels.shape}")
    k = labels.shape[1]
    left = missing(labels)
    if left.all():
        raise ValueError("y contains only empty orders; list at least the best label of each")
    distinct = distinct_labels(labels[~left])
    if distinct.dtype.kind == "f" and (distinct == np.floor(distinct)).all():
        distinct = distinct.astype(np.int64)  # NaN at an open end made floats of them
    if are_codes(distinct, k):
        items = np.arange(k)
    elif len(distinct) == k:
        items = distinct
    else:
        raise ValueError(
            f"y must contain orders of {k} labels, as many as it has columns, but it names "
            f"{len(distinct)} different ones: {listed(distinct)}"
        )
    return OrderLabels(items), bool(left.any())


class RankLabels:
    """The rank of each label, smallest best, equal ones tied; −1 or NaN: after all ranked ones."""

    def class_names(self, loss: Loss) -> Any:
        """What scikit-learn calls classes."""
        return np.arange(loss.true_labels.shape[0])

    def encode(self, y: Any, loss: Loss) -> LabelArray:
        """Dense ranks 0, 1, …, (n, k)."""
        (k,) = loss.true_labels.shape
        ranks = np.array(y, dtype=np.float64)
        if ranks.ndim != 2 or ranks.shape[1] != k:
            raise ValueError(
                f"y must have shape (n, {k}), the rank of each label, got {ranks.shape}"
            )
        ranks[np.isnan(ranks) | (ranks == -1)] = np.inf
        order = np.argsort(ranks, axis=1, kind="stable")
        ordered = np.take_along_axis(ranks, order, axis=1)
        steps = np.cumsum(ordered[:, 1:] != ordered[:, :-1], axis=1)
        dense = np.zeros(ranks.shape, dtype=np.int64)
        np.put_along_axis(dense, order[:, 1:], steps, axis=1)
        return dense

    def decode(self, pred: LabelArray) -> Any:
        return pred

    def losses(self, loss: Loss, pred: LabelArray, y: Any) -> FloatArray:
        return loss(pred, self.encode(y, loss))


def missing(labels: Any) -> Any:
    """[nothing is listed here]: −1, NaN, None or an empty string."""
    if labels.dtype.kind in "iu":
        return labels == -1
    if labels.dtype.kind == "f":
        return np.isnan(labels) | (labels == -1)
    absent = np.frompyfunc(lambda label: label is None or label == "" or label != label, 1, 1)
    return absent(labels).astype(np.bool_)


def ranks_of_partial_orders(codes: IntArray) -> IntArray:
    """Ranks 0, 1, … of the labels that each order lists; all others share the next one, (n, k)."""
    k = codes.shape[1]
    listed_here = codes != UNSEEN
    count = listed_here.sum(axis=1)
    ranks = np.repeat(np.minimum(count, k - 1)[:, None], k, axis=1)
    rows, places = np.nonzero(listed_here)
    ranks[rows, codes[rows, places]] = places
    return ranks


def _refuse_ties(labels: Any, codes: IntArray) -> None:
    ordered = np.sort(codes, axis=1)
    twice = (np.diff(ordered, axis=1) == 0) & (ordered[:, 1:] != UNSEEN)
    if twice.any():
        row = int(np.argmax(twice.any(axis=1)))
        raise ValueError(
            f"row {row} of y lists a label twice, {labels[row].tolist()}; an order has no ties "
            "(for ranks with ties use Kendall(k, ties='exclude'), for ranks without ties "
            "orders_from_ranks)"
        )


def prepare_orders(loss: Any, labels: LabelArray) -> tuple[Loss, LabelEncoding, LabelArray]:
    """The loss with its sizes, the encoder and the codes, as `prepare_labels` gives them."""
    if getattr(loss, "ties", "refuse") != "refuse":
        encoding: LabelEncoding = RankLabels()
        return loss, encoding, encoding.encode(labels, loss)
    encoding, partial = order_labels(labels)
    if isinstance(loss, str):
        loss = parse_loss(loss, sizes=Sizes(n_parts=labels.shape[1]))
        if partial and hasattr(loss, "ties"):  # a tied pair has no order to disagree with
            loss = dataclasses.replace(loss, ties="exclude")
    elif loss.n is None:
        loss = loss.at(labels.shape[1])
    if loss.n != labels.shape[1]:
        raise ValueError(f"{loss!r} needs y of shape (n, {loss.n}), got {labels.shape}")
    return loss, encoding, encoding.encode(labels, loss)
