"""A fit on a memory-mapped array that the process could not hold: the kernel's limit states it."""

import json
import subprocess
import sys
import textwrap

import numpy as np
import pytest

N, D, K = 100_000, 1_500, 10
ALLOWED = 400 * 2**20  # bytes of memory beyond what the libraries take; X has 572 MiB

PROGRAM = """
    import json, re, resource, sys
    from pathlib import Path
    import numpy as np
    import consistruct as cs

    path, n, d, allowed = sys.argv[1], *map(int, sys.argv[2:5])
    def model():
        return cs.TaskLossClassifier(model=cs.models.Ridge("linear"), random_state=0)
    rng = np.random.default_rng(0)
    model().fit(rng.normal(size=(200, 5)), rng.integers(3, size=200))  # load what loads late
    used = int(re.search(r"VmData:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1])
    # private memory only: the pages of a mapped file do not count
    resource.setrlimit(resource.RLIMIT_DATA, (used * 1024 + allowed, resource.RLIM_INFINITY))
    X = np.memmap(path, dtype=np.float32, mode="r", shape=(n, d))
    y = np.load(path + ".y.npy")
    try:
        np.array(X)
        fits_in_memory = True
    except MemoryError:
        fits_in_memory = False
    fitted = model().fit(X, y)
    np.save(path + ".coef.npy", fitted.model_.coef_)
    print(json.dumps([fits_in_memory, fitted.model_.alpha_, -fitted.score(X[:5000], y[:5000])]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_DATA counts mappings on Linux only")
def test_fit_on_an_array_larger_than_the_allowed_memory(tmp_path):
    rng = np.random.default_rng(0)
    path = tmp_path / "inputs.bin"
    X = np.memmap(path, dtype=np.float32, mode="w+", shape=(N, D))
    directions = rng.normal(size=(D, K)).astype(np.float32)
    y = np.empty(N, dtype=np.int64)
    for start in range(0, N, 5000):
        part = rng.standard_normal((5000, D), dtype=np.float32) + 2.0
        X[start : start + 5000] = part
        y[start : start + 5000] = ((part - 2.0) @ directions).argmax(axis=1)
    X.flush()
    assert X.nbytes > ALLOWED
    np.save(f"{path}.y.npy", y)
    program = tmp_path / "fit.py"
    program.write_text(textwrap.dedent(PROGRAM))
    done = subprocess.run(
        [sys.executable, str(program), str(path), str(N), str(D), str(ALLOWED)],
        check=True,
        capture_output=True,
        text=True,
    )
    fits_in_memory, alpha, error = json.loads(done.stdout)
    assert not fits_in_memory  # the limit holds, so the fit kept to it
    assert error < 0.3  # of 0.9 by chance
    # the normal equations in float64, chunk by chunk
    second, cross = np.zeros((D, D)), np.zeros((D, K))
    mean, share = np.zeros(D), np.bincount(y, minlength=K) / N
    for start in range(0, N, 5000):
        part = X[start : start + 5000].astype(np.float64)
        mean += part.sum(axis=0) / N
        second += part.T @ part / N
        cross += part.T @ np.eye(K)[y[start : start + 5000]] / N
    second -= np.outer(mean, mean)
    cross -= np.outer(mean, share)
    expected = np.linalg.solve(second + alpha * np.eye(D), cross).T
    np.testing.assert_allclose(np.load(f"{path}.coef.npy"), expected, atol=1e-5)
