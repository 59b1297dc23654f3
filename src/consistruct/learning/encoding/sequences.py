"""Sequences of tokens as examples: whatever the user holds -> packed tokens and states of tags."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from consistruct._validation import is_sparse
from consistruct.exceptions import CapabilityError, ConsistructError
from consistruct.learning.encoding.frames import as_array, is_frame
from consistruct.learning.encoding.kinds import Examples, Kind, check_sample_weight
from consistruct.learning.encoding.missing import refuse_missing_labels
from consistruct.learning.encoding.named_inputs import table_numbers
from consistruct.learning.encoding.tags import TagSet, pack_tags
from consistruct.learning.encoding.tokens import NamedTokens, PackedTokens, read_tokens
from consistruct.learning.statistics import Statistic, simplex_projection
from consistruct.losses import Hamming
from consistruct.losses.base import Loss
from consistruct.protocols import FloatArray
from consistruct.structures import Ragged

__all__ = ["Sequences", "TokenStates", "read_batch", "read_sequences", "takes_sequences"]


@dataclass(frozen=True, eq=False, repr=False)
class TokenStates(Statistic):
    """τ(y) = one-hot state of every token: E[τ | x] are the marginal probabilities, packed.

    Parameters
    ----------
    loss : Hamming
        Of the family ``Hamming(None, s)``.
    tags : tuple, optional
        What the states are called: a model that forbids transitions knows them by these names.

    Examples
    --------
    >>> import numpy as np
    >>> from consistruct.structures import Ragged
    >>> from consistruct.losses import Hamming
    >>> statistic = TokenStates(Hamming(None, 2))
    >>> marginals = Ragged(np.array([[0.9, 0.1], [0.4, 0.6]]), np.array([0, 2]))
    >>> pred = statistic.decode(marginals)
    >>> pred.values.tolist(), statistic.expected_loss(marginals, pred)
    ([0, 1], array([0.25]))
    """

    loss: Hamming
    tags: tuple[Any, ...] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.loss, Hamming) or self.loss.T is not None:
            raise TypeError(f"sequences need a family Hamming(None, n_states), got {self.loss!r}")

    @property
    def width(self) -> int:
        """States: columns of the packed values."""
        return self.loss.n_states

    @property
    def names(self) -> tuple[Any, ...]:
        """Names of the states, the numbers themselves where none were given."""
        return tuple(range(self.width)) if self.tags is None else self.tags

    def values(self, true: Ragged) -> Any:
        return true.with_values(np.eye(self.width)[true.values])

    def target(self, expected: Any) -> Any:
        """−P(y_t = a)/T for the tokens of a sequence of length T, packed (N, s)."""
        lengths = expected.lengths[expected.rows]
        return expected.with_values(-expected.values / lengths[:, None])

    def offset(self, expected: Any) -> FloatArray:
        return np.ones(len(expected))

    def project(self, expected: Any) -> Any:
        return expected.with_values(simplex_projection(expected.values))

    def decode(self, expected: Any) -> Any:
        return expected.with_values(expected.values.argmax(axis=1).astype(np.int64))

    def expected_loss(self, expected: Any, pred: Any) -> FloatArray:
        """Share of the tokens that are wrong in expectation, (n,)."""
        distribution = self.project(expected).values
        right = distribution[np.arange(len(distribution)), pred.values]
        wrong = np.bincount(expected.rows, weights=1.0 - right, minlength=len(expected))
        return np.asarray(wrong / expected.lengths)

    def expected_losses(self, expected: Any) -> FloatArray:
        raise CapabilityError(
            self,
            "a list of all predictions",
            "the expected loss of every prediction",
            "there are too many sequences of tags to list; predict_expected_loss gives the "
            "expected loss of the prediction",
        )

    def squared_error(self, error: Any) -> FloatArray:
        squares = np.bincount(
            error.rows, weights=(error.values**2).sum(axis=1), minlength=len(error)
        )
        return np.asarray(0.5 * squares / error.lengths)

    def with_loss(self, loss: Loss) -> Self:
        if loss.hamming_shape == (None, self.width):
            return type(self)(Hamming(None, self.width), self.tags)
        raise ConsistructError(
            f"states of tokens are for {self.loss!r}, the share of wrong tokens, not for {loss!r}"
        )


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
