"""``consistruct explore``: the web page on this machine."""

from __future__ import annotations

import typer

from consistruct.cli.file_checks import FileCommand
from consistruct.exceptions import ConsistructError

__all__ = ["explore", "register"]

PORT = 8765  # explorer.DEFAULT_PORT, which needs the extra to be imported


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(cls=FileCommand)(explore)


def explore(
    port: int = typer.Option(
        PORT, min=0, max=65535, help="Port on 127.0.0.1; 0 takes any free one."
    ),
    browser: bool = typer.Option(True, help="Open the page in the browser."),
    time_limit: float = typer.Option(
        120.0, min=1.0, help="Most seconds that one computation may take."
    ),
) -> None:
    """Explore losses, scores and surrogates in a local web page.

    Example: consistruct explore --no-browser --port 9000
    """
    try:
        from consistruct.explorer import Limits, serve
    except ModuleNotFoundError as error:
        raise ConsistructError(
            f"the explorer needs {error.name}; install it with: pip install 'consistruct[explorer]'"
        ) from None
    serve(
        port=port,
        browser=browser,
        limits=Limits(seconds=time_limit),
        announce=lambda address: typer.echo(f"explorer at {address} (press Ctrl-C to stop)"),
    )
    typer.echo("explorer ended")
