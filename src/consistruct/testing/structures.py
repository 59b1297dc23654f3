"""Check structures against dense linear algebra on the rows of F, and huge ones by samples.

Closed forms are what makes 2^1000 labels possible, and each of them can be wrong by a factor or at
one awkward size. Here they meet F listed row by row, its pseudo-inverse and linear programs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
from scipy.optimize import linprog
from scipy.special import logsumexp, softmax

from consistruct.exceptions import NotInSpanError, TooManyLabelsError
from consistruct.protocols import FloatArray, IntArray
from consistruct.structures import (
    Centered,
    Chain,
    Dense,
    Full,
    Orthonormalized,
    Separable,
    Structure,
)
from consistruct.structures.base import SMALLEST_INDEX
from consistruct.testing.contracts import Contracts, read_only, reports_errors
from consistruct.testing.labels import check_label_set
from consistruct.testing.members import check_member

__all__ = ["check_huge_structure", "check_structure", "predictable_by_definition"]

SPECTRUM_TOLERANCE = 1e-10  # eigenvalues below this share of the largest count as zero
HUGE = 2**200
N_SAMPLES = 6
WELL_CONDITIONED = 1e8  # beyond it float64 leaves nothing of a centered kernel to compare
N_THETAS = 40  # score vectors of each check of `decode`
N_DRAWS = 2000  # labels that `sample` draws
LP_LABELS = 40  # predictable labels are decided one linear program each up to this many


@reports_errors
def check_structure(
    space: Structure, *, others: Sequence[Structure] = (), random_state: int = 0
) -> None:
    """Compare embed, rank, gram, decode, predictable, k_eff and maps with a dense F.

    Parameters
    ----------
    space : Structure
        With few labels, a few hundred at most.
    others : structures over the same labels and measure
        Spaces to map from (`coordinates`) and to correlate with (`cross_gram`), besides full
        scores, the orthonormal basis, the centered space and the dense copy of F.
    random_state : int
        Seed of the random scores and samples.

    Examples
    --------
    >>> from consistruct.structures import Chain
    >>> from consistruct.testing import check_structure
    >>> check_structure(Chain(2, 3))
    """
    contracts = Contracts(space)
    check_member(space)
    check_label_set(space.predictions, random_state=random_state)
    size = space.predictions.size
    contracts.ensure(size is not None, "a score space has finitely many predictions")
    labels = space.predictions.enumerate(limit=size or 0)
    weights = space.predictions.weights(limit=size or 0)
    F = _check_embedding(space, labels)
    rng = np.random.default_rng(random_state)
    _check_gram(space, F, weights, rng)
    _check_decode(space, F, rng)
    _check_distribution(space, F, rng)
    winners = _check_predictable(space, F, rng)
    _check_effective_classes(space, F, weights, winners)
    # full scores contain every other F; the other three express this one in other coordinates
    standard = [Full(space.predictions), Orthonormalized(space), Centered(space)]
    if F.shape[1]:
        standard.append(Dense(F, over=space.predictions))
    for other in (*standard, *others):
        _check_maps(space, other, weights, rng)
    _check_claims(space, F)


def _check_claims(space: Structure, F: FloatArray) -> None:
    """Check what a structure states of the shape of F: formulas are chosen by it."""
    contracts = Contracts(space)
    if space.one_per_label:
        contracts.close(F, np.eye(len(F)), "one_per_label: F is the identity")
    if space.partition is not None:
        blocks = np.eye(space.width)[space.partition.block_of(np.arange(len(F)))]
        contracts.close(F, blocks, "partition: one score per block")
    parts = space.predictions.shape
    if space.separate_states is not None:
        one_hot = Separable(parts[0], space.separate_states).matrix(limit=len(F))
        contracts.close(F, one_hot, "separate_states: one score per part and state")
    if space.linked_states is not None:
        one_hot = Chain(parts[0], space.linked_states).matrix(limit=len(F))
        contracts.close(F, one_hot, "linked_states: parts, then neighboring pairs")


def _check_embedding(space: Structure, labels: np.ndarray) -> FloatArray:
    """List F, and check shape, rank, and that every label is embedded on its own."""
    contracts = Contracts(space)
    F = space.embed(labels)
    contracts.ensure(
        F.shape == (len(labels), space.width) and F.dtype == np.float64,
        "embed gives a float64 array of shape (n, width)",
        f"got {F.dtype} {F.shape}",
    )
    contracts.ensure(np.isfinite(F).all(), "embeddings are finite")
    contracts.close(space.matrix(limit=len(labels)), F, "matrix lists the embeddings in order")
    contracts.ensure(space.n_labels == len(labels), "n_labels is the number of predictions")
    for n in (0, 1):
        contracts.close(space.embed(labels[:n]), F[:n], f"a batch of {n} labels is embedded")
    # in another order, narrow and read-only: embedding must not depend on the batch
    shuffled = np.random.default_rng(0).permutation(len(labels))
    frozen = read_only(labels[shuffled], np.int32)
    contracts.close(space.embed(frozen), F[shuffled], "embed works label by label")
    rank = np.linalg.matrix_rank(F) if F.size else 0
    contracts.ensure(
        space.rank == rank, "rank is the rank of F", f"rank {space.rank}, F has {rank}"
    )
    return F


def _check_decode(space: Structure, F: FloatArray, rng: np.random.Generator) -> None:
    """Check that decoding attains max_c ⟨F_c, θ⟩, and how it treats ties, −inf and bad input."""
    theta = rng.standard_normal((N_THETAS, F.shape[1]))
    _check_decoded(space, F, theta)
    _check_ties(space, F, rng)
    _check_scores(space, F, theta)
    if space.forbids:
        _check_forbidden(space, F, rng)


def _check_distribution(space: Structure, F: FloatArray, rng: np.random.Generator) -> None:
    """Check log_partition, marginals and samples of p(ŷ) ∝ exp ⟨F_ŷ, θ⟩ against all labels."""
    contracts = Contracts(space)
    theta = rng.standard_normal((3, F.shape[1]))
    scores = theta @ F.T
    contracts.close(
        space.log_partition(theta), logsumexp(scores, axis=1), "log_partition is log Σ exp"
    )
    p = softmax(scores, axis=1)
    contracts.close(space.marginals(theta), p @ F, "marginals are E_p[F_ŷ]")
    drawn = space.predictions.index(space.sample(np.repeat(theta[:1], N_DRAWS, axis=0), rng))
    seen = np.bincount(drawn.astype(np.int64), minlength=len(F)) / N_DRAWS
    # six standard deviations of a share; the seed is fixed
    allowed = 6 * np.sqrt(p[0] / N_DRAWS) + 6 / N_DRAWS
    contracts.ensure((np.abs(seen - p[0]) <= allowed).all(), "sample draws from p")


def _decoded(space: Structure, theta: FloatArray) -> IntArray:
    """Return the indices of decoded labels, (n,); shapes are checked on the way."""
    contracts = Contracts(space)
    predictions = space.predictions
    decoded = np.asarray(space.decode(theta))
    contracts.shape(decoded, (len(theta), *predictions.shape), "decoding gives (n, *label shape)")
    return predictions.index(decoded).astype(np.int64)


def _check_decoded(space: Structure, rows: FloatArray, theta: FloatArray) -> None:
    """Check that decoded labels have the largest score, where the structure states that."""
    contracts = Contracts(space)
    if not space.decoding_is_exact:
        return
    scores = theta @ rows.T
    attained = scores[np.arange(len(theta)), _decoded(space, theta)]
    contracts.close(attained, scores.max(axis=1), "the decoded label has the largest score")


def _check_ties(space: Structure, rows: FloatArray, rng: np.random.Generator) -> None:
    """Check that decoding is deterministic, and that ties go where `tie_rule` says."""
    contracts = Contracts(space)
    contracts.ensure(isinstance(space.tie_rule, str) and bool(space.tie_rule), "tie_rule is stated")
    # small integers: sums are exact in float64 where F holds integers too, and ties are many
    theta = rng.integers(-1, 2, size=(N_THETAS, rows.shape[1])).astype(np.float64)
    theta[0] = 0.0
    if not np.array_equal(rows, np.round(rows)):
        theta = theta[:1]  # zeros: rounded sums decide the other ties, and no rule is broken
    decoded = _decoded(space, theta)
    again = _decoded(space, theta)
    contracts.ensure(np.array_equal(decoded, again), "decoding is deterministic")
    scores = theta @ rows.T
    if space.decoding_is_exact:
        contracts.close(
            scores[np.arange(len(theta)), decoded],
            scores.max(axis=1),
            "the decoded label has the largest score among ties",
        )
    if space.decoding_is_exact and space.tie_rule == SMALLEST_INDEX:
        contracts.ensure(
            np.array_equal(decoded, scores.argmax(axis=1)), "ties go to the smallest index"
        )


def _check_scores(space: Structure, rows: FloatArray, theta: FloatArray) -> None:
    """Check float32 and read-only scores, batches of 0 and 1, and scores that are refused."""
    contracts = Contracts(space)
    width = rows.shape[1]
    for n in (0, 1):
        _decoded(space, theta[:n])
    single = read_only(theta, np.float32)
    kept = single.copy()
    expected = _decoded(space, single.astype(np.float64))
    contracts.ensure(
        np.array_equal(_decoded(space, single), expected),
        "float32 scores decode like the same numbers in float64",
    )
    contracts.ensure(np.array_equal(single, kept), "decoding leaves its input alone")
    # +∞ is no score: two of them tie at every other score. Only −∞ has a meaning, "forbidden"
    for bad in (np.nan, np.inf):
        if width == 0:
            break
        wrong = theta[:2].copy()
        wrong[1, width - 1] = bad
        contracts.raises(
            ValueError, partial(space.decode, wrong), f"a score of {bad} raises ValueError"
        )
    for wrong in (np.zeros((2, width + 1)), np.zeros(width), np.zeros((1, 1, width))):
        contracts.raises(
            ValueError, partial(space.decode, wrong), "theta of wrong shape raises ValueError"
        )
    contracts.raises(
        TypeError,
        lambda: space.decode(np.full((1, width), "a")),
        "theta that is not numeric raises TypeError",
    )


def _check_forbidden(space: Structure, rows: FloatArray, rng: np.random.Generator) -> None:
    """Check that −inf in a column forbids every label with an entry in it."""
    contracts = Contracts(space)
    # −inf times a negative entry would be +∞: only columns without any can forbid labels
    usable = np.flatnonzero((rows >= 0).all(axis=0))
    if len(usable) == 0:
        return
    all_forbidden = np.zeros((1, rows.shape[1]))
    all_forbidden[0, usable] = -np.inf
    if (rows[:, usable] > 0).any(axis=1).all():
        contracts.raises(
            ValueError, lambda: space.decode(all_forbidden), "no label left raises ValueError"
        )
    # some columns forbidden, others not: the best of what is left, or an error if nothing is
    for _ in range(N_THETAS):
        theta = rng.standard_normal((rows.shape[1],))
        theta[rng.choice(usable, size=1 + rng.integers(len(usable)), replace=False)] = -np.inf
        forbidden = np.isneginf(theta)
        scores = (np.where(forbidden, 0.0, theta)[None] @ rows.T)[0]
        scores[(rows[:, forbidden] > 0).any(axis=1)] = -np.inf
        if np.isneginf(scores).all():
            contracts.raises(
                ValueError, partial(space.decode, theta[None]), "no label left raises ValueError"
            )
            continue
        decoded = int(_decoded(space, theta[None])[0])
        contracts.ensure(np.isfinite(scores[decoded]), "−inf forbids a label")
        if space.decoding_is_exact:
            contracts.close(scores[decoded], scores.max(), "the best label left is decoded")


def _check_gram(
    space: Structure, F: FloatArray, weights: FloatArray, rng: np.random.Generator
) -> None:
    """Check apply, solve, spectrum and limits of Ḡ = E_c[F_c F_cᵀ] against the dense matrix."""
    contracts = Contracts(space)
    gram, width = space.gram(), space.width
    dense = (F * weights[:, None]).T @ F
    contracts.ensure(gram.width == width, "the Gram operator has the width of the space")
    contracts.close(gram.dense(limit=width), dense, "gram.dense is E_c[F_c F_cᵀ]")
    theta = rng.standard_normal((4, width))
    contracts.close(gram.apply(theta), theta @ dense, "gram.apply multiplies by E_c[F_c F_cᵀ]")
    # solve is the pseudo-inverse: scores have directions that no label sees, which must stay 0
    inverse = np.linalg.pinv(dense, rcond=SPECTRUM_TOLERANCE, hermitian=True)
    contracts.close(gram.solve(theta), theta @ inverse, "gram.solve is the pseudo-inverse")
    values = np.linalg.eigvalsh(dense)[::-1] if width else np.zeros(0)
    values = values[values > SPECTRUM_TOLERANCE * values.max(initial=0.0)]
    # the spectrum gives the condition number and the rank, which formulas of H divide by
    spectrum, counts = gram.eigenvalues()
    contracts.ensure(sum(counts) == space.rank, "eigenvalue multiplicities add up to the rank")
    contracts.ensure((np.diff(spectrum) < 0).all(), "eigenvalues are distinct and descending")
    contracts.close(np.repeat(spectrum, counts), values, "eigenvalues are those of E_c[F_c F_cᵀ]")
    condition = values[0] / values[-1] if len(values) else 1.0
    contracts.close(
        gram.condition_number(), condition, "condition_number is λ_max over non-zero λ_min"
    )
    if width > 0:
        contracts.raises(
            TooManyLabelsError,
            lambda: gram.dense(limit=width - 1),
            "gram.dense raises above its limit",
        )
    for action in (gram.apply, gram.solve):
        contracts.ensure(action(theta[:0]).shape == (0, width), "the Gram takes a batch of 0")
        contracts.close(action(theta[:1]), action(theta)[:1], "the Gram takes a batch of 1")
        single = read_only(theta, np.float32)
        kept = single.copy()
        contracts.close(
            action(single),
            action(single.astype(np.float64)),
            "the Gram takes float32, computes in float64",
        )
        contracts.ensure(np.array_equal(single, kept), "the Gram leaves its input alone")
        contracts.raises(
            ValueError, partial(action, np.ones((2, width + 1))), "the Gram refuses a wrong width"
        )
    contracts.close(space.mean_embedding(), weights @ F, "mean_embedding is E_c F_c")
    # 1 ∈ span F if the projection onto the columns leaves it in place
    ones = np.ones(len(F))
    inside = bool(np.abs(F @ np.linalg.pinv(F) @ ones - ones).max() < 1e-9) if width else False
    contracts.ensure(space.contains_constant == inside, "contains_constant tells if 1 is in span F")


def predictable_by_definition(F: FloatArray, labels: Sequence[int]) -> list[int]:
    """Return labels c for which some θ has ⟨F_c−F_d, θ⟩ ≥ 1 for d < c and ≥ 0 for d > c.

    By scaling θ, ≥ 1 implies > 0: one feasibility program per label, with no bound on θ.
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


