"""One application with warm workers for all tests of a process."""

from __future__ import annotations

import time

import pytest

starlette = pytest.importorskip(
    "starlette.testclient", reason="the explorer needs the extra 'explorer'"
)

from consistruct.explorer import Limits, create_app  # noqa: E402

HOST = "127.0.0.1:8765"
ORIGIN = {"origin": f"http://{HOST}"}


class Visitor:
    """A page's side of the conversation."""

    def __init__(self, client):
        self.client = client

    def get(self, path, **options):
        return self.client.get(path, **options)

    def post(self, path, **options):
        headers = {**ORIGIN, **options.pop("headers", {})}
        return self.client.post(path, headers=headers, **options)

    def upload(self, text, rows=""):
        content = text.encode() if isinstance(text, str) else text
        headers = {"content-type": "text/csv"}
        return self.post("/api/matrices", params={"rows": rows}, content=content, headers=headers)

    def submit(self, **setting):
        return self.post("/api/jobs", json=setting)

    def follow(self, job, until=lambda job: False, seconds=60.0):
        """Poll until the job has finished, or `until` holds."""
        end = time.monotonic() + seconds
        while job["state"] in ("waiting", "running") and not until(job):
            assert time.monotonic() < end, f"still {job['state']} after {seconds} s"
            job = self.get(f"/api/jobs/{job['id']}", params={"after": job["version"]}).json()
        return job

    def analyze(self, **setting):
        answer = self.submit(**setting)
        assert answer.status_code == 202, answer.text
        return self.follow(answer.json())


@pytest.fixture(scope="session")
def visitor():
    app = create_app(Limits(workers=2))
    with starlette.TestClient(app, base_url=f"http://{HOST}") as client:
        yield Visitor(client)
