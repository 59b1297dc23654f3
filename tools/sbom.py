"""A software bill of materials (CycloneDX 1.6, JSON) of an environment that holds the package.

    python tools/sbom.py --path VENV/lib/python3.11/site-packages --out dist/consistruct.cdx.json

Lists the package and everything that its installation brought, with versions, licenses, package
addresses and who needs whom; with --artifact also the checksum of the wheel.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import uuid
from datetime import UTC, datetime
from importlib.metadata import Distribution
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from packaging.requirements import Requirement  # noqa: E402
from packaging.utils import canonicalize_name  # noqa: E402
from tools.dependencies import closure, entry, homepage, installed, license_of  # noqa: E402


def bill(environment: dict[str, Distribution], artifact: Path | None = None) -> dict[str, Any]:
    """The document as plain data."""
    parts = closure([Requirement("consistruct")], environment)
    package = component("consistruct", parts["consistruct"], "library")
    if artifact is not None:
        digest = hashlib.sha256(artifact.read_bytes()).hexdigest()
        package["hashes"] = [{"alg": "SHA-256", "content": digest}]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid4()}",
        "version": 1,
        "metadata": {
            "timestamp": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "tools": {"components": [{"type": "application", "name": "tools/sbom.py"}]},
            "component": package,
        },
        "components": [
            component(name, one, "library") for name, one in parts.items() if name != "consistruct"
        ],
        "dependencies": [
            {"ref": address(name, one), "dependsOn": below(one, parts)}
            for name, one in parts.items()
        ],
    }


def address(name: str, one: Distribution) -> str:
    """The package address (purl), by which the parts refer to each other."""
    return f"pkg:pypi/{name}@{one.version}"


def component(name: str, one: Distribution, kind: str) -> dict[str, Any]:
    """One package."""
    found: dict[str, Any] = {
        "type": kind,
        "bom-ref": address(name, one),
        "name": name,
        "version": one.version,
        "purl": address(name, one),
        "licenses": licenses(one),
    }
    if homepage(one).startswith("http"):
        found["externalReferences"] = [{"type": "website", "url": homepage(one)}]
    return found


def licenses(one: Distribution) -> list[dict[str, Any]]:
    """An SPDX expression where the package has one, else the name that it gives."""
    expression = entry(one, "License-Expression")
    if expression:
        return [{"expression": expression}]
    return [{"license": {"name": license_of(one)}}]


def below(one: Distribution, parts: dict[str, Distribution]) -> list[str]:
    """Addresses of what a package needs here, without extras."""
    found = set()
    for text in one.requires or []:
        needed = Requirement(text)
        name = canonicalize_name(needed.name)
        if name in parts and (needed.marker is None or needed.marker.evaluate({"extra": ""})):
            found.add(address(name, parts[name]))
    return sorted(found)


def main() -> None:
    """Read the environment, write the file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--path", type=Path, help="site-packages to read; those of this Python")
    parser.add_argument("--artifact", type=Path, help="the wheel whose checksum is recorded")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    found = bill(installed(options.path), options.artifact)
    options.out.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
