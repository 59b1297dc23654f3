"""Certificates with something changed, and whether what they then claim is true."""

from __future__ import annotations

import copy
import itertools
import json
import math
from fractions import Fraction
from typing import Any

import numpy as np

import consistruct as cs
from consistruct.calibration.methods.oracle.hard_pairs import HardPairs, SampledPairs
from consistruct.calibration.methods.oracle.method import OracleMethod
from consistruct.calibration.methods.orbits.chain import ChainMethod
from consistruct.calibration.methods.orbits.sets import SetMethod
from consistruct.calibration.problem.distributions import Capped, Noisy, WithMargin, restore
from consistruct.calibration.proofs.provers.oracle import oracle_prover
from consistruct.exceptions import ConsistructError
from consistruct.losses import (
    NDCG,
    CostMatrix,
    FBeta,
    Hamming,
    Kendall,
    Matching,
    MeanAveragePrecision,
    Mixed,
    PairwiseDisagreement,
    PrecisionAt,
    SpearmanFootrule,
    SpearmanRho,
)
from consistruct.structures import Blocks, Chain, Dense
from tests.calibration.hard_problems import problem
from tests.calibration.rational import calibration_value
from tests.calibration.rational_divergences import divergence_value
from tests.calibration.rational_hinges import hinge_value
from tests.calibration.rational_pairs import bregman_value, ties_value

PARTITIONS = ((2,), (3,), (1, 2), (2, 2), (1, 3), (3, 2), (2, 1, 1), (1, 1, 2))

# Members whose labels can be listed after all, so that the true value is known.
NEVER_LISTED = (
    NDCG(3), NDCG(3, 1, gain="linear", discount="reciprocal", n_grades=3), PrecisionAt(3, 2),
    PairwiseDisagreement(3), SpearmanRho(3), Matching(3), SpearmanFootrule(3), Kendall(3),
    Kendall(3, ties="exclude"), PairwiseDisagreement(3, 3), MeanAveragePrecision(3),
    FBeta(2, 2.0), FBeta(2, sizes=(1,)), FBeta(2, empty=0.0), (2, 2), (2, 3),
)  # fmt: skip

__all__ = ["NEVER_LISTED", "claim_is_true", "genuine", "never_listed", "tampered", "true_value"]


def never_listed(member):
    """The method for labels that are never listed, on a loss or (T, states) of a chain."""
    if isinstance(member, tuple):
        loss, space = Hamming(*member), Chain(*member)
        return OracleMethod(loss, space, HardPairs(space), oracle_prover(loss, space))
    space = member.score_space
    return OracleMethod(member, space, SampledPairs(member, space), oracle_prover(member, space))


def _structured(rng):
    """A method for chains, label sets, labels never listed, or restricted distributions."""
    choice = int(rng.integers(4))
    if choice == 0:
        return ChainMethod(int(rng.integers(2, 4)))
    if choice == 1:
        return SetMethod(FBeta(2, float(rng.choice([0.5, 1.0, 8.0])), empty=0.5))
    if choice == 2:
        return never_listed(NEVER_LISTED[int(rng.integers(len(NEVER_LISTED)))])
    kinds = (Noisy(0.25), Noisy(0.1), Capped(0.25), WithMargin(0.5))
    L, *_ = problem(2 + 4 * int(rng.integers(1000)))
    return cs.calibration_function(
        CostMatrix(L, rows="pred"), "full", distributions=kinds[int(rng.integers(4))]
    )


def _polyhedral(rng):
    """A certificate of a hinge surrogate on two or three labels."""
    k = int(rng.integers(2, 4))
    L = rng.integers(0, 5, (k, k)) if rng.random() < 0.7 else rng.random((k, k))
    if rng.random() < 0.8:
        np.fill_diagonal(L, 0)
    if rng.random() < 0.2:
        L = np.abs(np.subtract.outer(np.arange(k), np.arange(k)))
    surrogate = ("hinge", "max-min-margin")[int(rng.integers(2))]
    H = cs.calibration_function(CostMatrix(L, rows="pred"), surrogate=surrogate)
    if H.max_eps == 0:
        return None
    share = float(rng.choice([0.1, 0.5, 0.8, 0.9, 1.0]))
    certificate: Any = H.certificate(share * H.max_eps)
    return json.loads(certificate.to_json())


def _divergence(rng):
    """A certificate of the log loss or of sparsemax on two or three labels."""
    decoding = ("argmax", "bayes")[int(rng.integers(2))]
    k = int(rng.integers(2, 4))
    m = k if decoding == "argmax" else int(rng.integers(2, 4))
    L = rng.integers(0, 5, (k, m)) if rng.random() < 0.7 else rng.random((k, m))
    surrogate = ("log", "sparsemax")[int(rng.integers(2))]
    H = cs.calibration_function(CostMatrix(L, rows="pred"), surrogate=surrogate, decoding=decoding)
    if H.max_eps == 0:
        return None
    share = float(rng.choice([1e-6, 0.1, 0.5, 0.9, 1.0]))
    certificate: Any = H.certificate(share * H.max_eps)
    return json.loads(certificate.to_json())


