"""The page of licenses, docs/licenses.md, from the metadata of what is installed.

    python tools/licenses.py --write

A test compares the page with the environment that it runs in.
"""

from __future__ import annotations

import argparse
import sys
from importlib.metadata import Distribution
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tools.dependencies import EXTRAS, closure, declared, homepage, installed, license_of  # noqa: E402

PAGE = ROOT / "docs" / "licenses.md"
HEAD = """# Licenses

Made by `python tools/licenses.py --write` from the metadata of the packages themselves; do not
edit. `consistruct` is under the BSD 3-Clause license and contains no code of other projects; HTML
reports hold a copy of Plotly.js (MIT), taken from the installed Plotly when they are written.
`make wheel` writes a software bill of materials (CycloneDX) with exact versions beside the wheel.
Builds of PyTorch for GPUs bring packages of NVIDIA under terms of its own; they are not listed.
"""


def row(name: str, one: Distribution, direct: set[str]) -> str:
    """One line of a table."""
    address = homepage(one)
    shown = f"[{name}]({address})" if address.startswith("http") else name
    return f"| {shown} | {license_of(one)} | {'direct' if name in direct else 'through others'} |"


def table(found: dict[str, Distribution], direct: set[str]) -> str:
    """A table of packages."""
    lines = ["| package | license | needed |", "|---|---|---|"]
    return "\n".join([*lines, *(row(name, one, direct) for name, one in found.items())])


def page() -> str:
    """The whole page."""
    here = installed()
    core = closure(declared(), here)
    parts = [HEAD, "## What every installation has", table(core, names(None))]
    for extra in EXTRAS:
        more = {
            name: one for name, one in closure(declared(extra), here).items() if name not in core
        }
        parts += [
            f"## What `consistruct[{extra}]` adds",
            table(more, names(extra)) if more else "Nothing.",
        ]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def names(extra: str | None) -> set[str]:
    """Names that pyproject.toml itself has."""
    return {one.name.lower() for one in declared(extra)}


def main() -> None:
    """Print the page, or write it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.relative_to(ROOT)}")
    if parser.parse_args().write:
        PAGE.write_text(page(), encoding="utf-8")
    else:
        sys.stdout.write(page())


if __name__ == "__main__":
    main()
