"""Certificates over labels that are never listed: few truths, and the decoder for all the rest.

The loss and the scores are named in the certificate; the check builds them itself from the registry
and uses its own decoder, Gram operator and diameter. It is the one kind that is checked in floating
point: the ends must leave `MARGIN` for rounding.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from consistruct.calibration.hard_pairs import HardPairs, PairGuesses, SampledPairs
from consistruct.calibration.proofs.base import Exact, PlainCertificate
from consistruct.calibration.proofs.checkers.listed import Refused, number
from consistruct.exceptions import ConsistructError
from consistruct.losses import LOSSES
from consistruct.losses.base import Loss, dense_target
from consistruct.losses.hamming import Hamming
from consistruct.protocols import LabelArray
from consistruct.scores import Chain, Separable
from consistruct.scores.base import BaseScoreSpace

__all__ = ["MARGIN", "OracleCertificate", "describe", "pair_guesses"]

MARGIN = 1e-9  # relative: what the ends leave for rounding
ROUNDING = 1e-12  # of scores, relative to the sizes of their terms
SPACES: dict[str, type[BaseScoreSpace]] = {"chain": Chain, "separable": Separable}


def describe(loss: Loss, space: BaseScoreSpace) -> tuple[dict[str, Any], dict[str, Any]]:
    """Loss and scores as data; raises ConsistructError where they are not registered by name."""
    name = next((name for name, entry in LOSSES.items() if entry.cls is type(loss)), None)
    if name is None:
        raise ConsistructError(f"{loss!r} is not a registered loss: no certificate can name it")
    if space == loss.score_space:
        return {"name": name, **_fields(loss)}, {"name": "own"}
    kind = next((kind for kind, cls in SPACES.items() if cls is type(space)), None)
    if kind is None:
        raise ConsistructError(f"{space!r} cannot be named in a certificate")
    return {"name": name, **_fields(loss)}, {"name": kind, **_fields(space)}


def _fields(member: Any) -> dict[str, Any]:
    found = {}
    for field in dataclasses.fields(member):
        value = getattr(member, field.name)
        if isinstance(value, np.ndarray):
            value = value.tolist()
        if not (value is None or isinstance(value, int | float | str | tuple | list)):
            raise ConsistructError(f"{member!r} cannot be written as plain data")
        found[field.name] = list(value) if isinstance(value, tuple) else value
    return found


def _build(loss: dict[str, Any], scores: dict[str, Any]) -> tuple[Loss, BaseScoreSpace]:
    name, fields = loss["name"], {key: _tuple(x) for key, x in loss.items() if key != "name"}
    made = LOSSES[name].cls(**fields)
    if scores["name"] == "own":
        return made, made.score_space
    rest = {key: _tuple(x) for key, x in scores.items() if key != "name"}
    return made, SPACES[scores["name"]](**rest)


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def pair_guesses(loss: Loss, space: BaseScoreSpace) -> PairGuesses:
    """The bound of Theorem 7 that covers all pairs, and pairs that may attain it."""
    if isinstance(loss, Hamming) and isinstance(space, Separable | Chain):
        return HardPairs(space)
    return SampledPairs(loss, space)


@dataclass(frozen=True, eq=False)
class OracleCertificate(PlainCertificate):
    """lower ≤ H(ε) ≤ upper, the lower end by Theorem 7, the upper one by a point.

    Attributes
    ----------
    loss, scores : name and fields of registered members
    pair : (i, j), j is predicted though i is better by ε
    truths, law : the truths that have probability, and how much
    theta : score parameters under which j wins
    """

    kind = "oracle"

    loss: dict[str, Any]
    scores: dict[str, Any]
    eps: Exact
    lower: Exact
    upper: Exact
    pair: tuple[Any, Any]
    truths: list[Any]
    law: list[float]
    theta: list[float]

    def document(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    @classmethod
    def read(cls, document: dict[str, Any]) -> OracleCertificate:
        data = {field.name: document[field.name] for field in dataclasses.fields(cls)}
        i, j = (_tuple(label) for label in document["pair"])
        return cls(**{**data, "pair": (i, j)})

    @staticmethod
    def verify(document: dict[str, Any]) -> None:
        eps, lower, upper = (float(number(document[x], x)) for x in ("eps", "lower", "upper"))
        loss, space = _build(document["loss"], document["scores"])
        if eps <= 0:
            raise Refused("eps must be positive")
        bound = pair_guesses(loss, space).lower_bound(eps)
        if lower > bound * (1 - MARGIN / 2):
            raise Refused(f"Theorem 7 gives {bound!r} only")
        i, j = (loss.predictions.check(np.array([label])) for label in document["pair"])
        value = upper_value(loss, space, i, j, document, eps)
        if not value * (1 + MARGIN / 2) <= upper:
            raise Refused(f"the point has the value {value!r}, above the upper end")


def upper_value(
    loss: Loss,
    space: BaseScoreSpace,
    i: LabelArray,
    j: LabelArray,
    document: dict[str, Any],
    eps: float,
) -> float:
    """½‖θ + Uq‖²_Ḡ if j wins under θ and is worse than i by ε under q."""
    truths = loss.truths.check(np.array(document["truths"]))
    q = np.array([float(number(x, "law")) for x in document["law"]])
    theta = np.array([float(number(x, "theta")) for x in document["theta"]])
    if theta.shape != (space.width,) or q.shape != (len(truths),):
        raise Refused("law and theta do not fit the loss and the scores")
    if (q < 0).any() or not abs(q.sum() - 1) <= ROUNDING:
        raise Refused("the law is not a probability distribution")
    m = len(q)
    worse = loss(np.repeat(j, m, axis=0), truths) - loss(np.repeat(i, m, axis=0), truths)
    if worse @ q < eps - ROUNDING * float(np.abs(worse).max()):
        raise Refused("j is not worse than i by eps under the law")
    rivals = space.embed(space.decoder()(theta[None])) - space.embed(j)
    if float((rivals @ theta)[0]) > ROUNDING * float((np.abs(rivals) @ np.abs(theta))[0]):
        raise Refused("j does not win under the scores")
    targets = space.coordinates(loss.score_space)(dense_target(loss.target(truths)))
    excess, gram = (theta + q @ targets)[None], space.gram()
    value = 0.5 * float((excess * gram.apply(excess)).sum())
    return value if math.isfinite(value) else math.inf