def _pairs(rng):
    """A certificate of the logistic, square or linear-regret surrogate, mostly on two labels."""
    surrogate = ("logistic", "square", "linear-regret")[int(rng.integers(3))]
    k, m = 2, 2 if surrogate == "logistic" else int(rng.integers(2, 4))
    if surrogate == "square":
        k = int(rng.integers(2, 4))
    L = rng.integers(0, 5, (k, m)) if rng.random() < 0.7 else rng.random((k, m))
    H = cs.calibration_function(CostMatrix(L, rows="pred"), surrogate=surrogate)
    if H.max_eps == 0:
        return None
    certificate: Any = H.certificate(float(rng.choice([1e-4, 0.1, 0.5, 1.0])) * H.max_eps)
    return json.loads(certificate.to_json())


def genuine(seed):
    """A certificate of some kind, as a JSON document."""
    rng = np.random.default_rng([41, seed])
    kind = seed % 7
    H: Any
    if kind == 6:
        return _divergence(rng) if rng.random() < 0.5 else _pairs(rng)
    if kind == 5:
        return _polyhedral(rng)
    if kind == 4:
        try:
            H = _structured(rng)
        except ConsistructError:  # one true label alone cannot be capped
            return None
    elif kind == 0:
        sizes = [(2,), (3,), (1, 2), (2, 2), (1, 3), (3, 2), (2, 1, 1), (1, 1, 2)][
            int(rng.integers(8))
        ]
        mixed = Mixed(sizes, float(rng.choice([0.0, 0.1, 0.3, 0.5, 1.0])))
        scores = Blocks(sizes) if rng.random() < 0.5 else "full"
        H = cs.calibration_function(mixed, scores)
    elif kind == 1:
        loss = Hamming(*[(1, 2), (2, 2), (1, 3), (1, 4)][int(rng.integers(4))])
        H = cs.calibration_function(loss, "full" if rng.random() < 0.6 else None)
    else:
        L, F, mu, _ = problem(seed)
        if F is None and mu is not None:
            F = np.eye(len(L))
        H = cs.calibration_function(
            CostMatrix(L, rows="pred"), "full" if F is None else Dense(F, reference=mu)
        )
    if H.max_eps == 0:
        return None
    eps = float(rng.choice([1e-6, 0.1, 0.5, 0.9, 1.0])) * H.max_eps
    if eps <= H.consistency_level:
        eps = (H.consistency_level + H.max_eps) / 2
    try:
        certificate: Any = H.certificate(eps)
    except ConsistructError:  # no pair that was tried differs by ε
        return None
    return json.loads(certificate.to_json())


def _leaves(value, path=()):
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(item, (*path, key))
    elif isinstance(value, list):
        for key, item in enumerate(value):
            yield from _leaves(item, (*path, key))
    else:
        yield path


def _get(document, path):
    for key in path:
        document = document[key]
    return document


def _set(document, path, value):
    _get(document, path[:-1])[path[-1]] = value


def tampered(document, seed):
    """Another document: one field changed, swapped, scaled, spoilt or left out."""
    rng = np.random.default_rng([43, seed])
    changed = copy.deepcopy(document)
    fields = [name for name in changed if name not in ("schema", "kind")]
    field = fields[seed % len(fields)]  # every field has its turn
    paths = [path for path in _leaves(changed) if path[0] == field] or [(field,)]
    path = paths[int(rng.integers(len(paths)))]
    what = int(rng.integers(9))
    old = _get(changed, path)
    if what == 0:
        _set(changed, path, [math.nan, math.inf, -math.inf][int(rng.integers(3))])
    elif what == 1:
        _set(changed, path, ["x", None, [], {}, True, "1e9", "1/0"][int(rng.integers(7))])
    elif what == 2:
        other = paths[int(rng.integers(len(paths)))]
        _set(changed, path, _get(changed, other))
        _set(changed, other, old)
    elif what == 3 and isinstance(changed[field], list) and len(changed[field]) > 1:
        changed[field] = changed[field][::-1]
    elif what == 4 and isinstance(changed[field], dict | list) and changed[field]:
        if isinstance(changed[field], dict):
            changed[field].pop(sorted(changed[field])[0])
        else:
            changed[field].pop()
    elif what == 5:
        del changed[field]
    elif isinstance(old, int | float | str) and not isinstance(old, bool):
        try:
            value = Fraction(old)
        except ValueError:
            _set(changed, path, "full" if old != "full" else "blocks")
        else:
            factor = Fraction(1 + float(rng.choice([-1, 1])) * 10.0 ** float(rng.integers(-17, 2)))
            small = field in ("T", "n_states", "sizes", "d") or rng.random() < 0.2
            step = value + int(rng.integers(-2, 3)) if small else value * factor
            integer = isinstance(old, int) and step.denominator == 1
            _set(changed, path, int(step) if integer else f"{step.numerator}/{step.denominator}")
    # a forger also claims more: the tighter, the better
    if rng.random() < 0.4 and isinstance(changed.get("lower"), float):
        tighter = float(changed["lower"]) * (1 + 10.0 ** float(rng.integers(-16, 0)))
        changed["lower"] = tighter
    if rng.random() < 0.4 and isinstance(changed.get("upper"), float):
        changed["upper"] = float(changed["upper"]) * (1 - 10.0 ** float(rng.integers(-16, 0)))
    return changed


