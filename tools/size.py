"""Lines of Python by folder, without blank lines, comments and docstrings:  make size

A line counts if a token of code stands on it, whatever else does. There are two groups: what the
first version did, and what has come since. The first version is commit 1f906bc of 15 November 2026,
35,176 lines, the last one before the seam of learning (140644d). `SINCE` names what is new by what
it is for; all else counts as first version, so that a file is new only if somebody says why. Files
that were rewritten, divided or moved do what the first version did, as do new parts of old files.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections import Counter
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "src" / "consistruct"
NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}

# What has come since the first version: folders and files below the package.
SINCE: dict[str, tuple[str, ...]] = {
    "metrics that are no means": (
        "learning/rules",
        "losses/metrics",
        "metrics.py",
        "report/learning/decisions.py",
        "testing/metrics.py",
    ),
    "decisions, and oracles that find them": (
        "decoding/oracles",
        "losses/decision.py",
        "oracles.py",
        "scores/decisions.py",
        "surrogates/decisions.py",
    ),
    "risk control and selective prediction": (
        "cli/risk.py",
        "guarantees/risk",
        "learning/evaluation/evidence.py",
        "learning/evaluation/selective.py",
    ),
    "forecasts of learning curves": (
        "cli/pilot.py",
        "guarantees/forecasts",
        "learning/refits.py",
        "report/forecasts.py",
        "report/learning/forecast.py",
    ),
    "streams, folders of files, Dask": (
        "cli/folders.py",
        "distributed",
        "learning/models/ridge/from_moments.py",
        "learning/models/ridge/streaming.py",
        "learning/streams",
    ),
    "PyTorch and GPUs": (
        "learning/encoding/tensors.py",
        "learning/models/network_output.py",
        "learning/models/network_training.py",
        "learning/models/ridge/device.py",
        "learning/models/ridge/device_sums.py",
        "learning/models/torch.py",
        "torch",
    ),
    "any model: scikit-learn's, stacks, portfolios": (
        "learning/models/coordinates.py",
        "learning/models/items/boosted.py",
        "learning/models/items/portfolio.py",
        "learning/models/items/regressors.py",
        "learning/models/prepared.py",
        "learning/models/probabilities.py",
        "learning/models/regressor.py",
        "learning/models/stack.py",
        "learning/models/wrapped.py",
        "learning/selection",
        "models.py",
        "report/learning/model_wording.py",
        "testing/examples.py",
        "testing/models.py",
    ),
    "ridge on landmarks": (
        "learning/models/items/landmark_ridge.py",
        "learning/models/ridge/kernel_cg.py",
    ),
    "costs of each example": (
        "learning/evaluation/cost_metrics.py",
        "learning/example_costs.py",
        "learning/models/costs",
        "losses/costs/label_costs.py",
        "report/learning/example_costs.py",
        "report/learning/profit.py",
    ),
    "intervals, importance, comparisons": (
        "learning/evaluation/comparison.py",
        "learning/evaluation/importance.py",
        "learning/evaluation/intervals.py",
        "report/learning/overlap.py",
        "report/learning/query_peers.py",
        "report/learning/sequence_peers.py",
    ),
    "exact certificates and their checkers": (
        "calibration/methods/explicit_full/_exact.py",
        "calibration/methods/nonquadratic/divergence_exact.py",
        "calibration/methods/nonquadratic/polyhedral/snapping.py",
        "calibration/proofs",
        "cli/commands/check.py",
    ),
    "curves of chains, label sets, some distributions, linear regret": (
        "calibration/methods/explicit/restricted.py",
        "calibration/methods/nonquadratic/mixed_decision.py",
        "calibration/methods/orbits/chain.py",
        "calibration/methods/orbits/chain_bounds.py",
        "calibration/methods/orbits/sets.py",
        "calibration/problem/distributions.py",
        "report/calibration/easier.py",
        "surrogates/linear_regret.py",
    ),
    "tables with words and dates": ("learning/files/data/raw.py",),
    "scikit-learn parts in model files": (
        "learning/files/scikit_checks.py",
        "learning/files/scikit_parts.py",
    ),
    "cards in notebooks, bars, failures in one line": (
        "_html.py",
        "_progress.py",
        "calibration/card.py",
        "cli/failures.py",
        "learning/card.py",
        "losses/card.py",
        "report/card.py",
    ),
    "doctor, limits on input, explorer under load": (
        "_budgets.py",
        "cli/commands/doctor.py",
        "doctor.py",
        "explorer/connections.py",
        "explorer/messages.py",
    ),
    "claims in the paper's prose": (
        "audit/claims/introduction.py",
        "audit/claims/readings.py",
    ),
}


def code_lines(text: str) -> int:
    """How many lines hold code.

    >>> code_lines('"docstring"\\n\\n# comment\\nx = (1,\\n     2)  # and more\\n')
    2
    """
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        owner = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        if isinstance(node, owner) and ast.get_docstring(node, clean=False) is not None:
            first = node.body[0]
            lines.difference_update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    return len(lines)


def by_file(source: Path = SOURCE) -> dict[str, int]:
    """Lines of code of every file, by its path below the package."""
    return {
        path.relative_to(source).as_posix(): code_lines(path.read_text(encoding="utf-8"))
        for path in sorted(source.rglob("*.py"))
    }


def purpose(file: str) -> str | None:
    """What a file that has come since the first version is for; None for the first version.

    >>> purpose("losses/metrics/ratios.py"), purpose("losses/hamming.py")
    ('metrics that are no means', None)
    """
    for name, places in SINCE.items():
        if any(file == place or file.startswith(f"{place}/") for place in places):
            return name
    return None


def folder(file: str) -> str:
    """The folder right below the package, one deeper in learning; "." for single files."""
    parts = file.split("/")
    deep = 2 if parts[0] == "learning" and len(parts) > 2 else 1
    return "/".join(parts[:deep]) if len(parts) > 1 else "."


def groups(source: Path = SOURCE) -> tuple[Counter[str], Counter[str]]:
    """Lines of what the first version did by folder, and of what has come since by purpose."""
    first: Counter[str] = Counter()
    since: Counter[str] = Counter()
    for file, lines in by_file(source).items():
        new = purpose(file)
        if new is None:
            first[folder(file)] += lines
        else:
            since[new] += lines
    return first, since


def main() -> int:
    """Print the table."""
    first, since = groups()
    rows = [
        *sorted(first.items()),
        ("what the first version did\n", first.total()),
        *sorted(since.items()),
        ("what has come since\n", since.total()),
        ("all of src/consistruct", first.total() + since.total()),
    ]
    sys.stdout.writelines(f"{lines:7,d}  {name}\n" for name, lines in rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
