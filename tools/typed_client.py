"""A program of a user, as strict mypy sees it through the installed package's types."""

from typing import assert_type

import numpy as np

import consistruct as cs
from consistruct.calibration import CalibrationFunction
from consistruct.learning import StructuredPredictor, TaskLossClassifier

assert_type(cs.__version__, str)

costs = cs.losses.CostMatrix([[0, 1, 2], [3, 0, 1], [9, 4, 0]], rows="pred")
curve = cs.calibration_function(costs)
assert_type(curve, CalibrationFunction)
level: float = curve.consistency_level

rng = np.random.default_rng(0)
X, y = rng.normal(size=(40, 3)), rng.integers(3, size=40)
model = cs.TaskLossClassifier(costs, cs.models.Ridge(), random_state=0)
assert_type(model, TaskLossClassifier)
fitted = model.fit(X, y)
assert_type(fitted, TaskLossClassifier)
labels = fitted.predict(X)

predictor = cs.StructuredPredictor("hamming")
assert_type(predictor, StructuredPredictor)

cs.TaskLossClassifier(costs, no_such_setting=1)  # type: ignore[call-arg]
missing = cs.no_such_name  # type: ignore[attr-defined]
