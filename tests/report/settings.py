"""Settings that between them use every method, every kind of label and every kind of number."""

from __future__ import annotations

import warnings

import numpy as np

from consistruct import calibration_function, losses, structures
from consistruct.calibration import LabelOrderWarning
from consistruct.report import calibration_report

HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(2)>',
    "</script><b>R&D</b>",
    "=1+1, \u2028 line\nbreak \x1b[31m 'quote' %{x}",
)

SETTINGS = {
    "closed form": (losses.ZeroOne(10), None, {}),
    "block orbits": (losses.Block((3, 5)), None, {}),
    "two pieces": (losses.Mixed((5,) * 4, 0.1), None, {}),
    "inconsistent": (losses.Mixed((5,) * 4, 0.1), structures.Blocks((5,) * 4), {}),
    "jumps": (losses.Hamming(6), "full", {}),
    "oracle": (losses.Hamming(1000), None, {}),
    "underflow": (losses.Hamming(1500), "full", {}),
    "huge blocks": (losses.Block((2**250, 2**250)), None, {}),
    "named": (
        losses.CostMatrix([[0, 2.0], [1.0, 0]], ("ham", "spam"), ("ham", "spam"), rows="pred"),
        None,
        {},
    ),
    "hostile names": (
        losses.CostMatrix(1.0 - np.eye(4) + np.diag([0.5] * 3, 1), HOSTILE, HOSTILE, rows="pred"),
        None,
        {},
    ),
    "dense scores": (losses.Ordinal(4), np.vander(np.arange(4.0), 2), {}),
    "sets": (losses.FBeta(4), None, {}),
    "sets, bounds only": (2 * losses.FBeta(13), None, {}),
    "chain": (losses.Hamming(9), structures.Chain(9, 2), {}),
    "sure labels": (losses.Ordinal(3), None, {"distributions": "noise:0.1"}),
    "permutations": (losses.Kendall(4), None, {}),
    "matchings": (losses.Matching(30), None, {}),
    "abstention": (losses.Abstain(4, 0.3), None, {}),
    "one class": (losses.ZeroOne(1), None, {}),
    "hinge, a witness": (losses.ZeroOne(3), None, {"surrogate": "hinge"}),
    "log, a formula": (losses.ZeroOne(3), None, {"surrogate": "log"}),
    "log, no certificate": (losses.Hamming(3), None, {"surrogate": "log"}),
    "logistic": (losses.Ordinal(3), None, {"surrogate": "logistic"}),
}


def report_of(name, eps=None, **options):
    loss, family, kind = SETTINGS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LabelOrderWarning)
        curve = calibration_function(loss, family, **kind)
    grid = np.linspace(0, curve.max_eps * 1.25, 6) if eps is None else eps
    return calibration_report(curve, grid, **options)