def _check_predictable(space: Structure, F: FloatArray, rng: np.random.Generator) -> IntArray:
    """Check who can win against one linear program per label; return all winners, (n,)."""
    contracts = Contracts(space)
    predictable = space.predictable()
    listed = predictable.indices
    winners = np.arange(len(F)) if listed is None else listed.astype(np.int64)
    contracts.ensure(
        predictable.size == len(winners) == len(set(winners.tolist()))
        and bool((np.diff(winners) > 0).all()),
        "predictable lists `size` labels in order, None meaning all",
    )
    requested = np.arange(len(F)) if len(F) <= LP_LABELS else rng.choice(len(F), LP_LABELS, False)
    expected = predictable_by_definition(F, sorted(requested.tolist()))
    stated = sorted(set(requested.tolist()) & set(winners.tolist()))
    contracts.ensure(stated == expected, "predictable is pred(F)", f"{stated}, not {expected}")
    return winners


def _check_effective_classes(
    space: Structure, F: FloatArray, weights: FloatArray, winners: IntArray
) -> None:
    """Check k_eff = ½ max (F_i − F_j)ᵀ Ḡ⁺ (F_i − F_j) over all pairs of winners.

    Above it only where the structure states that its closed form is a bound.
    """
    contracts = Contracts(space)
    effective = space.effective_classes()
    inverse = np.linalg.pinv((F * weights[:, None]).T @ F, rcond=SPECTRUM_TOLERANCE, hermitian=True)
    diameter = 0.0
    for i in winners:
        difference = F[winners] - F[i]
        diameter = max(diameter, float(((difference @ inverse) * difference).sum(axis=1).max()))
    contract = "effective_classes is half the largest (F_i−F_j)ᵀḠ⁺(F_i−F_j) over pred(F)"
    if effective.exact:
        contracts.close(float(effective), diameter / 2, contract)
    else:
        contracts.ensure(float(effective) >= diameter / 2 * (1 - 1e-9), f"{contract}, or above it")
    log = math.log(effective) if effective > 0 else -math.inf
    contracts.ensure(
        effective.log == log or abs(effective.log - log) < 1e-9, "effective_classes.log is its log"
    )
    contracts.ensure(effective.measure == space.measure, "effective_classes names the measure")


