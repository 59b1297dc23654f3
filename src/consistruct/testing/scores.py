"""Score spaces against dense linear algebra on the rows of F."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
from scipy.optimize import linprog

from consistruct.exceptions import NotInSpanError, TooManyLabelsError
from consistruct.protocols import FloatArray, IntArray
from consistruct.scores import Centred, Chain, Dense, Full, Orthonormalised, Separable
from consistruct.scores.base import BaseScoreSpace
from consistruct.testing.contracts import (
    ensure,
    ensure_close,
    ensure_raises,
    read_only,
    reports_errors,
)
from consistruct.testing.decoders import check_decoder
from consistruct.testing.labels import check_label_set
from consistruct.testing.members import check_member

__all__ = ["check_score_space", "predictable_by_definition"]

SPECTRUM_TOLERANCE = 1e-10  # eigenvalues below this share of the largest count as zero
LP_LABELS = 40  # predictable labels are decided one linear program each up to this many


@reports_errors
def check_score_space(
    space: BaseScoreSpace, *, others: Sequence[BaseScoreSpace] = (), random_state: int = 0
) -> None:
    """Compare embed, rank, gram, decoder, predictable, k_eff and maps with a dense F.

    Parameters
    ----------
    space : score space with few labels
    others : score spaces over the same labels and measure
        Spaces to map from (`coordinates`) and to correlate with (`cross_gram`), besides full
        scores, the orthonormal basis, the centred space and the dense copy of F.
    random_state : int
    """
    check_member(space)
    check_label_set(space.predictions, random_state=random_state)
    size = space.predictions.size
    ensure(size is not None, space, "a score space has finitely many predictions")
    every = space.predictions.enumerate(limit=size or 0)
    weights = space.predictions.weights(limit=size or 0)
    F = _check_embedding(space, every)
    rng = np.random.default_rng(random_state)
    _check_gram(space, F, weights, rng)
    decoder = space.decoder()
    check_decoder(
        decoder,
        F,
        space.predictions,
        # orthonormal coordinates do not belong to labels; centred rows are shifted; sorting puts
        # items last instead
        forbidding=getattr(decoder, "forbids", True)
        and not isinstance(space, Orthonormalised | Centred),
        random_state=random_state,
    )
    winners = _check_predictable(space, F, rng)
    _check_effective_classes(space, F, weights, winners)
    standard = [Full(space.predictions), Orthonormalised(space), Centred(space)]
    if F.shape[1]:
        standard.append(Dense(F, over=space.predictions))
    for other in (*standard, *others):
        _check_maps(space, other, weights, rng)
    _check_claims(space, F)


def _check_claims(space: BaseScoreSpace, F: FloatArray) -> None:
    """Formulas are chosen by what a space says of its structure: it must be so."""
    if space.one_per_label:
        ensure_close(F, np.eye(len(F)), space, "one_per_label: F is the identity")
    if space.partition is not None:
        blocks = np.eye(space.width)[space.partition.block_of(np.arange(len(F)))]
        ensure_close(F, blocks, space, "partition: one score per block")
    parts = space.predictions.shape
    if space.separate_states is not None:
        one_hot = Separable(parts[0], space.separate_states).matrix(limit=len(F))
        ensure_close(F, one_hot, space, "separate_states: one score per part and state")
    if space.linked_states is not None:
        one_hot = Chain(parts[0], space.linked_states).matrix(limit=len(F))
        ensure_close(F, one_hot, space, "linked_states: parts, then neighbouring pairs")


def _check_embedding(space: BaseScoreSpace, every: np.ndarray) -> FloatArray:
    F = space.embed(every)
    ensure(
        F.shape == (len(every), space.width) and F.dtype == np.float64,
        space,
        "embed gives a float64 array of shape (n, width)",
        f"got {F.dtype} {F.shape}",
    )
    ensure(bool(np.isfinite(F).all()), space, "embeddings are finite")
    ensure_close(space.matrix(limit=len(every)), F, space, "matrix lists the embeddings in order")
    ensure(space.n_labels == len(every), space, "n_labels is the number of predictions")
    for n in (0, 1):
        ensure_close(space.embed(every[:n]), F[:n], space, f"a batch of {n} labels is embedded")
    shuffled = np.random.default_rng(0).permutation(len(every))
    frozen = read_only(every[shuffled], np.int32)
    ensure_close(space.embed(frozen), F[shuffled], space, "embed works label by label")
    rank = np.linalg.matrix_rank(F) if F.size else 0
    ensure(space.rank == rank, space, "rank is the rank of F", f"rank {space.rank}, F has {rank}")
    return F


def _check_gram(
    space: BaseScoreSpace, F: FloatArray, weights: FloatArray, rng: np.random.Generator
) -> None:
    gram, width = space.gram(), space.width
    dense = (F * weights[:, None]).T @ F
    ensure(gram.width == width, space, "the Gram operator has the width of the space")
    ensure_close(gram.dense(limit=width), dense, space, "gram.dense is E_c[F_c F_cᵀ]")
    theta = rng.standard_normal((4, width))
    ensure_close(gram.apply(theta), theta @ dense, space, "gram.apply multiplies by E_c[F_c F_cᵀ]")
    inverse = np.linalg.pinv(dense, rcond=SPECTRUM_TOLERANCE, hermitian=True)
    ensure_close(gram.solve(theta), theta @ inverse, space, "gram.solve is the pseudo-inverse")
    values = np.linalg.eigvalsh(dense)[::-1] if width else np.zeros(0)
    values = values[values > SPECTRUM_TOLERANCE * values.max(initial=0.0)]
    found, counts = gram.eigenvalues()
    ensure(sum(counts) == space.rank, space, "eigenvalue multiplicities add up to the rank")
    ensure(bool((np.diff(found) < 0).all()), space, "eigenvalues are distinct and descending")
    ensure_close(np.repeat(found, counts), values, space, "eigenvalues are those of E_c[F_c F_cᵀ]")
    condition = values[0] / values[-1] if len(values) else 1.0
    ensure_close(
        gram.condition_number(), condition, space, "condition_number is λ_max over non-zero λ_min"
    )
    if width > 0:
        ensure_raises(
            TooManyLabelsError,
            lambda: gram.dense(limit=width - 1),
            space,
            "gram.dense raises above its limit",
        )
    for action in (gram.apply, gram.solve):
        ensure(action(theta[:0]).shape == (0, width), space, "the Gram takes a batch of 0")
        ensure_close(action(theta[:1]), action(theta)[:1], space, "the Gram takes a batch of 1")
        single = read_only(theta, np.float32)
        kept = single.copy()
        ensure_close(
            action(single),
            action(single.astype(np.float64)),
            space,
            "the Gram takes float32, computes in float64",
        )
        ensure(np.array_equal(single, kept), space, "the Gram leaves its input alone")
        ensure_raises(
            ValueError,
            partial(action, np.ones((2, width + 1))),
            space,
            "the Gram refuses a wrong width",
        )
    ensure_close(space.mean_embedding(), weights @ F, space, "mean_embedding is E_c F_c")
    ones = np.ones(len(F))
    inside = bool(np.abs(F @ np.linalg.pinv(F) @ ones - ones).max() < 1e-9) if width else False
    ensure(space.contains_constant == inside, space, "contains_constant tells if 1 is in span F")


def predictable_by_definition(F: FloatArray, labels: Sequence[int]) -> list[int]:
    """Labels c for which some θ has ⟨F_c−F_d, θ⟩ ≥ 1 for d < c and ≥ 0 for d > c.

    By scaling θ, ≥ 1 says > 0: one feasibility program per label, with no bound on θ.
    """
    winners = []
    for c in labels:
        others = np.delete(np.arange(len(F)), c)
        if len(others) == 0 or F.shape[1] == 0:
            feasible = c == 0
        else:
            bound = -(others < c).astype(np.float64)
            result = linprog(
                np.zeros(F.shape[1]), A_ub=F[others] - F[c], b_ub=bound, bounds=(None, None)
            )
            feasible = result.status == 0
        if feasible:
            winners.append(c)
    return winners


def _check_predictable(space: BaseScoreSpace, F: FloatArray, rng: np.random.Generator) -> IntArray:
    predictable = space.predictable()
    listed = predictable.indices
    winners = np.arange(len(F)) if listed is None else listed.astype(np.int64)
    ensure(
        predictable.size == len(winners) == len(set(winners.tolist()))
        and bool((np.diff(winners) > 0).all()),
        space,
        "predictable lists `size` labels in order, None meaning all",
    )
    asked = np.arange(len(F)) if len(F) <= LP_LABELS else rng.choice(len(F), LP_LABELS, False)
    expected = predictable_by_definition(F, sorted(asked.tolist()))
    found = sorted(set(asked.tolist()) & set(winners.tolist()))
    ensure(found == expected, space, "predictable is pred(F)", f"{found} instead of {expected}")
    return winners


def _check_effective_classes(
    space: BaseScoreSpace, F: FloatArray, weights: FloatArray, winners: IntArray
) -> None:
    effective = space.effective_classes()
    inverse = np.linalg.pinv((F * weights[:, None]).T @ F, rcond=SPECTRUM_TOLERANCE, hermitian=True)
    diameter = 0.0
    for i in winners:
        difference = F[winners] - F[i]
        diameter = max(diameter, float(((difference @ inverse) * difference).sum(axis=1).max()))
    contract = "effective_classes is half the largest (F_i−F_j)ᵀḠ⁺(F_i−F_j) over pred(F)"
    if effective.exact:
        ensure_close(float(effective), diameter / 2, space, contract)
    else:
        ensure(float(effective) >= diameter / 2 * (1 - 1e-9), space, f"{contract}, or above it")
    log = math.log(effective) if effective > 0 else -math.inf
    ensure(
        effective.log == log or abs(effective.log - log) < 1e-9,
        space,
        "effective_classes.log is its log",
    )
    ensure(effective.measure == space.measure, space, "effective_classes names the measure")


def _check_maps(
    space: BaseScoreSpace, other: BaseScoreSpace, weights: FloatArray, rng: np.random.Generator
) -> None:
    limit = len(weights)
    here, there = space.matrix(limit=limit), other.matrix(limit=limit)
    theta = rng.standard_normal((3, other.width))
    back = rng.standard_normal((2, space.width))
    cross = space.cross_gram(other)
    dense = (here * weights[:, None]).T @ there
    pair = f"with {other!r}"
    ensure_close(cross(theta), theta @ dense.T, space, f"cross_gram {pair} is E_c[F_c F'_cᵀ]")
    ensure_close(
        cross.transpose(back), back @ dense, space, f"cross_gram {pair} has the right transpose"
    )
    projection = here @ np.linalg.pinv(here) if here.size else np.zeros((limit, limit))
    if np.abs(projection @ there - there).max(initial=0.0) > 1e-8:
        ensure_raises(
            NotInSpanError,
            lambda: space.coordinates(other),
            space,
            f"coordinates {pair} raises NotInSpanError",
        )
        return
    into = space.coordinates(other)
    moved = into(theta)
    ensure_close(moved @ here.T, theta @ there.T, space, f"coordinates {pair} preserve all scores")
    ensure_close(
        moved @ back.T,
        theta @ into.transpose(back).T,
        space,
        f"coordinates {pair} have the right transpose",
    )
