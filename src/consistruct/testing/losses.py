"""Check losses: offset + ⟨embed, target⟩ against the direct formula, on all pairs or samples.

Every check has two sides that share no code: the direct formula `_value` lists L, and embeddings,
targets and decoders have to reproduce it. A loss that copied one from the other would always pass.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import scipy.sparse as sp

from consistruct.exceptions import CapabilityError, TooManyLabelsError
from consistruct.losses.algebra import Combination
from consistruct.losses.base import Loss, dense_target
from consistruct.losses.decision import Decision
from consistruct.protocols import FloatArray, LabelArray
from consistruct.structures import Structure
from consistruct.testing.contracts import Contracts, read_only, reports_errors
from consistruct.testing.labels import check_label_set
from consistruct.testing.members import check_member
from consistruct.testing.structures import HUGE, N_SAMPLES, check_huge_structure, check_structure

__all__ = ["check_huge_loss", "check_loss"]

N_SAMPLED_TRUE_LABELS = 40  # of an infinite set of true labels
N_DISTRIBUTIONS = 10  # random distributions of y under which the Bayes decision is compared
SMALL_WIDTH = 10**5  # widths of which a few vectors are held


@reports_errors
def check_loss(loss: Loss, *, random_state: int = 0) -> None:
    """Run every contract of a loss, its label sets, its score space and its decoder.

    Parameters
    ----------
    loss : Loss
        A member with few predictions and true labels; all pairs are listed.
    random_state : int
        Seed of the random scores, distributions and samples.

    Raises
    ------
    AssertionError
        With one line that names the loss, the contract and what was found instead.

    Examples
    --------
    >>> from consistruct.losses import CostMatrix, Ordinal
    >>> from consistruct.testing import check_loss
    >>> check_loss(Ordinal(4, 2.0))
    >>> check_loss(CostMatrix([[0, 5], [1, 0]], rows="pred"))
    """
    contracts = Contracts(loss)
    check_member(loss)
    rng = np.random.default_rng(random_state)
    # an oracle cannot list its decisions: what follows needs all rows of F
    if isinstance(loss, Decision):
        _check_decisions(loss, rng)
        return
    contracts.ensure(loss.predictions.size is not None, "check_loss takes a member of fixed size")
    predictions = loss.predictions.enumerate(limit=loss.predictions.size or 0)
    if loss.true_labels.size is None:
        true_labels = loss.true_labels.sample(N_SAMPLED_TRUE_LABELS, rng)
    else:
        true_labels = loss.true_labels.enumerate(limit=loss.true_labels.size)
    check_label_set(loss.true_labels, random_state=random_state)
    L = _check_values(loss, predictions, true_labels)
    _check_factorization(loss, predictions, true_labels, L)
    check_structure(loss.score_space, random_state=random_state)
    _check_span(loss, L)
    _check_questions(loss, true_labels)
    _check_bayes(loss, true_labels, L, rng)
    if loss.true_labels.size is not None:
        _check_worst_true_label(loss, true_labels, rng)
    _check_input(loss, predictions, true_labels, L)
    _check_claims(loss, predictions, true_labels, L)


def _check_decisions(loss: Decision, rng: np.random.Generator) -> None:
    """Check sampled decisions against the direct formula: they have no order and no list."""
    contracts = Contracts(loss)
    check_label_set(loss.true_labels)
    check_label_set(loss.predictions)
    true_labels = loss.true_labels.sample(N_SAMPLED_TRUE_LABELS, rng)
    sampled = loss.predictions.sample(N_SAMPLED_TRUE_LABELS, rng)
    direct = loss(sampled, true_labels)
    if loss.is_exact:
        contracts.ensure((direct >= 0).all(), "regrets of exact oracles are not negative")
    inner = (loss.score_space.embed(sampled) * dense_target(loss.target(true_labels))).sum(axis=1)
    contracts.close(
        loss.offset(true_labels) + inner, direct, "offset + ⟨embed, target⟩ is the direct formula"
    )
    distributions = rng.dirichlet(np.full(len(true_labels), 0.5), size=N_DISTRIBUTIONS)
    mean = distributions @ dense_target(loss.target(true_labels))
    decided = loss.score_space.decode(-mean)
    # the best of all cannot be listed, but no sampled decision may be better than the one decoded
    if loss.is_exact:
        attained, others = (decided * mean).sum(axis=1), mean @ sampled.T
        contracts.ensure((attained[:, None] <= others + 1e-9).all(), "no sampled decision beats it")
    _check_input(loss, sampled, true_labels, np.diag(direct))


def _check_values(loss: Loss, predictions: LabelArray, true_labels: LabelArray) -> FloatArray:
    """List L by one call per true label, and check its bounds against what the loss states."""
    contracts = Contracts(loss)
    columns = []
    for position in range(len(true_labels)):
        true = np.repeat(true_labels[position : position + 1], len(predictions), axis=0)
        column = loss(predictions, true)
        contracts.ensure(
            column.shape == (len(predictions),) and column.dtype == np.float64,
            "a call gives one float64 per pair",
            f"got {column.dtype} {column.shape}",
        )
        columns.append(column)
    L = np.column_stack(columns)
    contracts.ensure(np.isfinite(L).all() and (L >= 0).all(), "losses are finite and non-negative")
    contracts.ensure(loss.n_labels == len(predictions), "n_labels is the number of predictions")
    if loss.true_labels.size is not None:
        largest = max(len(predictions), len(true_labels))
        contracts.close(loss.matrix(limit=largest), L, "matrix lists the direct formula")
        contracts.close(loss.max_value, L.max(), "max_value is the largest loss")
    return L


def _check_factorization(
    loss: Loss, predictions: LabelArray, true_labels: LabelArray, L: FloatArray
) -> None:
    """Check L(ŷ, y) = o_y + ⟨F_ŷ, u_y⟩ for all pairs: the equation that everything else uses."""
    contracts = Contracts(loss)
    given, offset = loss.target(true_labels), loss.offset(true_labels)
    width = loss.score_space.width
    contracts.ensure(
        isinstance(given, np.ndarray | sp.csr_array) and given.shape == (len(true_labels), width),
        "target gives an array or csr_array of shape (n, width)",
        f"got {type(given).__name__} of shape {getattr(given, 'shape', None)}",
    )
    contracts.ensure(given.dtype == np.float64, "target is float64", f"got {given.dtype}")
    contracts.ensure(offset.shape == (len(true_labels),), "offset gives one number per true label")
    contracts.ensure(
        loss.predictions.size == loss.score_space.n_labels,
        "the score space is over the predictions",
    )
    # no tolerance beyond rounding: a target that is off by a constant moves every regret
    F = loss.score_space.embed(predictions)
    U = dense_target(given)
    contracts.close(offset + F @ U.T, L, "offset + ⟨embed, target⟩ equals the direct formula")
    for n in (0, 1):
        contracts.close(
            dense_target(loss.target(true_labels[:n])), U[:n], f"target takes a batch of {n}"
        )
        contracts.close(loss.offset(true_labels[:n]), offset[:n], f"offset takes a batch of {n}")


def _check_questions(loss: Loss, true_labels: LabelArray) -> None:
    """Check groups of target columns, and true labels that are means of single ones.

    A classifier that answers the question of each group knows E[u_y | x]: so columns outside all
    groups must be constant, and no column may be in two.
    """
    contracts = Contracts(loss)
    groups = loss.target_groups()
    target = dense_target(loss.target(true_labels))
    if groups is not None:
        columns = np.concatenate([np.asarray(group) for group in groups])
        contracts.ensure(
            len(np.unique(columns)) == len(columns)
            and bool(((columns >= 0) & (columns < target.shape[1])).all()),
            "target_groups are disjoint columns of the target",
        )
        others = np.setdiff1d(np.arange(target.shape[1]), columns)
        constant = np.ptp(target[:, others], axis=0) == 0 if len(true_labels) else np.ones(0)
        contracts.ensure(constant.all(), "columns in no group are the same for every true label")
    single, rows, share = loss.single_true_labels(true_labels)
    if rows is None:
        return
    assert share is not None
    for name, values in (("target", target), ("offset", loss.offset(true_labels)[:, None])):
        parts = dense_target(getattr(loss, name)(single)).reshape(len(rows), -1)
        total = np.zeros_like(values)
        np.add.at(total, rows, share[:, None] * parts)
        contracts.close(total, values, f"the {name} is the weighted mean over single_true_labels")


def _check_span(loss: Loss, L: FloatArray) -> None:
    """Check that the score space has the rank of [1, L]: it spans the loss and nothing more.

    Larger scores would learn what no decision depends on; smaller ones could not express the loss.
    """
    contracts = Contracts(loss)
    space = loss.score_space
    contracts.ensure(space.contains_constant, "the loss's own score space contains the constant")
    # the constant always belongs to it: decisions do not depend on it, and centering needs it
    rank = np.linalg.matrix_rank(np.column_stack([np.ones(len(L)), L]))
    # the space of a combination is that of its terms, though their columns might cancel
    smallest = space.rank == rank or (isinstance(loss, Combination) and space.rank > rank)
    contracts.ensure(
        smallest,
        "the score space is the smallest with the constant and the columns of L",
        f"rank {space.rank}, the columns have {rank}",
    )


def _check_claims(
    loss: Loss, predictions: LabelArray, true_labels: LabelArray, L: FloatArray
) -> None:
    """Check what a loss states of its form: closed formulas are chosen by it alone."""
    contracts = Contracts(loss)
    wrong = 1.0 - np.eye(*L.shape)
    if loss.hamming_shape is not None:
        T, n_states = loss.hamming_shape
        shapes = loss.predictions.shape == loss.true_labels.shape == (T,)
        named = shapes and len(L) == n_states ** (T or 0)
        contracts.ensure(named, "hamming_shape names all parts and states")
        # every claim is held against L itself, listed by the direct formula
        share = (predictions[:, None] != true_labels[None]).mean(axis=2)
        contracts.close(L, share, "hamming_shape: the loss is the share of wrong parts")
    if loss.block_mixture is not None:
        partition, eta = loss.block_mixture
        blocks = partition.block_of(np.arange(len(L)))
        mixed = eta * wrong + (1.0 - eta) * (blocks[:, None] != blocks)
        contracts.close(L, mixed, "block_mixture: the loss is η·(0-1) + (1−η)·block")
    if loss.is_zero_one:
        contracts.close(L, wrong, "is_zero_one: the loss is the 0-1 loss")
    if loss.takes_cost_vectors:
        contracts.close(
            L, true_labels.T, "takes_cost_vectors: a true label is the column of its losses"
        )
    if loss.abstain_index is not None:
        contracts.ensure(0 <= loss.abstain_index < len(L), "abstain_index is a prediction")


def _check_bayes(
    loss: Loss, true_labels: LabelArray, L: FloatArray, rng: np.random.Generator
) -> None:
    """Check that decode(−E_q u_y) minimizes Σ_y q(y) L(·, y) for random distributions q of y."""
    # Dirichlet(½) draws favor the corners, where few labels carry the mass and decisions differ
    # most
    contracts = Contracts(loss)
    distributions = rng.dirichlet(np.full(len(true_labels), 0.5), size=N_DISTRIBUTIONS)
    decision = loss.score_space.decode(-distributions @ dense_target(loss.target(true_labels)))
    risks = distributions @ L.T
    attained = risks[np.arange(N_DISTRIBUTIONS), loss.predictions.index(decision).astype(np.int64)]
    contracts.close(
        attained, risks.min(axis=1), "decoding minus the mean target gives the Bayes decision"
    )


def _check_worst_true_label(loss: Loss, true_labels: LabelArray, rng: np.random.Generator) -> None:
    """Check max_y ⟨d, u_y⟩ + w·o_y against the list of all true labels, and who attains it."""
    contracts = Contracts(loss)
    direction = rng.standard_normal((6, loss.score_space.width))
    U, offset = dense_target(loss.target(true_labels)), loss.offset(true_labels)
    for offset_weight in (0.0, -0.7):
        all_values = direction @ U.T + offset_weight * offset
        values, worst = loss.worst_true_label(direction, offset_weight)
        contracts.close(values, all_values.max(axis=1), "worst_true_label gives the largest value")
        index = loss.true_labels.index(worst).astype(np.int64)
        contracts.close(
            all_values[np.arange(len(all_values)), index],
            values,
            "worst_true_label names a true label that attains it",
        )
    try:
        named = loss.true_label_as_prediction(true_labels)
    except CapabilityError:
        return
    contracts.ensure(
        len(loss.predictions.check(named)) == len(true_labels),
        "true_label_as_prediction is a prediction",
    )


def _check_input(
    loss: Loss, predictions: LabelArray, true_labels: LabelArray, L: FloatArray
) -> None:
    """Check narrow and read-only input, batches of 0 and 1, and labels that do not pair up."""
    contracts = Contracts(loss)
    n = min(len(predictions), len(true_labels))
    diagonal = L[np.arange(n), np.arange(n)]
    # float32 for cost vectors, small integers for labels
    narrow: Any = np.int32 if true_labels.dtype.kind == "i" else np.float32
    pred, true = read_only(predictions[:n], np.int32), read_only(true_labels[:n], narrow)
    kept = true.copy()
    contracts.close(
        loss(pred, true), diagonal, "read-only narrow labels are accepted", tolerance=1e-6
    )
    loss.target(true)
    contracts.ensure(np.array_equal(true, kept), "calls leave their input alone")
    for m in (0, 1):
        contracts.close(
            loss(predictions[:m], true_labels[:m]), diagonal[:m], f"a batch of {m} is accepted"
        )
    contracts.raises(
        ValueError,
        lambda: loss(np.repeat(predictions[:1], 2, axis=0), true_labels[:1]),
        "pred and true of different lengths raise ValueError",
    )


@reports_errors
def check_huge_loss(loss: Loss, *, random_state: int = 0) -> None:
    """Check a loss over more than 2^200 predictions: exact counts, finite products or an error.

    Where the width of its score space stays small, every product runs and agrees with the direct
    formula on sampled labels. Otherwise whatever needs one number per label raises
    `TooManyLabelsError`.

    Parameters
    ----------
    loss : Loss
    random_state : int
        Seed of the sampled labels.

    Examples
    --------
    >>> from consistruct.losses import Hamming
    >>> from consistruct.testing import check_huge_loss
    >>> check_huge_loss(Hamming(1000))
    """
    contracts = Contracts(loss)
    check_member(loss)
    size = loss.n_labels
    contracts.ensure(type(size) is int and size > HUGE, "n_labels is an exact int above 2^200")
    rng = np.random.default_rng(random_state)
    try:
        space = loss.score_space
        small = space.width <= SMALL_WIDTH
    except TooManyLabelsError:
        return  # this span needs the whole matrix, and its error says so
    pred = loss.predictions.sample(N_SAMPLES, rng)
    if not small:
        _check_refusals(loss, space, pred)
        return
    true = loss.true_labels.sample(N_SAMPLES, rng)
    # a right prediction among the samples: of 2^200 labels a draw never is one
    with suppress(CapabilityError):  # true labels may be of another kind than predictions
        pred[0] = loss.true_label_as_prediction(true[:1])[0]
    direct = loss(pred, true)
    contracts.ensure(np.isfinite(direct).all(), "losses of huge labels are finite")
    contracts.ensure((direct <= loss.max_value).all(), "max_value bounds the loss")
    inner = (space.embed(pred) * dense_target(loss.target(true))).sum(axis=1)
    contracts.close(
        loss.offset(true) + inner, direct, "offset + ⟨embed, target⟩ equals the direct formula"
    )
    # one true label at a time the Bayes decision is the true label's best prediction, no worse than
    # a sample
    decided = space.decode(-dense_target(loss.target(true)))
    contracts.ensure(
        (loss(decided, true) <= direct + 1e-9).all(), "decoding minus the target is optimal"
    )
    values, worst = loss.worst_true_label(space.embed(pred), 1.0)
    contracts.close(loss(pred, worst), values, "worst_true_label attains its value")
    contracts.ensure((values >= direct - 1e-9).all(), "worst_true_label costs at least a sample")
    check_huge_structure(space, random_state=random_state)


def _check_refusals(loss: Loss, space: Structure, pred: np.ndarray) -> None:
    """Check that what needs one number per label raises, and does not fill the memory."""
    contracts = Contracts(loss)
    theta = np.zeros((1, 4))
    for name, action in (
        ("embed", lambda: space.embed(pred)),
        ("gram", space.gram),
        ("decoder", lambda: space.decode(theta)),
        ("matrix", space.matrix),
        ("target", lambda: loss.target(loss.true_labels.sample(2, np.random.default_rng(0)))),
        ("loss matrix", loss.matrix),
    ):
        contracts.raises(
            TooManyLabelsError, action, f"{name} over too many labels raises TooManyLabelsError"
        )
    effective = space.effective_classes()
    contracts.ensure(np.isfinite(effective.log), "the logarithm of k_eff stays finite")
