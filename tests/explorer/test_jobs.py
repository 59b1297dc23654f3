"""Computations: right, quick, cancelled, limited, and never the end of the server."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from io import BytesIO
from pathlib import Path

import pytest
from starlette.testclient import TestClient

import consistruct
from consistruct import calibration_function
from consistruct.explorer import Limits, create_app
from consistruct.explorer.files import FILES
from consistruct.explorer.worker import Analyst, _reply
from consistruct.losses import parse_loss
from consistruct.report import CalibrationReport, calibration_report
from consistruct.structures.registry import parse_scores
from tests.explorer.conftest import HOST, Visitor

SLOW = {"loss": "map:5"}  # half a minute


def pids(visitor):
    return {worker._process.pid for worker in visitor.client.app.state.jobs._pool._alive}


def ended(pid, seconds=10.0):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize(
    ("spec", "scores", "eps"),
    [("hamming:10x2", "own", 0.3), ("mixed:3x2:0.2", "blocks:3x2", 0.5), ("ordinal:4", "full", 1)],
)
def test_the_report_is_that_of_the_library(visitor, spec, scores, eps):
    job = visitor.analyze(loss=spec, scores=scores, eps=eps)
    loss = parse_loss(spec)
    curve = calibration_function(loss, parse_scores(scores, loss))
    found = CalibrationReport.from_dict(job["result"]["report"])
    assert found == calibration_report(curve, [point.eps for point in found.curve], at=eps)
    assert len(found.curve) >= 21


def test_own_scores_of_other_surrogates_are_what_they_are_trained_with(visitor):
    job = visitor.analyze(loss="zero-one:3", surrogate="hinge")
    assert job["result"]["report"]["consistency_level"] == pytest.approx(0.5)
    assert job["result"]["report"]["scores"].startswith("Full")


def test_the_result_has_all_that_the_page_shows(visitor):
    result = visitor.analyze(loss="mixed:3x2:0.2", scores="blocks:3x2")["result"]
    keys = [section["key"] for section in result["sections"]]
    assert keys[0] == "consistency"
    assert {"hardness", "curve", "worst_case", "sample_size", "advice"} < set(keys)
    charts = {chart for section in result["sections"] for chart in section["charts"]}
    assert {"curve", "sample_size"} <= charts & set(result["figures"])
    assert len(result["table"]) == len(result["report"]["curve"])
    assert all(len(row) == 6 for row in result["table"])


def test_warnings_about_the_order_of_labels_are_shown(visitor):
    found = visitor.upload("0,1,2\n1,0,3\n2,3,0").json()
    job = visitor.analyze(matrix=found["id"], scores="blocks:2,1")
    assert any("order of the labels" in text for text in job["result"]["report"]["warnings"])


def test_structured_losses_answer_in_well_under_a_second(visitor):
    visitor.analyze(loss="hamming:50x2")  # a worker is warm
    seconds = []
    for spec in ("hamming:1000x2", "mixed:40x25:0.4", "zero-one:1000"):
        start = time.perf_counter()
        assert visitor.analyze(loss=spec, scores="full")["state"] == "done"
        seconds.append(time.perf_counter() - start)
    assert min(seconds) < 0.5  # the machine may be busy now and then


def test_the_same_setting_is_not_computed_again(visitor):
    first = visitor.analyze(loss="zero-one:4")
    assert visitor.submit(loss="zero-one:4").json()["id"] == first["id"]
    assert visitor.submit(loss="zero-one:4", eps=0.5).json()["id"] != first["id"]


def test_progress_is_reported_and_cancelling_kills_the_worker(visitor):
    visitor.analyze(loss="zero-one:2")
    before = pids(visitor)
    job = visitor.submit(**SLOW).json()
    job = visitor.follow(job, until=lambda job: job["done"] > 0)
    assert job["state"] == "running"
    assert 0 < job["done"] < job["total"]
    assert job["stage"] == "calibration function"
    start = time.perf_counter()
    assert visitor.post(f"/api/jobs/{job['id']}/cancel").status_code == 200
    job = visitor.follow(job)
    assert job["state"] == "cancelled"
    assert time.perf_counter() - start < 2.0
    # its process is gone, and the next question is answered
    gone = before - pids(visitor)
    assert len(gone) == 1
    assert ended(gone.pop())
    assert visitor.analyze(loss="zero-one:5")["state"] == "done"


def test_a_worker_that_dies_is_replaced(visitor):
    job = visitor.submit(**SLOW).json()
    job = visitor.follow(job, until=lambda job: job["state"] == "running")
    for pid in pids(visitor):
        os.kill(pid, signal.SIGKILL)
    job = visitor.follow(job)
    assert job["state"] == "failed"
    assert "ended unexpectedly" in job["error"]
    # the free one died too: its next question may fail, the one after that must not
    visitor.analyze(loss="zero-one:6")
    assert visitor.analyze(loss="zero-one:7")["state"] == "done"


@pytest.fixture(scope="module")
def strict():
    """Little of everything: one worker, little time, nobody else may wait."""
    limits = Limits(workers=1, waiting=1, seconds=1.5, results=3, patience=1.0)
    with TestClient(create_app(limits), base_url=f"http://{HOST}") as client:
        yield Visitor(client)


def test_time_is_limited(strict):
    job = strict.analyze(**SLOW)
    assert job["state"] == "failed"
    assert "stopped after 1.5 seconds" in job["error"]
    assert strict.analyze(loss="zero-one:3")["state"] == "done"


def test_the_queue_is_limited(strict):
    running = [strict.submit(loss=f"map:{n}").json() for n in (5, 6)]
    refused = strict.submit(loss="zero-one:9")
    assert refused.status_code == 503
    assert "computations are already running" in refused.json()["error"]
    for job in running:
        strict.post(f"/api/jobs/{job['id']}/cancel")
        strict.follow(job)


def test_a_page_that_went_away_is_not_worked_for(strict):
    strict.analyze(loss="zero-one:2")
    job = strict.submit(**SLOW).json()
    jobs = strict.client.app.state.jobs
    end = time.monotonic() + 20
    while not jobs._jobs[job["id"]].finished and time.monotonic() < end:
        time.sleep(0.1)
    assert jobs._jobs[job["id"]].state in ("cancelled", "failed")


def test_results_are_forgotten_oldest_first(strict):
    found = [strict.analyze(loss=f"zero-one:{k}")["id"] for k in range(2, 7)]
    assert strict.get(f"/api/jobs/{found[0]}").status_code == 404
    assert strict.get(f"/api/jobs/{found[-1]}").status_code == 200


@pytest.mark.skipif(not Path("/proc/self/limits").exists(), reason="needs Linux's /proc")
def test_the_memory_of_workers_is_limited(visitor):
    visitor.analyze(loss="zero-one:2")
    for pid in pids(visitor):
        lines = Path(f"/proc/{pid}/limits").read_text().splitlines()
        line = next(line for line in lines if line.startswith("Max address space"))
        assert line.split()[3] == str(Limits().memory_bytes)


@pytest.mark.parametrize(
    ("failure", "message"),
    [
        (MemoryError(), "more memory than the explorer allows"),
        (OverflowError("too large for an index"), "the sizes are too large: too large"),
        (RecursionError(), "the sizes are too large"),
        (ValueError("a clear\nline"), "a clear line"),
        (KeyError("gone"), "the computation failed: KeyError: 'gone'"),
    ],
)
def test_what_goes_wrong_in_a_worker_is_one_line(failure, message, capsys):
    class Failing(Analyst):
        def compute(self, request, step):
            raise failure

    answer = _reply(Failing(4096), {}, BytesIO())
    assert message in answer["error"]
    # what is our fault is reported to whoever runs the server
    assert ("Traceback" in capsys.readouterr().err) == isinstance(failure, KeyError)


def test_a_worker_that_cannot_start_is_reported(monkeypatch):
    monkeypatch.setattr("sys.executable", "/bin/false")
    with TestClient(create_app(Limits(workers=1)), base_url=f"http://{HOST}") as client:
        job = Visitor(client).analyze(loss="zero-one:3")
    assert job["state"] == "failed"
    assert "no worker process could be started" in job["error"]


@pytest.mark.parametrize("name", list(FILES))
def test_downloads(visitor, name):
    job = visitor.analyze(loss="ordinal:4:1", scores="full")
    answer = visitor.get(f"/api/jobs/{job['id']}/files/{name}")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith(FILES[name].split(";")[0])
    disposition = answer.headers["content-disposition"]
    assert disposition == f'attachment; filename="ordinal-4-1-full-{name}"'
    assert answer.headers["content-security-policy"].startswith("sandbox")
    if name == "report.json":
        assert answer.json() == job["result"]["report"]


def test_downloads_that_are_not_there(visitor):
    job = visitor.analyze(loss="zero-one:3")
    assert visitor.get(f"/api/jobs/{job['id']}/files/passwd").status_code == 404
    failed = visitor.analyze(loss="no-such-loss:3")
    assert visitor.get(f"/api/jobs/{failed['id']}/files/report.json").status_code == 409


def test_two_results_in_the_same_axes(visitor):
    a, b = (visitor.analyze(loss="hamming:6x2", scores=scores) for scores in ("own", "full"))
    answer = visitor.get("/api/compare", params={"a": a["id"], "b": b["id"]})
    curves = answer.json()["figures"]["compare_curves"]
    names = {trace["name"] for trace in curves["data"]}
    assert {"A: hamming:6x2", "B: hamming:6x2, full"} <= names
    failed = visitor.analyze(loss="no-such-loss:3")
    answer = visitor.get("/api/compare", params={"a": a["id"], "b": failed["id"]})
    assert answer.status_code == 409


def test_a_worker_whose_server_is_gone_ends_without_a_word():
    """Nobody reads its answer: a broken pipe, which is no failure of the worker."""
    program = [sys.executable, "-P", "-m", "consistruct.explorer.worker", str(4 * 2**30), "100"]
    source = str(Path(consistruct.__file__).parents[1])
    worker = subprocess.Popen(
        program,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": source},
    )
    assert worker.stdout is not None
    worker.stdout.close()  # before it is ready
    assert worker.wait(60) == 0
    assert worker.stderr is not None
    assert worker.stderr.read() == b""
    worker.stderr.close()
    assert worker.stdin is not None
    worker.stdin.close()
