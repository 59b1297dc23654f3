"""Build `consistruct-check.pyz`: the check of certificates in one file, for a bare Python 3.11.

    python tools/check_zipapp.py dist/consistruct-check.pyz
    python dist/consistruct-check.pyz certificate.json

It holds `consistruct/certificates/` alone, which imports only the standard library: whoever doubts
a certificate need not install, nor trust, the package that made it.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import zipapp
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "src" / "consistruct" / "certificates"
MAIN = (
    "import sys\nfrom consistruct.certificates.__main__ import main\nsys.exit(main(sys.argv[1:]))\n"
)


def build(target: Path) -> None:
    """Write the archive."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        package = root / "consistruct"
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(SOURCE, package / "certificates", ignore=ignored)
        (package / "__init__.py").write_text("", encoding="utf-8")  # nothing else of consistruct
        (root / "__main__.py").write_text(MAIN, encoding="utf-8")
        target.parent.mkdir(parents=True, exist_ok=True)
        zipapp.create_archive(root, target, interpreter="/usr/bin/env python3", compressed=True)


if __name__ == "__main__":
    build(Path(sys.argv[1] if len(sys.argv) == 2 else "dist/consistruct-check.pyz"))
