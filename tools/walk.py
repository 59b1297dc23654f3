"""Walk through the package: which files and functions a task enters, in order of first entry.

    python tools/walk.py                 # every flow, files with their functions and call counts
    python tools/walk.py classifier      # one of them
    python tools/walk.py --write         # bring the lists of docs/design/architecture.md up to date

All modules are imported before, so that only what runs is seen; bodies of modules and classes do
not count, nor does compiled code, which no profiler enters. The first run of a flow in this process
is the one that is traced, and the flows run in one order: caches of a function fill only once.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import pkgutil
import re
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "consistruct"
PAGE = ROOT / "docs" / "design" / "architecture.md"

Walk = dict[str, dict[str, int]]  # file below src/consistruct: function: calls


# --- the flows, on inputs as small as they can be ---


def analysis() -> None:
    """How hard are these costs? A 6 × 6 cost matrix to a page of HTML."""
    import numpy as np

    import consistruct as cs
    from consistruct.report import calibration_report

    costs = np.random.default_rng(0).integers(1, 9, (6, 6)).astype(float)
    np.fill_diagonal(costs, 0.0)
    H = cs.calibration_function(cs.losses.CostMatrix(costs, rows="pred"))
    calibration_report(H, [1.0, 2.0]).to_html()


def classifier() -> None:
    """Fit a classifier for a cost matrix by ridge regression, and predict."""
    import numpy as np

    import consistruct as cs

    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)), rng.integers(3, size=40)
    costs = cs.losses.CostMatrix([[0, 1, 2], [3, 0, 1], [9, 4, 0]], rows="pred")
    cs.TaskLossClassifier(costs, cs.models.Ridge(), random_state=0).fit(X, y).predict(X)


def sequences() -> None:
    """Fit a chain on tagged sequences, and predict."""
    import numpy as np

    import consistruct as cs

    rng = np.random.default_rng(0)
    X = [rng.normal(size=(length, 3)) for length in (3, 4, 5, 2, 4, 3)]
    y = [["a" if row[0] > 0 else "b" for row in x] for x in X]
    chain = cs.models.Chain(alpha=0.01, max_epochs=2)
    cs.StructuredPredictor("hamming", chain, random_state=0).fit(X, y).predict(X)


def rankings() -> None:
    """Fit one score per item of a query by ridge regression, and rank."""
    import numpy as np

    import consistruct as cs

    rng = np.random.default_rng(0)
    X, query = rng.normal(size=(48, 3)), np.repeat(np.arange(12), 4)
    grades = rng.integers(3, size=48)
    items = cs.models.Items("ridge", features="linear")
    model = cs.StructuredPredictor("ndcg", items, random_state=0)
    model.fit(X, grades, groups=query).predict(X, groups=query)


FLOWS: dict[str, Callable[[], None]] = {
    flow.__name__: flow for flow in (analysis, classifier, sequences, rankings)
}


# --- tracing ---


def trace(flow: Callable[[], None]) -> Walk:
    """Run a flow; files and functions of the package in order of first entry, with calls."""
    _import_everything()
    found: Walk = {}
    prefix = f"{SOURCE}/"

    def enter(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(prefix):
            return
        if not code.co_flags & inspect.CO_OPTIMIZED:  # the body of a module or a class
            return
        name = re.sub(r"\.<locals>|\.?<\w+>", "", code.co_qualname) or "<lambda>"
        calls = found.setdefault(code.co_filename.removeprefix(prefix), {})
        calls[name] = calls.get(name, 0) + 1

    before = sys.getprofile()
    threading.setprofile(enter)
    sys.setprofile(enter)
    try:
        flow()
    finally:
        sys.setprofile(before)
        threading.setprofile(None)  # type: ignore[arg-type]
    return found


NOT_WALKED = ("consistruct.explorer", "consistruct.__main__", "consistruct.torch")


def _import_everything() -> None:
    """Import every module, so that no import is taken for a step of a flow."""
    import consistruct

    for module in pkgutil.walk_packages(consistruct.__path__, "consistruct."):
        # the explorer serves, and networks (with Triton only where there is a GPU) are no walk
        if not module.name.startswith(NOT_WALKED):
            importlib.import_module(module.name)


# --- showing ---


def as_text(name: str, walk: Walk) -> str:
    """Files with their functions and calls."""
    functions = sum(map(len, walk.values()))
    lines = [f"{name}: {len(walk)} files, {functions} functions", ""]
    for file, calls in walk.items():
        lines.append(file)
        lines += [f"    {function}  {count}" for function, count in calls.items()]
    return "\n".join(lines) + "\n"


def as_page(name: str, files: list[str]) -> str:
    """The list of files of one flow as it stands on the page."""
    what = inspect.getdoc(FLOWS[name])
    listed = "\n".join(files)
    return f"### {name}: {len(files)} files\n\n{what}\n\n```text\n{listed}\n```\n"


def page_with(files: dict[str, list[str]]) -> str:
    """The page with these lists of files between its marks."""
    text = PAGE.read_text(encoding="utf-8")
    body = "\n".join(as_page(name, files[name]) for name in FLOWS)
    marks = re.compile(r"(<!-- walk -->\n).*(<!-- end of walk -->)", re.DOTALL)
    if not marks.search(text):
        raise ValueError(f"{PAGE.name} has no marks <!-- walk --> and <!-- end of walk -->")
    return marks.sub(lambda found: f"{found[1]}\n{body}\n{found[2]}", text)


def main() -> None:
    """Read the arguments, trace, print or write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("flow", nargs="*", help=f"of {', '.join(FLOWS)}; all if none is named")
    parser.add_argument("--write", action="store_true", help=f"update {PAGE.name}")
    options = parser.parse_args()
    unknown = sorted(set(options.flow) - set(FLOWS))
    if unknown or (options.write and options.flow):
        reason = f"no flow {unknown[0]}" if unknown else "--write takes all flows"
        parser.error(f"{reason}; flows are {', '.join(FLOWS)}")
    walks = {name: trace(FLOWS[name]) for name in options.flow or FLOWS}
    if options.write:
        page = page_with({name: list(walk) for name, walk in walks.items()})
        PAGE.write_text(page, encoding="utf-8")
    else:
        sys.stdout.write("\n".join(as_text(name, walk) for name, walk in walks.items()))


if __name__ == "__main__":
    main()
