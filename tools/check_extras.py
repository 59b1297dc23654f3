"""Do the extras io and explorer work where they are installed? Run by tools/wheel.py."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pandas as pd

from consistruct.explorer import create_app
from consistruct.explorer.connections import timed_protocol
from consistruct.learning import read_data

if not create_app().routes or not timed_protocol(1.0):
    raise SystemExit("the explorer has no pages")
with tempfile.TemporaryDirectory() as name:
    path = Path(name) / "d.parquet"
    pd.DataFrame({"a": [0.0, 1.0], "y": [0, 1]}).to_parquet(path)
    if read_data(path, target="y").y.tolist() != [0, 1]:
        raise SystemExit("a Parquet file is read wrongly")