def _number(value):
    if isinstance(value, str) and "0x" in value:
        top, bottom = value.split("/")
        return Fraction(int(top, 16), int(bottom, 16))
    return Fraction(value)


def _rows(rows):
    return [[_number(x) for x in row] for row in rows]


def claim_is_true(document):
    """Whether lower ≤ H(ε)/scale ≤ upper for the loss that the document names."""
    value = true_value(document)
    if value is None:
        return False
    return _number(document["lower"]) <= value <= _number(document["upper"])


def true_value(document):
    """H(ε)/scale by the rational solver, None for +∞."""
    eps = _number(document["fraction" if document["kind"] == "chain" else "eps"])
    if document["kind"] == "restricted":
        values = []
        rows = _rows(document["loss"])
        k, part = len(rows), next(part for part in document["parts"] if part is not None)
        F = None if part["scores"] is None else _rows(part["scores"])
        for polytope in restore(document["distributions"]).polytopes(len(rows[0])):
            L = polytope.columns(np.array([[float(x) for x in row] for row in rows]))
            values.append(calibration_value(L, F, [Fraction(1, k)] * k, eps))
        value, scale = min((x for x in values if x is not None), default=None), 1
    elif document["kind"] == "polyhedral":
        loss = tuple(tuple(row) for row in _rows(document["loss"]))
        value, scale = hinge_value(document["surrogate"], loss, eps), 1
    elif document["kind"] == "divergence":
        loss = tuple(tuple(row) for row in _rows(document["loss"]))
        value = divergence_value(document["surrogate"], document["decoding"], loss, eps)
        scale = 1
    elif document["kind"] == "bregman":
        loss = tuple(tuple(row) for row in _rows(document["loss"]))
        largest = _number(document["largest"])
        value, scale = bregman_value(document["surrogate"], largest, loss, eps), 1
    elif document["kind"] == "ties":
        loss = tuple(tuple(row) for row in _rows(document["loss"]))
        value, scale = ties_value(_number(document["kappa"]), loss, eps), 1
    else:
        L, F, mu, scale = _expanded(document)
        value = calibration_value(L, F, mu, eps)
    return None if value is None else value / scale


def _order_losses(loss):
    """Scores and losses of all orders against all true labels, by the formulas."""
    name = loss["name"]
    n = len(loss["discount"]) if name == "gains" else loss["n"]
    labels = list(itertools.permutations(range(n)))
    place = [[order.index(item) for item in range(n)] for order in labels]
    pairs = list(itertools.combinations(range(n), 2))
    if name in ("gains", "pairwise", "rho"):
        d = [Fraction(x) for x in loss.get("discount", range(n, 0, -1))]
        F = [[d[p] for p in row] for row in place]
    elif name in ("matching", "footrule"):
        F = [[Fraction(int(label[i] == j)) for i in range(n) for j in range(n)] for label in labels]
    elif name == "signs":
        F = [
            [Fraction(1), *(Fraction(int(p[a] < p[b])) - Fraction(1, 2) for a, b in pairs)]
            for p in place
        ]
    else:
        both = list(itertools.combinations_with_replacement(range(n), 2))
        F = [[Fraction(1, 1 + max(p[a], p[b])) for a, b in both] for p in place]
    if name in ("rho", "matching", "footrule") or loss.get("true_labels") == "orders":
        true_labels = labels
    else:
        most = len(loss["gains"]) if name == "gains" else loss.get("grades", 2)
        true_labels = list(itertools.product(range(most), repeat=n))
    return F, [
        [_order_loss(loss, order, true_label) for true_label in true_labels] for order in labels
    ]


