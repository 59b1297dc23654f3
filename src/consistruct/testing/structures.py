"""Check structures against dense linear algebra on the rows of F, and huge ones by samples."""

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
from consistruct.testing.contracts import (
    ensure,
    ensure_close,
    ensure_raises,
    ensure_same_shape,
    read_only,
    reports_errors,
)
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
    _check_decode(space, F, rng)
    _check_distribution(space, F, rng)
    winners = _check_predictable(space, F, rng)
    _check_effective_classes(space, F, weights, winners)
    standard = [Full(space.predictions), Orthonormalized(space), Centered(space)]
    if F.shape[1]:
        standard.append(Dense(F, over=space.predictions))
    for other in (*standard, *others):
        _check_maps(space, other, weights, rng)
    _check_claims(space, F)


def _check_claims(space: Structure, F: FloatArray) -> None:
    """Formulas are chosen by what a space states of its structure: it must be so."""
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
        ensure_close(F, one_hot, space, "linked_states: parts, then neighboring pairs")


def _check_embedding(space: Structure, every: np.ndarray) -> FloatArray:
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


def _check_decode(space: Structure, F: FloatArray, rng: np.random.Generator) -> None:
    """The decoded label attains max_c ⟨F_c, θ⟩, and ties, −inf and bad input follow the rules."""
    theta = rng.standard_normal((N_THETAS, F.shape[1]))
    _check_decoded(space, F, theta)
    _check_ties(space, F, rng)
    _check_scores(space, F, theta)
    if space.forbids:
        _check_forbidden(space, F, rng)


def _check_distribution(space: Structure, F: FloatArray, rng: np.random.Generator) -> None:
    """log_partition, marginals and sample belong to p(ŷ) ∝ exp ⟨F_ŷ, θ⟩."""
    theta = rng.standard_normal((3, F.shape[1]))
    scores = theta @ F.T
    ensure_close(
        space.log_partition(theta), logsumexp(scores, axis=1), space, "log_partition is log Σ exp"
    )
    p = softmax(scores, axis=1)
    ensure_close(space.marginals(theta), p @ F, space, "marginals are E_p[F_ŷ]")
    drawn = space.predictions.index(space.sample(np.repeat(theta[:1], N_DRAWS, axis=0), rng))
    seen = np.bincount(drawn.astype(np.int64), minlength=len(F)) / N_DRAWS
    # six standard deviations of a share; the seed is fixed
    allowed = 6 * np.sqrt(p[0] / N_DRAWS) + 6 / N_DRAWS
    ensure(bool((np.abs(seen - p[0]) <= allowed).all()), space, "sample draws from p")


def _decoded(space: Structure, theta: FloatArray) -> IntArray:
    predictions = space.predictions
    found = np.asarray(space.decode(theta))
    ensure_same_shape(
        found, (len(theta), *predictions.shape), space, "decoding gives (n, *label shape)"
    )
    return predictions.index(found).astype(np.int64)


def _check_decoded(space: Structure, rows: FloatArray, theta: FloatArray) -> None:
    if not space.decoding_is_exact:
        return
    scores = theta @ rows.T
    attained = scores[np.arange(len(theta)), _decoded(space, theta)]
    ensure_close(attained, scores.max(axis=1), space, "the decoded label has the largest score")


def _check_ties(space: Structure, rows: FloatArray, rng: np.random.Generator) -> None:
    ensure(isinstance(space.tie_rule, str) and bool(space.tie_rule), space, "tie_rule is stated")
    # small integers: sums are exact in float64 where F holds integers too, and ties are many
    theta = rng.integers(-1, 2, size=(N_THETAS, rows.shape[1])).astype(np.float64)
    theta[0] = 0.0
    if not np.array_equal(rows, np.round(rows)):
        theta = theta[:1]
    found = _decoded(space, theta)
    again = _decoded(space, theta)
    ensure(np.array_equal(found, again), space, "decoding is deterministic")
    scores = theta @ rows.T
    if space.decoding_is_exact:
        ensure_close(
            scores[np.arange(len(theta)), found],
            scores.max(axis=1),
            space,
            "the decoded label has the largest score among ties",
        )
    if space.decoding_is_exact and space.tie_rule == SMALLEST_INDEX:
        ensure(np.array_equal(found, scores.argmax(axis=1)), space, "ties go to the smallest index")


