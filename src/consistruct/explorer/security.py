"""What every request must carry and every response states.

The server is for the person at this machine. Other web sites that their browser visits can send
requests to it as well; three checks keep those out. A name that resolves to this machine after the
page was loaded (DNS rebinding) fails the Host check; a form or a script of another site fails the
Origin check; and what they send anyway they cannot read, frame or include.
"""

from __future__ import annotations

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["ALLOWED_HOSTS", "HEADERS", "POLICY", "OriginCheck", "SecurityHeaders"]

ALLOWED_HOSTS = ("127.0.0.1", "localhost")
SAFE_METHODS = ("GET", "HEAD")

# Plotly writes its rules into a style element that it creates empty, and sets one style attribute,
# that of exponents; each is let through by its hash and nothing else is.
EMPTY_ELEMENT = "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='"  # of the empty text
EXPONENT = "'sha256-S+l+cz1wXqs2B0FcjqqT7NvjwGmhD1UjJswXjlSkj0s='"  # of font-size:70%
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        f"style-src-elem 'self' {EMPTY_ELEMENT}",
        f"style-src-attr 'unsafe-hashes' {EXPONENT}",
        "img-src 'self' blob:",  # blob: from which Plotly's own button makes a PNG
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}


class SecurityHeaders:
    """Adds the headers to every response, refusals included."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, send_with_headers)


class OriginCheck:
    """Requests that change something must come from a page of this server."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] not in SAFE_METHODS:
            headers = Headers(scope=scope)
            origin, host = headers.get("origin"), headers.get("host", "")
            site = headers.get("sec-fetch-site", "same-origin")
            if origin != f"http://{host}" or site != "same-origin":
                refusal = JSONResponse(
                    {"error": "only pages of this server may send this request"}, status_code=403
                )
                await refusal(scope, receive, send)
                return
        await self._app(scope, receive, send)
