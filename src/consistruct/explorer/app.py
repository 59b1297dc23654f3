"""The web application: a page, its files and a small JSON interface."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import re
from collections.abc import AsyncIterator
from importlib import resources
from pathlib import Path
from typing import Any

import plotly
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from consistruct.exceptions import ConsistructError
from consistruct.explorer.catalog import catalog
from consistruct.explorer.files import FILES, description, file_name
from consistruct.explorer.jobs import Job, Jobs, TooBusyError
from consistruct.explorer.limits import Limits
from consistruct.explorer.matrices import Matrices
from consistruct.explorer.messages import page_message
from consistruct.explorer.pool import WorkerError, WorkerPool
from consistruct.explorer.security import ALLOWED_HOSTS, HEADERS, OriginCheck, SecurityHeaders
from consistruct.explorer.settings import Setting
from consistruct.report import CalibrationReport
from consistruct.report.calibration.charts import comparison_figures

__all__ = ["create_app"]

STATIC = Path(str(resources.files("consistruct.explorer"))) / "static"
PLOTLY = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"
POLL_SECONDS = 15.0
DRAIN_BYTES = 32 * 2**20  # of a body that is too large, so that the browser reads the refusal
REVALIDATE = {"cache-control": "no-cache"}  # files of the page: requested again, sent if changed


def create_app(limits: Limits | None = None) -> Starlette:
    """The explorer as an ASGI application.

    Run it with `serve`; other servers must bind to the loopback interface too.

    Examples
    --------
    >>> sorted(route.path for route in create_app().routes)[:3]
    ['/', '/api/compare', '/api/jobs']
    """
    bounds = limits or Limits()

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        pool, matrices = WorkerPool(bounds), Matrices(bounds)
        jobs = Jobs(pool, matrices, bounds)
        app.state.matrices, app.state.jobs = matrices, jobs
        pool.start()
        watcher = asyncio.create_task(jobs.watch())
        try:
            yield
        finally:
            watcher.cancel()
            await asyncio.gather(watcher, return_exceptions=True)
            await jobs.close()
            await pool.close()

    app = Starlette(
        routes=[
            Route("/", _page),
            Route("/plotly.min.js", _plotly),
            Mount("/static", _Static(directory=STATIC)),
            Route("/api/options", _options),
            Route("/api/matrices", _upload, methods=["POST"]),
            Route("/api/jobs", _submit, methods=["POST"]),
            Route("/api/jobs/{job}", _follow),
            Route("/api/compare", _compare),
            Route("/api/jobs/{job}/cancel", _cancel, methods=["POST"]),
            Route("/api/jobs/{job}/files/{name}", _download),
        ],
        middleware=[
            Middleware(SecurityHeaders),
            Middleware(
                TrustedHostMiddleware, allowed_hosts=list(ALLOWED_HOSTS), www_redirect=False
            ),
            Middleware(OriginCheck),
        ],
        exception_handlers={
            HTTPException: _http_error,
            TooBusyError: _too_busy,
            ConsistructError: _refusal,
            WorkerError: _refusal,
            Exception: _failure,
        },
        lifespan=lifespan,
    )
    app.state.limits = bounds
    app.state.page = _page_text()
    return app


class _Static(StaticFiles):
    def file_response(self, *args: Any, **kwargs: Any) -> Response:
        response = super().file_response(*args, **kwargs)
        response.headers.update(REVALIDATE)
        return response


def _page_text() -> str:
    """The page, with a place holder for each style sheet that Plotly would write inline.

    It writes the rules of its maps, which are not used here, unless an element of that name exists.
    """
    identifiers = set(
        re.findall(r'getElementById\("([0-9a-f]{64})"\)', PLOTLY.read_text(encoding="utf-8"))
    )
    holders = "".join(f'<template id="{name}"></template>' for name in sorted(identifiers))
    return (STATIC / "index.html").read_text(encoding="utf-8").replace("<!-- holders -->", holders)


async def _page(request: Request) -> Response:
    return HTMLResponse(request.app.state.page)


async def _plotly(request: Request) -> Response:
    return FileResponse(PLOTLY, media_type="text/javascript", headers=REVALIDATE)


async def _options(request: Request) -> Response:
    return JSONResponse(catalog(request.app.state.limits))


async def _upload(request: Request) -> Response:
    limits: Limits = request.app.state.limits
    if _media_type(request) != "text/csv":
        raise HTTPException(415, "send the cost matrix as text/csv")
    content = await _body(
        request,
        limits.upload_bytes,
        "files may have at most {limit} bytes; use `consistruct analyze cost:FILE.csv` for more",
    )
    rows = request.query_params.get("rows", "")
    matrices: Matrices = request.app.state.matrices
    upload, shown = await asyncio.to_thread(matrices.read, content, rows)
    matrices.keep(upload)
    return JSONResponse(shown)


async def _submit(request: Request) -> Response:
    limits: Limits = request.app.state.limits
    if _media_type(request) != "application/json":
        raise HTTPException(415, "send the setting as application/json")
    body = await _body(request, limits.request_bytes, "a setting has at most {limit} bytes")
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        raise HTTPException(400, "the setting is not valid JSON") from None
    jobs: Jobs = request.app.state.jobs
    job = jobs.submit(Setting.from_json(data, limits))
    return JSONResponse(job.as_dict(), status_code=202)


async def _follow(request: Request) -> Response:
    job = _job(request)
    after = request.query_params.get("after", "-1")
    if not re.fullmatch(r"-1|[0-9]{1,9}", after):
        raise HTTPException(400, "after must be the version that the page last saw")
    jobs: Jobs = request.app.state.jobs
    await jobs.wait(job, int(after), POLL_SECONDS)
    return JSONResponse(job.as_dict())


async def _cancel(request: Request) -> Response:
    job = _job(request)
    jobs: Jobs = request.app.state.jobs
    jobs.cancel(job)
    return JSONResponse({"id": job.identifier})


async def _compare(request: Request) -> Response:
    """Figures of two results in the same axes."""
    jobs = [_job(request, request.query_params.get(name, "")) for name in ("a", "b")]
    if any(job.state != "done" for job in jobs):
        raise HTTPException(409, "both computations must have a result")
    named = [
        (f"{letter}: {description(job.setting)}", CalibrationReport.from_dict(job.result["report"]))
        for letter, job in zip("AB", jobs, strict=True)
        if job.result is not None
    ]
    return JSONResponse({"figures": comparison_figures(named)})


async def _download(request: Request) -> Response:
    job = _job(request)
    name = request.path_params["name"]
    if name not in FILES:
        raise HTTPException(404, f"the available files are {', '.join(FILES)}")
    if job.state != "done":
        raise HTTPException(409, "this computation has no result")
    jobs: Jobs = request.app.state.jobs
    content = base64.b64decode(await jobs.render(job, name))
    return Response(
        content,
        media_type=FILES[name],
        headers={
            "content-disposition": f'attachment; filename="{file_name(job.setting, name)}"',
            "content-security-policy": "sandbox; default-src 'none'",
        },
    )


def _job(request: Request, identifier: str | None = None) -> Job:
    jobs: Jobs = request.app.state.jobs
    try:
        return jobs.get(identifier or request.path_params.get("job", ""))
    except KeyError:
        raise HTTPException(
            404, "this computation is no longer available; start it again"
        ) from None


def _media_type(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


async def _body(request: Request, limit: int, refusal: str) -> bytes:
    """The body, never holding more than `limit` bytes of it."""
    content, total = bytearray(), 0
    async for chunk in request.stream():
        total += len(chunk)
        if total <= limit:
            content += chunk
        elif total > DRAIN_BYTES:
            break
    if total > limit:
        raise HTTPException(413, refusal.format(limit=limit))
    return bytes(content)


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return JSONResponse({"error": error.detail}, error.status_code, headers=error.headers)


async def _refusal(request: Request, error: Exception) -> Response:
    return JSONResponse({"error": page_message(error)}, 400)


async def _too_busy(request: Request, error: Exception) -> Response:
    return JSONResponse({"error": page_message(error)}, 503)


async def _failure(request: Request, error: Exception) -> Response:
    # outside all middleware: the headers are added here
    message = "the server failed; see the terminal for the reason"
    return JSONResponse({"error": message}, 500, headers=HEADERS)
