"""Members with more than 2^200 labels: every product runs, or the error says why it cannot."""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from consistruct.exceptions import CapabilityError, TooManyLabelsError
from consistruct.losses.base import Loss, dense_target
from consistruct.scores import Centred, Orthonormalised
from consistruct.scores.base import BaseScoreSpace
from consistruct.testing.contracts import ensure, ensure_close, ensure_raises, reports_errors
from consistruct.testing.members import check_member

__all__ = ["check_huge_loss", "check_huge_score_space"]

HUGE = 2**200
SMALL_WIDTH = 10**5
N_SAMPLES = 6
WELL_CONDITIONED = 1e8  # beyond it float64 leaves nothing of a centred kernel to compare


@reports_errors
def check_huge_loss(loss: Loss, *, random_state: int = 0) -> None:
    """A loss over more than 2^200 predictions: exact counts, and finite products or an error.

    Where the width of its score space stays small, every product runs and agrees with the direct
    formula on sampled labels. Otherwise whatever needs one number per label raises
    `TooManyLabelsError`.
    """
    check_member(loss)
    size = loss.n_labels
    ensure(type(size) is int and size > HUGE, loss, "n_labels is an exact int above 2^200")
    rng = np.random.default_rng(random_state)
    try:
        space = loss.score_space
        small = space.width <= SMALL_WIDTH
    except TooManyLabelsError:
        return  # the span itself needs the matrix, and says so
    pred = loss.predictions.sample(N_SAMPLES, rng)
    if not small:
        _check_refusals(loss, space, pred)
        return
    true = loss.truths.sample(N_SAMPLES, rng)
    with suppress(CapabilityError):  # truths may be of another kind than predictions
        pred[0] = loss.truth_as_prediction(true[:1])[0]
    direct = loss(pred, true)
    ensure(bool(np.isfinite(direct).all()), loss, "losses of huge labels are finite")
    ensure(bool((direct <= loss.max_value).all()), loss, "max_value bounds the loss")
    inner = (space.embed(pred) * dense_target(loss.target(true))).sum(axis=1)
    ensure_close(
        loss.offset(true) + inner,
        direct,
        loss,
        "offset + ⟨embed, target⟩ equals the direct formula",
    )
    # one truth at a time the Bayes decision is the truth's best prediction, no worse than a sample
    decided = space.decoder()(-dense_target(loss.target(true)))
    ensure(
        bool((loss(decided, true) <= direct + 1e-9).all()),
        loss,
        "decoding minus the target is optimal",
    )
    values, worst = loss.worst_truth(space.embed(pred), 1.0)
    ensure_close(loss(pred, worst), values, loss, "worst_truth attains its value")
    ensure(bool((values >= direct - 1e-9).all()), loss, "worst_truth costs at least a sample")
    check_huge_score_space(space, random_state=random_state)


def _check_refusals(loss: Loss, space: BaseScoreSpace, pred: np.ndarray) -> None:
    theta = np.zeros((1, 4))
    for name, action in (
        ("embed", lambda: space.embed(pred)),
        ("gram", space.gram),
        ("decoder", lambda: space.decoder()(theta)),
        ("matrix", space.matrix),
        ("target", lambda: loss.target(loss.truths.sample(2, np.random.default_rng(0)))),
        ("loss matrix", loss.matrix),
    ):
        ensure_raises(
            TooManyLabelsError,
            action,
            loss,
            f"{name} over too many labels raises TooManyLabelsError",
        )
    effective = space.effective_classes()
    ensure(np.isfinite(effective.log), loss, "the logarithm of k_eff stays finite")


@reports_errors
def check_huge_score_space(space: BaseScoreSpace, *, random_state: int = 0) -> None:
    """A score space of small width over more than 2^200 labels: finite, consistent products."""
    check_member(space)
    size = space.n_labels
    ensure(type(size) is int and size > HUGE, space, "n_labels is an exact int above 2^200")
    rng = np.random.default_rng(random_state)
    labels = space.predictions.sample(N_SAMPLES, rng)
    F = _check_products(space, labels, rng)
    _check_decoder(space, F, rng)
    effective = space.effective_classes()
    ensure(np.isfinite(float(effective)) and effective > 0, space, "k_eff is finite")
    ensure_raises(TooManyLabelsError, space.matrix, space, "listing F raises TooManyLabelsError")
    ensure_raises(
        TooManyLabelsError,
        space.predictions.enumerate,
        space,
        "listing the labels raises TooManyLabelsError",
    )
    ensure(
        np.array_equal(space.predictions.unindex(space.predictions.index(labels)), labels),
        space,
        "unindex inverts index",
    )
    kernel = F @ space.gram().solve(F).T
    for wrapped, expected in (
        (Orthonormalised(space), kernel),
        # the constant direction adds 1 to every entry of the kernel
        (Centred(space), kernel - float(space.contains_constant)),
        (Orthonormalised(Centred(space)), kernel - float(space.contains_constant)),
    ):
        rows = _check_products(wrapped, labels, rng)
        if wrapped.gram().condition_number() < WELL_CONDITIONED:
            ensure_close(
                rows @ wrapped.gram().solve(rows).T, expected, wrapped, "the kernel FḠ⁺Fᵀ is kept"
            )
        into = space.coordinates(wrapped)
        theta = rng.standard_normal((2, wrapped.width))
        ensure_close(into(theta) @ F.T, theta @ rows.T, wrapped, "coordinates preserve scores")
        ensure(wrapped.effective_classes() == effective, wrapped, "k_eff is that of the base")


def _check_products(
    space: BaseScoreSpace, labels: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    F = space.embed(labels)
    ensure(F.shape == (len(labels), space.width), space, "embed gives (n, width)")
    gram = space.gram()
    theta = rng.standard_normal((3, space.width))
    image = gram.apply(theta)
    for name, values in (("embed", F), ("gram.apply", image), ("gram.solve", gram.solve(theta))):
        ensure(bool(np.isfinite(values).all()), space, f"{name} gives finite numbers")
    ensure_close(image @ theta.T, (image @ theta.T).T, space, "the Gram is symmetric")
    ensure_close(gram.apply(gram.solve(image)), image, space, "Ḡ Ḡ⁺ Ḡ = Ḡ")
    ensure_close(gram.apply(gram.solve(F)), F, space, "embeddings lie in the range of the Gram")
    values, counts = gram.eigenvalues()
    ensure(sum(counts) == space.rank, space, "eigenvalue multiplicities add up to the rank")
    ensure(bool((values > 0).all()), space, "listed eigenvalues are positive")
    ensure(0 < space.rank <= space.width, space, "the rank is at most the width")
    mean = space.mean_embedding()
    ensure(mean.shape == (space.width,), space, "mean_embedding has one entry per column")
    return F


def _check_decoder(space: BaseScoreSpace, F: np.ndarray, rng: np.random.Generator) -> None:
    theta = rng.standard_normal((3, space.width))
    decoded = space.embed(space.decoder()(theta))
    attained = (decoded * theta).sum(axis=1)
    ensure(
        bool((attained[:, None] >= theta @ F.T - 1e-9).all()),
        space,
        "no sampled label beats the decoded one",
    )
