"""The web explorer: choose a loss, scores and a surrogate, and see how hard it is.

Needs the extra ``explorer`` (Starlette and uvicorn).
"""

from consistruct.explorer.app import create_app
from consistruct.explorer.limits import Limits
from consistruct.explorer.server import DEFAULT_PORT, serve

__all__ = ["DEFAULT_PORT", "Limits", "create_app", "serve"]