def _order_loss(loss, order, true_label):
    name, n = loss["name"], len(order)
    pairs = list(itertools.combinations(range(n), 2))
    place = [order.index(item) for item in range(n)]
    if name == "gains":
        gain = [Fraction(loss["gains"][y]) for y in true_label]
        d = [Fraction(x) for x in loss["discount"]]
        best = sum(a * b for a, b in zip(sorted(gain, reverse=True), d, strict=True))
        if loss["normalizer"] is not None:
            best = Fraction(loss["normalizer"])
        return 1 - sum(gain[i] * d[place[i]] for i in range(n)) / best if any(gain) else Fraction(0)
    if name == "rho":
        return Fraction(3 * sum((place[i] - true_label.index(i)) ** 2 for i in range(n)), n**3 - n)
    if name == "footrule":
        return Fraction(sum(abs(place[i] - true_label.index(i)) for i in range(n)), n * n // 2)
    if name == "matching":
        return Fraction(sum(a != b for a, b in zip(order, true_label, strict=True)), n)
    if name == "precision":
        relevant = [i for i in order if true_label[i]]
        hits = [Fraction(m + 1, 1 + place[i]) for m, i in enumerate(relevant)]
        return 1 - sum(hits) / len(relevant) if relevant else Fraction(0)
    # pairs that the true label orders: larger is better, but for orders and ranks
    worth = list(true_label)
    if loss.get("true_labels") == "orders":
        worth = [-true_label.index(i) for i in range(n)]
    elif loss.get("true_labels") == "ranks":
        worth = [-x for x in true_label]
    wished = [(a, b) if worth[a] > worth[b] else (b, a) for a, b in pairs if worth[a] != worth[b]]
    wrong = sum(place[a] > place[b] for a, b in wished)
    counted = len(pairs) if loss.get("ties") == "count" else len(wished)
    ties = Fraction(len(pairs) - len(wished), 2) if loss.get("ties") == "count" else 0
    return (wrong + ties) / Fraction(counted) if counted else Fraction(0)


def _set_loss(square, empty, pred, true):
    total = square * sum(true) + sum(pred)
    if total == 0:
        return 1 - empty
    return 1 - (1 + square) * sum(a * b for a, b in zip(pred, true, strict=True)) / total


def _sets(document):
    """F-beta: scores by their own columns for some sizes, free in (size, label) for all."""
    T, square = document["T"], _number(document["beta"]) ** 2
    empty, sizes = _number(document["empty"]), document.get("sizes", list(range(T + 1)))
    labels = list(itertools.product((0, 1), repeat=T))
    true_labels = [y for y in labels if sum(y) in sizes]
    L = [[_set_loss(square, empty, c, y) for y in true_labels] for c in labels]
    mu = [Fraction(1, (T + 1) * math.comb(T, sum(c))) for c in labels]
    F = [[1 - x for x in row] + [Fraction(1)] for row in L]  # what the true labels span
    return L, F, mu, 1


def _expanded(document):
    """Loss matrix, scores, measure and scale, label by label."""
    if document["kind"] == "listed":
        L = _rows(document["loss"])
        k = len(L)
        F = None if document["scores"] is None else _rows(document["scores"])
        measure = document["measure"]
        mu = [Fraction(1, k)] * k if measure is None else [_number(x) for x in measure]
        return L, F, mu, 1
    if document["kind"] == "mixed":
        sizes, eta = document["sizes"], _number(document["eta"])
        block = [b for b, size in enumerate(sizes) for _ in range(size)]
        if document.get("assignment") is not None:
            block = document["assignment"]
        k = len(block)
        L = [
            [eta * (a != b) + (1 - eta) * (block[a] != block[b]) for b in range(k)]
            for a in range(k)
        ]
        F, scale = None, Fraction(1, k)
        if document["scores"] == "blocks":
            F = [[Fraction(int(b == c)) for c in range(len(sizes))] for b in block]
            scale = Fraction(min(sizes), k)
        return L, F, [Fraction(1, k)] * k, scale
    if document["kind"] in ("orders", "pairs"):
        F, L = _order_losses(document["loss"])
        return L, F, [Fraction(1, len(L))] * len(L), 1
    if document["kind"] in ("sets", "sizes"):
        return _sets(document)
    T, s = document["T"], document.get("n_states", 2)
    labels = list(itertools.product(range(s), repeat=T))
    k = len(labels)
    wrong = [[sum(a != b for a, b in zip(x, y, strict=True)) for y in labels] for x in labels]
    L = [[Fraction(x, T) for x in row] for row in wrong]
    if document.get("scores") == "full":
        return L, None, [Fraction(1, k)] * k, Fraction(1, k)
    F = [[Fraction(int(a == state)) for a in x for state in range(s)] for x in labels]
    if document["kind"] in ("states", "chain"):
        edges = [[(x[t], x[t + 1], t) for t in range(T - 1)] for x in labels]
        every = sorted({edge for row in edges for edge in row})
        F = [
            row + [Fraction(int(e in mine)) for e in every]
            for row, mine in zip(F, edges, strict=True)
        ]
    return L, F, [Fraction(1, k)] * k, 1
