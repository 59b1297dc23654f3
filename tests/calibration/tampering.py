"""Certificates with something changed, and the truth of what they then claim."""

from __future__ import annotations

import copy
import itertools
import json
import math
from fractions import Fraction
from typing import Any

import numpy as np

import consistruct as cs
from consistruct.losses import CostMatrix, Hamming, Mixed
from consistruct.scores import Blocks, Dense
from tests.calibration.hard_problems import problem
from tests.calibration.rational import calibration_value

PARTITIONS = ((2,), (3,), (1, 2), (2, 2), (1, 3), (3, 2), (2, 1, 1), (1, 1, 2))

__all__ = ["claim_is_true", "genuine", "tampered"]


def genuine(seed):
    """A certificate of some kind, as a JSON document."""
    rng = np.random.default_rng([41, seed])
    kind = seed % 4
    if kind == 0:
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
        H = cs.calibration_function(CostMatrix(L), "full" if F is None else Dense(F, reference=mu))
    if H.max_eps == 0:
        return None
    eps = float(rng.choice([1e-6, 0.1, 0.5, 0.9, 1.0])) * H.max_eps
    certificate: Any = H.certificate(eps)
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
    L, F, mu, scale = _expanded(document)
    value = calibration_value(L, F, mu, _number(document["eps"]))
    if value is None:
        return False
    return _number(document["lower"]) <= value / scale <= _number(document["upper"])


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
    T, s = document["T"], document["n_states"]
    labels = list(itertools.product(range(s), repeat=T))
    k = len(labels)
    wrong = [[sum(a != b for a, b in zip(x, y, strict=True)) for y in labels] for x in labels]
    L = [[Fraction(x, T) for x in row] for row in wrong]
    if document["scores"] == "full":
        return L, None, [Fraction(1, k)] * k, Fraction(1, k)
    F = [[Fraction(int(a == state)) for a in x for state in range(s)] for x in labels]
    return L, F, [Fraction(1, k)] * k, 1
