#!/usr/bin/env bash
# The README at the oldest versions that pyproject.toml declares, in an environment of its own:
# floors that nobody tries do not hold. PYTHON names the interpreter, 3.11 where there is one.
set -euo pipefail
cd "$(dirname "$0")/.."

python="${PYTHON:-}"
for candidate in python3.11 python3 python3.12; do
  if [ -z "$python" ] && "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2> /dev/null; then
    python="$candidate"
  fi
done
[ -n "$python" ] || { echo "floors: no Python 3.11 or newer was found" >&2; exit 2; }

folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
there="$folder/venv/bin/python"
"$there" tools/floors.py io explorer > "$folder/floors.txt"
"$there" -m pip install --quiet --disable-pip-version-check -r "$folder/floors.txt"
"$there" -m pip install --quiet --disable-pip-version-check --no-deps .
"$there" -m pip check --disable-pip-version-check
"$there" tools/run_page.py README.md
# the extras: the explorer starts, tables are read
"$there" - << 'PYTHON'
import tempfile
from pathlib import Path

import pandas as pd

from consistruct.explorer import create_app
from consistruct.explorer.connections import timed_protocol
from consistruct.learning import read_data

assert create_app().routes
assert timed_protocol(1.0)
with tempfile.TemporaryDirectory() as name:
    path = Path(name) / "d.parquet"
    pd.DataFrame({"a": [0.0, 1.0], "y": [0, 1]}).to_parquet(path)
    assert read_data(path, target="y").y.tolist() == [0, 1]
PYTHON
echo "the floors of pyproject.toml hold"
