"""The oldest versions that pyproject.toml allows, as pip wants them: ``name==floor``, one a line.

    python tools/floors.py io explorer

prints the dependencies of the package and of the extras named.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"


def floors(extras: list[str]) -> list[str]:
    """Pins of all requirements; one without a floor cannot be checked and is refused."""
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    requirements = list(project["dependencies"])
    for extra in extras:
        requirements += project["optional-dependencies"][extra]
    pins = []
    for requirement in requirements:
        found = re.fullmatch(r"([A-Za-z0-9_.-]+)>=([0-9.]+)", requirement.strip())
        if found is None:
            raise SystemExit(f"{requirement!r} has no floor; write name>=version")
        pins.append(f"{found[1]}=={found[2]}")
    return pins


if __name__ == "__main__":
    sys.stdout.write("\n".join(floors(sys.argv[1:])) + "\n")
