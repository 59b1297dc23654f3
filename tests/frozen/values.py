"""Plain values as files hold them, and how far recomputed ones may be from them."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["FOLDER", "TOLERANCES", "differences", "plain", "read", "write"]

FOLDER = Path(__file__).parent
# Relative to the larger of the number and FLOOR. A case is named after the way it is computed.
TOLERANCES = {
    # exact arithmetic, rounded outwards once: the last bits of a float may move, nothing else
    "certificate": 1e-9,
    # closed forms and interior-point solutions: other BLAS builds add up in another order, and the
    # condition numbers of these small problems are below 1e6
    "closed": 1e-6,
    # iterations that stop by a rule (boosting, SGD, networks in single precision, held-out choices)
    # turn a changed last bit into a few changed digits
    "iterative": 1e-3,
    # of two splits that gain the same, the last bit of a sum decides; a mean over many trees moves
    # little by it
    "trees": 1e-2,
}
FLOOR = 1e-3  # losses are of order one: below this, errors count absolutely


def plain(value: Any, rtol: float) -> Any:
    """Return the value as JSON data: arrays as lists, floats rounded to 1/1000 of the tolerance."""
    if isinstance(value, dict):
        return {str(key): plain(item, rtol) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist(), rtol)
    if isinstance(value, list | tuple):
        return [plain(item, rtol) for item in value]
    if isinstance(value, np.generic):
        return plain(value.item(), rtol)
    if isinstance(value, float):
        if not math.isfinite(value):
            return repr(value)
        return float(f"{value:.{2 - round(math.log10(rtol))}e}")
    return value


def differences(old: Any, new: Any, rtol: float, where: str = "") -> list[str]:
    """List where two plain values differ: floats beyond the tolerance, all else at all."""
    if isinstance(old, dict) and isinstance(new, dict):
        lost = [f"{where}/{key}: recorded, not computed" for key in old if key not in new]
        added = [f"{where}/{key}: computed, not recorded" for key in new if key not in old]
        both = [
            line
            for key in old
            if key in new
            for line in differences(old[key], new[key], rtol, f"{where}/{key}")
        ]
        return lost + added + both
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        pairs = enumerate(zip(old, new, strict=True))
        return [line for i, (a, b) in pairs for line in differences(a, b, rtol, f"{where}[{i}]")]
    if isinstance(old, float) and isinstance(new, float):
        close = abs(old - new) <= rtol * max(abs(old), FLOOR)
    else:
        close = type(old) is type(new) and old == new
    return [] if close else [f"{where}: {old!r} was recorded, {new!r} is computed"]


def read(part: str) -> dict[str, Any]:
    """Return the recorded values of a part, by case."""
    found: dict[str, Any] = json.loads((FOLDER / f"{part}.json").read_text(encoding="utf-8"))
    return found


def write(part: str, values: dict[str, Any]) -> None:
    """Record the values of a part: one line per case, so that a change is one line."""
    lines = [
        f"{json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}"
        for name, value in values.items()
    ]
    text = "{\n" + ",\n".join(lines) + "\n}\n"
    (FOLDER / f"{part}.json").write_text(text, encoding="utf-8")
