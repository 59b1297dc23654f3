"""Fits of a folder killed at random moments (CONSISTRUCT_NIGHTLY=1: 20), resumed bit by bit."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

from tests.seeds import generator

KILLS = 20 if os.environ.get("CONSISTRUCT_NIGHTLY") == "1" else 3
FILES, ROWS = 24, 4000


def command(data, model, *more):
    ridge = ["--learner", "ridge", "--set", "features=linear", "--set", "standardize=true"]
    options = ["--target", "kind", *ridge, "--model", str(model), "--every", "0", *more]
    return [sys.executable, "-m", "consistruct", "fit", str(data), *options]


@pytest.fixture(scope="module")
def quiet(tmp_path_factory):
    """The data, the model of a fit that nobody disturbed, and how long it took."""
    folder = tmp_path_factory.mktemp("kill")
    data = folder / "data"
    data.mkdir()
    rng = np.random.default_rng(0)
    for number in range(FILES):
        X = rng.normal(size=(ROWS, 30)).astype(np.float32)
        frame = pd.DataFrame(X).add_prefix("x")
        frame["kind"] = (X[:, :3] + rng.normal(size=(ROWS, 3))).argmax(axis=1)
        frame.to_parquet(data / f"{number:02d}.parquet", index=False, row_group_size=1000)
    model = folder / "quiet.safetensors"
    start = time.monotonic()
    subprocess.run(command(data, model), check=True, capture_output=True)
    return data, model.read_bytes(), time.monotonic() - start


@pytest.mark.parametrize("seed", range(KILLS))
def test_killed_and_resumed(quiet, seed, tmp_path):
    data, expected, seconds = quiet
    model = tmp_path / "killed.safetensors"
    checkpoint = tmp_path / "killed.safetensors.checkpoint"
    moment = generator(seed).uniform(0.0, 1.1 * seconds)
    process = subprocess.Popen(
        command(data, model), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        process.wait(moment)  # it may be done already: then there is nothing to resume
    except subprocess.TimeoutExpired:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    if not model.exists():
        more = ["--resume"] if checkpoint.exists() else []
        subprocess.run(command(data, model, *more), check=True, capture_output=True)
    assert model.read_bytes() == expected
