"""What a case runs: a command of the program, or a reader whose numbers are then compared.

python -m tests.fuzzing.entry read data.csv '{"target": "y"}'     # writes read.json
python -m tests.fuzzing.entry consistruct analyze zero-one:3
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["READERS", "run"]


def run(words: list[str]) -> int:
    """Run and give the exit code; failures are reported by the program's own rules."""
    import typer

    from consistruct.__main__ import main
    from consistruct.cli.failures import reported_failures

    if words[0] == "consistruct":
        sys.argv = words
        try:
            main()
        except SystemExit as stop:
            return int(stop.code or 0)
        return 0
    warnings.showwarning = _show_note  # type: ignore[assignment]
    try:
        with reported_failures():
            found = READERS[words[0]](*words[1:])
            Path("read.json").write_text(json.dumps(found), encoding="utf-8")
    except typer.Exit as stop:
        return int(stop.exit_code)
    return 0


def _show_note(note: Warning | str, *_: Any, file: Any = None, line: str | None = None) -> None:
    """Show a note of a reader as the program shows it."""
    sys.stderr.write(f"consistruct: warning: {note}\n")


def _plain(values: Any) -> Any:
    """Numbers as they are, to the last bit (Python's JSON writes shortest exact decimals)."""
    if values is None:
        return None
    if hasattr(values, "tocsr"):  # rows as {column: value}: indices can be in the millions
        rows = values.tocsr()
        pairs = zip(rows.indices.tolist(), rows.data.tolist(), strict=True)
        entries = [[str(column), value] for column, value in pairs]
        ends = rows.indptr.tolist()
        return [dict(entries[a:b]) for a, b in pairwise(ends)]
    return np.asarray(values).tolist()


def _read(path: str, options: str) -> dict[str, Any]:
    from consistruct.learning import read_data

    found = read_data(path, **json.loads(options))
    names = None if found.feature_names is None else list(found.feature_names)
    y = found.y
    return {
        "X": _plain(found.X),
        "y": _plain(y),
        "features": names,
        "kinds": found.layout.kinds,
        "zero_based": found.layout.zero_based,
    }


def _costs(path: str) -> dict[str, Any]:
    from consistruct.losses import read_cost_csv

    return {"M": read_cost_csv(path, rows="pred").M.tolist()}


def _tree(path: str) -> dict[str, Any]:
    from consistruct.losses import read_tree_csv

    found = read_tree_csv(path)
    weights = None if found.weights is None else [float(weight) for weight in found.weights]
    return {"parents": [int(parent) for parent in found.parents], "weights": weights}


def _loss(spec: str) -> dict[str, Any]:
    from consistruct.losses import parse_loss

    return {"repr": repr(parse_loss(spec))}


def _predict(model: str, inputs: str) -> dict[str, Any]:
    from consistruct.learning import load

    return {"predictions": _plain(load(model).predict(np.array(json.loads(inputs))))}


READERS: dict[str, Callable[..., dict[str, Any]]] = {
    "read": _read,
    "costs": _costs,
    "tree": _tree,
    "loss": _loss,
    "predict": _predict,
}


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