def _check_maps(
    space: Structure, other: Structure, weights: FloatArray, rng: np.random.Generator
) -> None:
    """Check E_c[F_c F'_cᵀ] with another structure on the same labels, and its coordinates here."""
    contracts = Contracts(space)
    limit = len(weights)
    here, there = space.matrix(limit=limit), other.matrix(limit=limit)
    theta = rng.standard_normal((3, other.width))
    back = rng.standard_normal((2, space.width))
    cross = space.cross_gram(other)
    dense = (here * weights[:, None]).T @ there
    pair = f"with {other!r}"
    contracts.close(cross(theta), theta @ dense.T, f"cross_gram {pair} is E_c[F_c F'_cᵀ]")
    contracts.close(
        cross.transpose(back), back @ dense, f"cross_gram {pair} has the right transpose"
    )
    # `coordinates` exists exactly where the columns of the other F lie in the span of this one
    projection = here @ np.linalg.pinv(here) if here.size else np.zeros((limit, limit))
    if np.abs(projection @ there - there).max(initial=0.0) > 1e-8:
        contracts.raises(
            NotInSpanError,
            lambda: space.coordinates(other),
            f"coordinates {pair} raises NotInSpanError",
        )
        return
    into = space.coordinates(other)
    moved = into(theta)
    contracts.close(moved @ here.T, theta @ there.T, f"coordinates {pair} preserve all scores")
    contracts.close(
        moved @ back.T,
        theta @ into.transpose(back).T,
        f"coordinates {pair} have the right transpose",
    )


