"""What a page requests, checked before any work."""

from __future__ import annotations

import math
import re
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

from consistruct.exceptions import ConsistructError
from consistruct.explorer.limits import Limits

__all__ = ["Setting"]

CHARACTERS = re.compile(r"[A-Za-z0-9_.,:+-]+")
MATRIX_ID = re.compile(r"[0-9a-f]{64}")
READS_FILES = ("cost", "tree", "matrix")  # names in specs after which a path would follow


@dataclass(frozen=True)
class Setting:
    """A loss or an uploaded matrix, with scores, surrogate, decoding and the ε to look at.

    Attributes
    ----------
    loss : str
        A spec such as ``hamming:10``; empty if `matrix` is given.
    matrix : str
        Identifier of an uploaded matrix of costs or, with `metric`, of a confusion; empty if `loss`
        is given.
    metric : str
        A metric of the whole data set, such as ``macro-f1``, that is analyzed as the costs which it
        is to first order at the confusion; empty for costs.
    eps : float or None
        None lets the report choose.
    """

    loss: str = ""
    matrix: str = ""
    metric: str = ""
    scores: str = "own"
    surrogate: str = "quadratic"
    decoding: str = "argmax"
    eps: float | None = None

    @classmethod
    def from_json(cls, data: Any, limits: Limits) -> Self:
        """Check a JSON object from outside; nothing in it is trusted.

        >>> Setting.from_json({"loss": "hamming:10", "eps": 0.5}, Limits()).scores
        'own'
        """
        if not isinstance(data, dict):
            raise ConsistructError("a setting must be a JSON object such as {'loss': 'hamming:10'}")
        known = set(cls.__dataclass_fields__)
        unknown = sorted(str(name) for name in set(data) - known)
        if unknown:
            raise ConsistructError(
                f"a setting has the fields {', '.join(sorted(known))}, got {unknown[0]!r}"
            )
        texts = {name: data.get(name, getattr(cls, name)) for name in sorted(known - {"eps"})}
        for name, text in texts.items():
            if not isinstance(text, str):
                raise ConsistructError(f"{name} must be a string, got {type(text).__name__}")
            texts[name] = text.strip()
        if bool(texts["loss"]) == bool(texts["matrix"]):
            raise ConsistructError("choose a loss, for example hamming:10, or drop a cost matrix")
        if texts["metric"] and not texts["matrix"]:
            raise ConsistructError(
                f"{texts['metric']} needs a confusion matrix: drop it as a CSV file"
            )
        for name in ("loss", "metric", "scores", "surrogate", "decoding"):
            if texts[name] or name not in ("loss", "metric"):
                _check_spec(name, texts[name], limits)
        if texts["matrix"] and not MATRIX_ID.fullmatch(texts["matrix"]):
            raise ConsistructError("matrix must be the identifier that the upload returned")
        return cls(**texts, eps=_check_eps(data.get("eps")))

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return asdict(self)

    @property
    def curve_key(self) -> str:
        """Equal for settings that share a calibration function: all but ε."""
        return repr(replace(self, eps=None))


def _check_spec(name: str, text: str, limits: Limits) -> None:
    if len(text) > limits.spec_characters:
        raise ConsistructError(
            f"{name} must have at most {limits.spec_characters} characters, got {len(text)}"
        )
    if not CHARACTERS.fullmatch(text):
        raise ConsistructError(
            f"{name} must be written with letters, digits and . , : + - _ only, got {text!r}"
        )
    words = [part.lower().replace("_", "-") for part in text.split(":")]
    for word in READS_FILES:
        if word in words:
            raise ConsistructError(
                f"{name} {text!r} names a file, but the explorer does not read files; drop a CSV "
                "cost matrix on the page, or use `consistruct analyze` on the command line"
            )
    for number in re.findall(r"\d+", text):
        if len(number) > 20 or int(number) > limits.spec_integer:
            raise ConsistructError(
                f"sizes in {name} must be at most {limits.spec_integer}, got {number[:20]}; "
                f"use `consistruct analyze` for larger ones"
            )


def _check_eps(value: Any) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ConsistructError(f"eps must be a number or null, got {type(value).__name__}")
    if isinstance(value, int) and abs(value) > 2**53:
        raise ConsistructError("eps must be finite and non-negative, got a huge integer")
    if not math.isfinite(value) or value < 0:
        raise ConsistructError(f"eps must be finite and non-negative, got {value}")
    return float(value)
