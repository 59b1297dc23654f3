"""The web explorer: choose a loss, scores and a surrogate, and see how hard it is.

Needs the extra ``explorer`` (Starlette and uvicorn).
"""

from consistruct.explorer.app import create_app
from consistruct.explorer.limits import Limits
from consistruct.explorer.server import serve

__all__ = [
    "Limits",
    "create_app",
    "serve",
]


def __dir__() -> list[str]:
    return sorted(__all__)