def _check_scores(space: Structure, rows: FloatArray, theta: FloatArray) -> None:
    width = rows.shape[1]
    for n in (0, 1):
        _decoded(space, theta[:n])
    single = read_only(theta, np.float32)
    kept = single.copy()
    expected = _decoded(space, single.astype(np.float64))
    ensure(
        np.array_equal(_decoded(space, single), expected),
        space,
        "float32 scores decode like the same numbers in float64",
    )
    ensure(np.array_equal(single, kept), space, "decoding leaves its input alone")
    for bad in (np.nan, np.inf):
        if width == 0:
            break
        wrong = theta[:2].copy()
        wrong[1, width - 1] = bad
        ensure_raises(
            ValueError,
            partial(space.decode, wrong),
            space,
            f"a score of {bad} raises ValueError",
        )
    for wrong in (np.zeros((2, width + 1)), np.zeros(width), np.zeros((1, 1, width))):
        ensure_raises(
            ValueError,
            partial(space.decode, wrong),
            space,
            "theta of wrong shape raises ValueError",
        )
    ensure_raises(
        TypeError,
        lambda: space.decode(np.full((1, width), "a")),
        space,
        "theta that is not numeric raises TypeError",
    )


def _check_forbidden(space: Structure, rows: FloatArray, rng: np.random.Generator) -> None:
    usable = np.flatnonzero((rows >= 0).all(axis=0))
    if len(usable) == 0:
        return
    all_forbidden = np.zeros((1, rows.shape[1]))
    all_forbidden[0, usable] = -np.inf
    if (rows[:, usable] > 0).any(axis=1).all():
        ensure_raises(
            ValueError,
            lambda: space.decode(all_forbidden),
            space,
            "no label left raises ValueError",
        )
    for _ in range(N_THETAS):
        theta = rng.standard_normal((rows.shape[1],))
        theta[rng.choice(usable, size=1 + rng.integers(len(usable)), replace=False)] = -np.inf
        forbidden = np.isneginf(theta)
        scores = (np.where(forbidden, 0.0, theta)[None] @ rows.T)[0]
        scores[(rows[:, forbidden] > 0).any(axis=1)] = -np.inf
        if np.isneginf(scores).all():
            ensure_raises(
                ValueError,
                partial(space.decode, theta[None]),
                space,
                "no label left raises ValueError",
            )
            continue
        found = int(_decoded(space, theta[None])[0])
        ensure(bool(np.isfinite(scores[found])), space, "−inf forbids a label")
        if space.decoding_is_exact:
            ensure_close(scores[found], scores.max(), space, "the best label left is decoded")


def _check_gram(
    space: Structure, F: FloatArray, weights: FloatArray, rng: np.random.Generator
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
    predictable = space.predictable()
    listed = predictable.indices
    winners = np.arange(len(F)) if listed is None else listed.astype(np.int64)
    ensure(
        predictable.size == len(winners) == len(set(winners.tolist()))
        and bool((np.diff(winners) > 0).all()),
        space,
        "predictable lists `size` labels in order, None meaning all",
    )
    requested = np.arange(len(F)) if len(F) <= LP_LABELS else rng.choice(len(F), LP_LABELS, False)
    expected = predictable_by_definition(F, sorted(requested.tolist()))
    found = sorted(set(requested.tolist()) & set(winners.tolist()))
    ensure(found == expected, space, "predictable is pred(F)", f"{found} instead of {expected}")
    return winners


def _check_effective_classes(
    space: Structure, F: FloatArray, weights: FloatArray, winners: IntArray
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
    space: Structure, other: Structure, weights: FloatArray, rng: np.random.Generator
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


@reports_errors
def check_huge_structure(space: Structure, *, random_state: int = 0) -> None:
    """Check a structure of small width over more than 2^200 labels: products."""
    check_member(space)
    size = space.n_labels
    ensure(type(size) is int and size > HUGE, space, "n_labels is an exact int above 2^200")
    rng = np.random.default_rng(random_state)
    labels = space.predictions.sample(N_SAMPLES, rng)
    F = _check_products(space, labels, rng)
    _check_huge_decode(space, F, rng)
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
        (Orthonormalized(space), kernel),
        # the constant direction adds 1 to every entry of the kernel
        (Centered(space), kernel - float(space.contains_constant)),
        (Orthonormalized(Centered(space)), kernel - float(space.contains_constant)),
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


def _check_products(space: Structure, labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
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


def _check_huge_decode(space: Structure, F: np.ndarray, rng: np.random.Generator) -> None:
    theta = rng.standard_normal((3, space.width))
    decoded = space.embed(space.decode(theta))
    attained = (decoded * theta).sum(axis=1)
    ensure(
        bool((attained[:, None] >= theta @ F.T - 1e-9).all()),
        space,
        "no sampled label beats the decoded one",
    )
