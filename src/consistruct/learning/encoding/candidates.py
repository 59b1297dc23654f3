"""Sets of candidate labels as users write them: sets, lists, single labels or indicator rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from consistruct._frames import is_missing_label, refuse_missing_rows
from consistruct.decisions.classes import (
    UNSEEN,
    class_labels,
    listed,
    lookup_codes,
    shown,
    sorted_classes,
)
from consistruct.learning.encoding.labels import LabelEncoding, RawLabels, written_as
from consistruct.losses import parse_loss
from consistruct.losses.base import Loss, Sizes
from consistruct.losses.partial_labels import PartialLabels
from consistruct.protocols import FloatArray, IntArray, LabelArray
from consistruct.structures import Ragged

__all__ = ["CandidateLabels", "candidate_sets", "distinct_candidates", "prepare_candidates"]

SETS = (set, frozenset, list, tuple, np.ndarray)


def candidate_sets(y: Any, name: str = "y") -> Any:
    """A list with the candidates of each example, or a 0/1 matrix (n, m).

    An entry may be a set, list, tuple or array of candidates, or one label.

    >>> candidate_sets([{"b"}, ["a", "b"], "a"])
    [['b'], ['a', 'b'], ['a']]
    """
    if y is None:
        raise ValueError(f"{name} is None; pass the set of candidates of each example")
    if isinstance(y, Ragged):
        return [list(np.asarray(row).tolist()) for row in y]
    if hasattr(y, "toarray"):
        y = y.toarray()
    if isinstance(y, np.ndarray) and y.ndim == 2 and y.dtype.kind in "biuf":
        if not np.isin(y, (0, 1)).all():
            raise ValueError(
                f"{name} must be a list of sets or a 0/1 matrix with a column per class, got "
                f"{shown(y[~np.isin(y, (0, 1))][0])}"
            )
        return y.astype(np.int64)
    rows = [_candidates(entry) for entry in y]
    refuse_missing_rows(name, np.array([any(map(is_missing_label, row)) for row in rows], bool))
    for example, candidates in enumerate(rows):
        if not candidates:
            raise ValueError(
                f"example {example} has no candidates; leave it out, or list its candidates"
            )
    return rows


def _candidates(entry: Any) -> list[Any]:
    if isinstance(entry, np.ndarray):
        return list(np.atleast_1d(entry).tolist())
    return list(dict.fromkeys(entry)) if isinstance(entry, SETS) else [entry]


def distinct_candidates(y: Any) -> Any:
    """All labels that are candidates somewhere, in order; column numbers of a matrix."""
    if isinstance(y, np.ndarray):
        return np.arange(y.shape[1])
    labels = {
        label.item() if isinstance(label, np.generic) else label for row in y for label in row
    }
    try:
        return np.array(sorted(labels))
    except TypeError:
        raise TypeError(
            "the candidates must be labels of one type that can be sorted, got a mixture; convert "
            "them to strings first"
        ) from None


class CandidateLabels:
    """Candidate sets over the labels `classes` of the base loss; `predictions` name the labels."""

    def __init__(self, classes: Any, predictions: Any) -> None:
        self.classes = classes  # (m,)
        self.predictions = predictions  # (k,)

    def class_names(self, loss: Loss) -> Any:
        """What scikit-learn calls classes."""
        return sorted_classes(self.classes)

    def encode(self, y: Any, loss: Loss) -> LabelArray:
        """Masks (n, m)."""
        rows = candidate_sets(y)
        if isinstance(rows, np.ndarray):
            return loss.true_labels.check(rows, "y")
        codes, examples = self._codes(rows)
        if (codes == UNSEEN).any():
            position = int(np.argmax(codes == UNSEEN))
            unknown = [label for row in rows for label in row][position]
            raise ValueError(
                f"y contains {shown(unknown)}, which is not one of {listed(self.classes)}"
            )
        masks = np.zeros((len(rows), len(self.classes)), dtype=np.int64)
        masks[examples, codes] = 1
        return masks

    def decode(self, pred: LabelArray) -> Any:
        return self.predictions[pred]

    def losses(self, loss: Loss, pred: LabelArray, y: Any) -> FloatArray:
        """A candidate that training never saw costs as much as any; see `PartialLabels`."""
        assert isinstance(loss, PartialLabels)
        rows = candidate_sets(y)
        if isinstance(rows, np.ndarray):
            return loss(pred, rows)
        codes, examples = self._codes(rows)
        known = codes != UNSEEN
        values = np.full(len(codes), loss.loss.max_value)
        values[known] = loss.loss(pred[examples[known]], codes[known])
        starts = np.searchsorted(examples, np.arange(len(rows)))
        if loss.reduce == "average":
            return np.asarray(np.add.reduceat(values, starts) / np.bincount(examples))
        reduction = np.minimum if loss.reduce == "infimum" else np.maximum
        return np.asarray(reduction.reduceat(values, starts))

    def _codes(self, rows: Sequence[list[Any]]) -> tuple[LabelArray, IntArray]:
        """Codes of all candidates and the example of each."""
        flat = np.array([label for row in rows for label in row])
        lengths = np.array([len(row) for row in rows])
        return lookup_codes(flat, self.classes), np.repeat(np.arange(len(rows)), lengths)


def prepare_candidates(loss: Any, y: Any) -> tuple[Loss, LabelEncoding, LabelArray]:
    """The loss with its sizes, the encoder and the codes, as `prepare_labels` gives them."""
    sets = candidate_sets(y)
    distinct = distinct_candidates(sets)
    if isinstance(loss, str):
        loss = parse_loss(loss, sizes=Sizes(n_classes=len(distinct)))
    if written_as(loss.loss) != "classes":  # masks over structured true labels
        encoding: LabelEncoding = RawLabels()
        return loss, encoding, encoding.encode(sets, loss)
    named = class_labels(loss.loss, distinct)
    encoding = CandidateLabels(named.classes, named.predictions)
    return loss, encoding, encoding.encode(sets, loss)