@reports_errors
def check_huge_structure(space: Structure, *, random_state: int = 0) -> None:
    """Check a structure of small width over more than 2^200 labels: products and identities.

    Nothing can be listed, so that closed forms are held against each other: Ḡ Ḡ⁺ Ḡ = Ḡ, sampled
    rows in the range of Ḡ, and the kernel F Ḡ⁺ Fᵀ, which no change of basis may move.

    Parameters
    ----------
    space : Structure
    random_state : int
        Seed of the sampled labels and scores.

    Examples
    --------
    >>> from consistruct.structures import Separable
    >>> from consistruct.testing import check_huge_structure
    >>> check_huge_structure(Separable(300))
    """
    contracts = Contracts(space)
    check_member(space)
    size = space.n_labels
    contracts.ensure(type(size) is int and size > HUGE, "n_labels is an exact int above 2^200")
    rng = np.random.default_rng(random_state)
    labels = space.predictions.sample(N_SAMPLES, rng)
    F = _check_products(space, labels, rng)
    _check_huge_decode(space, F, rng)
    effective = space.effective_classes()
    contracts.ensure(np.isfinite(float(effective)) and effective > 0, "k_eff is finite")
    contracts.raises(TooManyLabelsError, space.matrix, "listing F raises TooManyLabelsError")
    contracts.raises(
        TooManyLabelsError,
        space.predictions.enumerate,
        "listing the labels raises TooManyLabelsError",
    )
    contracts.ensure(
        np.array_equal(space.predictions.unindex(space.predictions.index(labels)), labels),
        "unindex inverts index",
    )
    kernel = F @ space.gram().solve(F).T
    # k_eff and H depend on scores through this kernel alone: each basis must leave it as it is
    for wrapped, expected in (
        (Orthonormalized(space), kernel),
        # the constant direction adds 1 to every entry of the kernel
        (Centered(space), kernel - float(space.contains_constant)),
        (Orthonormalized(Centered(space)), kernel - float(space.contains_constant)),
    ):
        rows = _check_products(wrapped, labels, rng)
        if wrapped.gram().condition_number() < WELL_CONDITIONED:
            Contracts(wrapped).close(
                rows @ wrapped.gram().solve(rows).T, expected, "the kernel FḠ⁺Fᵀ is kept"
            )
        into = space.coordinates(wrapped)
        theta = rng.standard_normal((2, wrapped.width))
        Contracts(wrapped).close(into(theta) @ F.T, theta @ rows.T, "coordinates preserve scores")
        Contracts(wrapped).ensure(
            wrapped.effective_classes() == effective, "k_eff is that of the base"
        )


