"""One worker process: reads a request per line, answers with progress and a result.

Started by `WorkerPool` as ``python -m consistruct.explorer.worker MEMORY LOG2_LABELS``. It ends
when its input does, so that no worker outlives its server.
"""

from __future__ import annotations

import base64
import contextlib
import json
import math
import os
import queue
import sys
import threading
import time
import traceback
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import Any, BinaryIO

import numpy as np

from consistruct._members import describe_count
from consistruct._threads import at_most
from consistruct.calibration import (
    CalibrationFunction,
    LabelOrderWarning,
    RankWarning,
    calibration_function,
)
from consistruct.exceptions import ConsistructError
from consistruct.explorer.files import render
from consistruct.explorer.matrices import Upload
from consistruct.explorer.messages import menu_words, page_message
from consistruct.explorer.settings import Setting
from consistruct.losses import parse_loss
from consistruct.losses.base import Loss
from consistruct.report import CalibrationReport, calibration_report
from consistruct.report.calibration.charts import calibration_figures
from consistruct.report.formats import label_text, log_text
from consistruct.report.sections import Section
from consistruct.structures.registry import parse_scores

__all__ = ["Analyst", "main"]

N_CURVES = 8
N_POINTS, N_POINTS_OF_FORMULA = 21, 101
BETWEEN_PROGRESS = 0.1  # seconds

Step = Callable[[str, int, int], None]


class Analyst:
    """Answers settings; remembers the curves that it computed last, for other values of ε."""

    def __init__(self, log2_labels: int) -> None:
        self._log2_labels = log2_labels
        self._curves: OrderedDict[str, tuple[CalibrationFunction, list[str]]] = OrderedDict()

    def compute(self, request: dict[str, Any], step: Step) -> Any:
        """The result of one request."""
        if request["task"] == "render":
            report = CalibrationReport.from_dict(request["report"])
            return base64.b64encode(render(report, request["kind"])).decode()
        setting = Setting(**request["setting"])
        return self.analyze(setting, request.get("matrix"), step)

    def analyze(self, setting: Setting, matrix: dict[str, Any] | None, step: Step) -> Any:
        """The report of a setting and its figures."""
        step("reading the loss", 0, 0)
        curve, notes = self._curve(setting, matrix)
        step("calibration function", 0, 0)
        # a formula costs nothing: enough points to see where it bends
        number = N_POINTS_OF_FORMULA if curve.method.startswith("closed form") else N_POINTS
        report = calibration_report(
            curve,
            np.linspace(0.0, curve.max_eps, number),
            at=setting.eps,
            warnings=notes,
            progress=lambda done, total: step("calibration function", done, total),
        )
        return {
            "report": report.as_dict(),
            "sections": [_on_the_page(section) for section in report.sections()],
            "figures": calibration_figures(report),
            "table": _table(report),
        }

    def _curve(
        self, setting: Setting, matrix: dict[str, Any] | None
    ) -> tuple[CalibrationFunction, list[str]]:
        key = setting.curve_key
        if key not in self._curves:
            self._curves[key] = self._new_curve(setting, matrix)
            while len(self._curves) > N_CURVES:
                self._curves.popitem(last=False)
        self._curves.move_to_end(key)
        return self._curves[key]

    def _new_curve(
        self, setting: Setting, matrix: dict[str, Any] | None
    ) -> tuple[CalibrationFunction, list[str]]:
        loss: Loss
        if matrix is None:
            loss = parse_loss(setting.loss)
            self._check_size(loss)
        else:
            loss = Upload(matrix["text"], matrix["rows"]).loss(setting.metric)
        # own scores are those that the surrogate is trained with
        scores = None if setting.scores == "own" else parse_scores(setting.scores, loss)
        with warnings.catch_warnings(record=True) as caught:
            for kind in (LabelOrderWarning, RankWarning):
                warnings.simplefilter("always", kind)
            curve = calibration_function(loss, scores, setting.surrogate, setting.decoding)
        return curve, [str(warning.message) for warning in caught]

    def _check_size(self, loss: Loss) -> None:
        size = loss.n_labels
        if size is not None and size.bit_length() > self._log2_labels + 1:
            raise ConsistructError(
                f"the loss has {describe_count(size)} predictions, but the explorer accepts at "
                f"most 2^{self._log2_labels}; use `consistruct analyze` for more"
            )


def _on_the_page(section: Section) -> dict[str, Any]:
    """A section in the words of the page."""
    found = asdict(section)
    found["answer"] = menu_words(section.answer)
    found["details"] = [menu_words(detail) for detail in section.details]
    return found


def _table(report: CalibrationReport) -> list[list[str]]:
    """The curve as a page lists it: ε, both ends of H, status, and the two labels."""
    return [
        [
            f"{point.eps:.4g}",
            "∞" if point.log_lower == math.inf else log_text(point.log_lower),
            "∞" if point.log_upper == math.inf else log_text(point.log_upper),
            point.status,
            *(["", ""] if point.pair is None else [label_text(label) for label in point.pair]),
        ]
        for point in report.curve
    ]


def main(arguments: list[str]) -> None:
    """Serve requests from standard input until it ends."""
    memory, log2_labels = (int(argument) for argument in arguments)
    # results leave through a descriptor of their own: a library that prints does no harm
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    _limit_memory(memory)
    requests = _requests(sys.stdin.buffer)
    with at_most(1):
        analyst = Analyst(log2_labels)
        _warm(analyst)
        _send(replies, {"ready": True})
        for request in requests:
            _send(replies, _reply(analyst, request, replies))


def _reply(analyst: Analyst, request: dict[str, Any], replies: BinaryIO) -> dict[str, Any]:
    last = 0.0

    def step(stage: str, done: int, total: int) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= BETWEEN_PROGRESS or done == 0:
            last = now
            _send(replies, {"progress": [stage, done, total]})

    try:
        return {"result": analyst.compute(request, step)}
    except (ValueError, TypeError) as error:
        # what the package states to its caller is what the page shows
        return {"error": page_message(error)}
    except MemoryError:
        return {"error": "this needs more memory than the explorer allows; try smaller sizes"}
    except (OverflowError, RecursionError) as error:
        return {"error": page_message(f"the sizes are too large: {error}")}
    except Exception as error:  # the server must go on: the page states that it is our fault
        traceback.print_exc()
        return {"error": page_message(f"the computation failed: {type(error).__name__}: {error}")}


def _send(replies: BinaryIO, message: dict[str, Any]) -> None:
    try:
        replies.write(json.dumps(message, allow_nan=False).encode() + b"\n")
        replies.flush()
    except BrokenPipeError:  # the server is gone: nobody waits for an answer
        os._exit(0)


def _requests(lines: BinaryIO) -> Iterable[dict[str, Any]]:
    """Requests as they come, read by a thread that ends the process when there can be no more."""
    waiting: queue.Queue[dict[str, Any]] = queue.Queue()

    def read() -> None:
        for line in lines:
            waiting.put(json.loads(line))
        os._exit(0)

    threading.Thread(target=read, daemon=True).start()
    while True:
        yield waiting.get()


def _limit_memory(limit: int) -> None:
    with contextlib.suppress(ImportError, ValueError, OSError):  # not every system can
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _warm(analyst: Analyst) -> None:
    """Load compiled code before the first request: closed forms and listed cost matrices."""
    for spec in ("hamming:3", "ordinal:3"):
        analyst.analyze(Setting(loss=spec), None, lambda *_: None)


if __name__ == "__main__":
    main(sys.argv[1:])
