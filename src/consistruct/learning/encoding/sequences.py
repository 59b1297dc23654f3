"""Sequences of tokens as examples: whatever the user holds -> packed tokens and states of tags."""

from __future__ import annotations

from typing import Any

import numpy as np

from consistruct._frames import as_array, is_frame, refuse_missing_labels
from consistruct._validation import is_sparse
from consistruct.decisions.statistics import TokenStates
from consistruct.learning.encoding.kinds import Examples, Kind, check_sample_weight
from consistruct.learning.encoding.named_inputs import table_numbers
from consistruct.learning.encoding.tags import TagSet, pack_tags
from consistruct.learning.encoding.tokens import NamedTokens, PackedTokens, read_tokens
from consistruct.losses import Hamming
from consistruct.protocols import FloatArray
from consistruct.structures import Ragged

__all__ = ["Sequences", "read_batch", "read_sequences", "takes_sequences"]


class Sequences(Kind):
    """Sequences of tokens with one tag each, judged by the share of wrong tags."""

    name = "sequences"
    loss: Hamming
    labels: TagSet

    def __init__(self, loss: Hamming, labels: TagSet) -> None:
        self.loss = loss
        self.labels = labels

    def inputs(self, estimator: Any, X: Any, groups: Any = None) -> PackedTokens | NamedTokens:
        return read_tokens(table_numbers(estimator, X, reset=False), groups)

    def take(self, inputs: Any, rows: Any) -> Any:
        return inputs.take(rows)

    def codes(self, inputs: Any, y: Any) -> Ragged:
        tags = pack_tags(as_array(y), inputs.offsets)
        _refuse_missing_tags(tags, inputs)
        return Ragged(self.labels.known(tags), inputs.offsets)

    def losses(self, inputs: Any, codes: Ragged, y: Any) -> FloatArray:
        """Share of the tokens that are wrong, by sequence; tags never seen count as wrong."""
        return self.code_losses(codes, self.codes(inputs, y))

    def code_losses(self, codes: Ragged, true_codes: Ragged) -> FloatArray:
        wrong = (codes.values != true_codes.values).astype(np.float64)
        return np.asarray(np.add.reduceat(wrong, codes.offsets[:-1]) / codes.lengths)

    def present(self, inputs: Any, codes: Ragged) -> Any:
        """Tags of each sequence, a list of arrays; one flat array where groups were given."""
        tags = self.labels.decode(codes.values)
        return tags if inputs.flat else np.split(tags, codes.offsets[1:-1])

    def statistic(self) -> TokenStates:
        return TokenStates(self.loss, tuple(self.labels.tags))


def takes_sequences(loss: Any, X: Any, groups: Any = None) -> bool:
    """Whether X holds sequences of different lengths and the loss is a family that judges them.

    >>> takes_sequences("hamming", [np.zeros((2, 3)), np.zeros((5, 3))])
    True
    >>> takes_sequences("hamming", [["the", "cat"], ["a"]])
    True
    >>> takes_sequences("hamming", np.zeros((10, 3)))
    False
    >>> takes_sequences("hamming", np.zeros((10, 3)), groups=[0] * 4 + [1] * 6)
    True
    """
    name = loss.replace("-", "_").partition(":")[0] if isinstance(loss, str) else None
    family = name == "hamming" or (isinstance(loss, Hamming) and loss.T is None)
    if not family or X is None:
        return False
    if groups is not None or isinstance(X, PackedTokens | NamedTokens | Ragged):
        return True
    if is_sparse(X) or isinstance(X, np.ndarray) or not isinstance(X, list | tuple) or not X:
        return False
    first = X[0]
    if is_sparse(first) or isinstance(first, np.ndarray):
        return is_sparse(first) or first.ndim == 2
    if is_frame(first):
        return True
    # nested lists: tokens are words, lists, dicts or sets, where a row of a table holds numbers
    tokens = (str, list, tuple, dict, set, frozenset, np.ndarray)
    return isinstance(first, list | tuple) and (len(first) == 0 or isinstance(first[0], tokens))


def read_sequences(
    estimator: Any,
    model: Any,
    X: Any,
    y: Any,
    groups: Any = None,
    sample_weight: Any = None,
    *,
    kind: Sequences | None = None,
) -> Examples:
    """Training data of sequences.

    Parameters
    ----------
    estimator : the estimator that reads
        Its loss is "hamming", which takes the number of states from y, or a Hamming object; it
        gets ``n_features_in_`` where tokens are numbers.
    model : TargetModel
        Not needed: models take tokens as numbers and by names.
    X : list of (T_i, d) arrays, of lists of feature dicts or strings; PackedTokens; rows and groups
    y : the tags of each sequence, or of all tokens in one array
    groups : (N,) array, optional
        Sequence of each row of X; rows of a sequence stand together.
    sample_weight : (n,) array, optional
        How often each sequence counts.
    kind : Sequences, optional
        Of the first batch of `partial_fit`, whose tags are the only ones.
    """
    if y is None:
        raise ValueError(f"{type(estimator).__name__} requires y to be passed, but y is None")
    loss = estimator.loss
    tokens = read_tokens(table_numbers(estimator, X, reset=kind is None), groups)
    tags = pack_tags(as_array(y), tokens.offsets)
    _refuse_missing_tags(tags, tokens)
    if kind is None:
        found = TagSet(tags)
        if not isinstance(loss, str) and len(found) > loss.n_states:
            raise ValueError(
                f"y contains {len(found)} tags, but {loss!r} has {loss.n_states} states"
            )
        kind = Sequences(_family(loss, found), found)
    if isinstance(tokens, PackedTokens) and not hasattr(estimator, "columns_"):
        estimator.n_features_in_ = tokens.n_features
    states = Ragged(kind.labels.encode(tags, tokens.offsets), tokens.offsets)
    return Examples(kind, tokens, states, check_sample_weight(sample_weight, len(tokens)))


def _refuse_missing_tags(tags: list[Any], tokens: Any) -> None:
    """Raise ValueError where tags of rows of a table are missing; in column files NA may be one."""
    if isinstance(tokens, PackedTokens):
        refuse_missing_labels(np.array(tags, dtype=object))


def read_batch(
    estimator: Any,
    model: Any,
    X: Any,
    y: Any,
    groups: Any,
    sample_weight: Any,
    kind: Sequences | None,
    classes: Any,
) -> Examples:
    """A batch of `partial_fit`: the tags are those of the first call, which must name them all."""
    if kind is None:
        if classes is None:
            raise ValueError(
                "the first call of partial_fit needs classes=, all tags of the task, for sequences"
            )
        tags = TagSet(np.asarray(classes).tolist() if hasattr(classes, "tolist") else classes)
        kind = Sequences(_family(estimator.loss, tags), tags)
    return read_sequences(estimator, model, X, y, groups, sample_weight, kind=kind)


def _family(loss: Hamming | str, tags: TagSet) -> Hamming:
    """The loss, or what its spec stands for with as many states as there are tags."""
    return Hamming(None, max(len(tags), 2)) if isinstance(loss, str) else loss