def _check_products(space: Structure, labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Check finite products with Ḡ on sampled labels; return their rows of F."""
    contracts = Contracts(space)
    F = space.embed(labels)
    contracts.ensure(F.shape == (len(labels), space.width), "embed gives (n, width)")
    gram = space.gram()
    theta = rng.standard_normal((3, space.width))
    image = gram.apply(theta)
    for name, values in (("embed", F), ("gram.apply", image), ("gram.solve", gram.solve(theta))):
        contracts.ensure(np.isfinite(values).all(), f"{name} gives finite numbers")
    contracts.close(image @ theta.T, (image @ theta.T).T, "the Gram is symmetric")
    contracts.close(gram.apply(gram.solve(image)), image, "Ḡ Ḡ⁺ Ḡ = Ḡ")
    contracts.close(gram.apply(gram.solve(F)), F, "embeddings lie in the range of the Gram")
    values, counts = gram.eigenvalues()
    contracts.ensure(sum(counts) == space.rank, "eigenvalue multiplicities add up to the rank")
    contracts.ensure((values > 0).all(), "listed eigenvalues are positive")
    contracts.ensure(0 < space.rank <= space.width, "the rank is at most the width")
    mean = space.mean_embedding()
    contracts.ensure(mean.shape == (space.width,), "mean_embedding has one entry per column")
    return F


def _check_huge_decode(space: Structure, F: np.ndarray, rng: np.random.Generator) -> None:
    """Check that the decoded label scores at least as much as every sampled one."""
    contracts = Contracts(space)
    theta = rng.standard_normal((3, space.width))
    decoded = space.embed(space.decode(theta))
    attained = (decoded * theta).sum(axis=1)
    contracts.ensure(
        (attained[:, None] >= theta @ F.T - 1e-9).all(),
        "no sampled label beats the decoded one",
    )
