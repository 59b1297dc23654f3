"""What the training data tell about a model: baselines, learning curve, bandwidths.

Everything works on packed inputs and codes, so that rows, sequences and queries go one way and no
class gets lost in a part of the data.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from consistruct.protocols import FloatArray, LabelArray
from consistruct.report.learning.baselines import Peer, label_kind, row_peers
from consistruct.report.learning.entries import BandwidthPoint, CurveFit, ModelScore
from consistruct.report.learning.overlap import overlap
from consistruct.report.learning.parts import MODEL, error_of, ridge_of, score_of
from consistruct.report.learning.query_peers import query_peers
from consistruct.report.learning.sequence_peers import sequence_peers

__all__ = ["Refits"]

SIZES = 5  # of the learning curve: n, n/2, …, n/16
SMALLEST = 16  # training examples
BANDWIDTH_FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)
BANDWIDTH_ROWS = 1000


class Refits:
    """Fits on the training data, or parts of it, evaluated on the held-out examples.

    Parameters
    ----------
    model : fitted estimator
    X_train, y_train, groups_train
        What it was fitted on.
    test, y_test, test_codes
        Held-out examples: packed inputs, true labels as users write them, and their codes.
    """

    def __init__(
        self,
        model: Any,
        X_train: Any,
        y_train: Any,
        groups_train: Any,
        test: Any,
        y_test: Any,
        test_codes: Any,
        seed: int,
        progress: Callable[[int, int], None] | None,
    ) -> None:
        from consistruct.learning.encoding.kinds import Examples

        self.model, self.kind = model, model.kind_
        inputs = model._read(X_train, groups_train)
        codes = self.kind.codes(inputs, y_train)
        n = len(codes)
        size = inputs.shape[0] if hasattr(inputs, "shape") else len(inputs)
        if n != size:
            raise ValueError(f"X_train and y_train must have the same length, got {size} and {n}")
        self._refuse_unknown(codes)
        weight = self._weight(y_train, n)
        self.train = Examples(self.kind, inputs, codes, weight)
        self.test, self.y_test, self.test_codes = test, y_test, test_codes
        self.peers, self.missing = self._peers(seed)
        self.seed, self._progress = seed, progress
        self._done, self._total = 0, 1
        self.refits: list[FloatArray] = []  # of the model, by growing size, (draws, held-out)

    def _refuse_unknown(self, true_codes: Any) -> None:
        codes = getattr(true_codes, "values", true_codes)
        named = self.kind.name == "sequences" or (
            self.kind.name == "rows" and label_kind(self.kind.loss, codes) != "other"
        )
        if named and (codes < 0).any():
            raise ValueError(
                "y_train contains labels that the model was not fitted on; pass the data that it "
                "was fitted on"
            )

    def _weight(self, y_train: Any, n: int) -> FloatArray:
        """Weights of classes count in refits as they did in the fit."""
        from consistruct.learning.encoding.kinds import combined_weight

        class_weight = getattr(self.model, "class_weight", None)
        if class_weight is None:
            return np.ones(n)
        return combined_weight(None, class_weight, np.asarray(y_train))

    def _peers(self, seed: int) -> tuple[list[Peer], str | None]:
        if self.kind.name == "sequences":
            return sequence_peers(seed), None
        if self.kind.name == "queries":
            return query_peers(self.kind), None
        return row_peers(self.kind.loss, self.train.codes, seed)

    def overlap(self) -> int:
        """Held-out examples that are training examples too."""
        return overlap(self.train.inputs, self.train.codes, self.test, self.test_codes)

    def plan(self, curve: bool, bandwidths: bool, repeats: int) -> None:
        """Count the steps ahead."""
        self.repeats = repeats
        sizes = [len(self.train) // 2**step for step in range(1, SIZES)] if curve else []
        self.sizes = [size for size in sizes if size >= SMALLEST]
        self._total = len(self.peers) + len(self.sizes) * repeats
        self._total += len(BANDWIDTH_FACTORS) if bandwidths else 0

    def step(self) -> None:
        self._done += 1
        if self._progress is not None:
            self._progress(min(self._done, self._total), self._total)

    def baselines(self, model_losses: FloatArray) -> list[ModelScore]:
        """Mean losses of everything that the model should beat."""
        scores = []
        self._full: dict[str, float] = {}  # where the curves of the baselines end
        for peer in self.peers:
            start = time.perf_counter()
            found = peer.decide(self.train.inputs, self.train.codes, self.test)
            seconds = time.perf_counter() - start
            for name, codes in found.items():
                losses = self._losses(codes)
                scores.append(score_of(name, losses, model_losses, seconds, self.kind.loss))
            if peer.in_curve:
                self._full[name] = float(losses.mean())
            self.step()
        return scores

    def _losses(self, codes: Any) -> FloatArray:
        return np.asarray(self.kind.losses(self.test, codes, self.y_test))

    def learning_curve(self, losses: FloatArray) -> tuple[CurveFit, ...]:
        """The model and the baselines, refitted on random parts of the training data."""
        if not self.sizes:
            return ()
        rng = np.random.default_rng(self.seed)
        fits = []
        for size in reversed(self.sizes):
            draws: dict[str, list[FloatArray]] = {}
            for _ in range(self.repeats):
                rows = np.sort(rng.choice(len(self.train), size=size, replace=False))
                for name, found in self._refitted(rows).items():
                    draws.setdefault(name, []).append(found)
                self.step()
            self.refits.append(np.array(draws[MODEL]))
            means = {name: np.mean(found, axis=1) for name, found in draws.items()}
            fits += [
                CurveFit(name, size, float(found.mean()), error_of(found))
                for name, found in means.items()
            ]
        ends = {MODEL: float(losses.mean()), **self._full}
        fits += [CurveFit(name, len(self.train), mean, None) for name, mean in ends.items()]
        return tuple(fits)

    def _refitted(self, rows: LabelArray) -> dict[str, FloatArray]:
        """Losses on the held-out examples of all that is fitted on these rows."""
        part = self.train.take(rows)
        again = self._same_settings()
        again._fit_model(again._model_for(self._kind_name()), part)
        found = {MODEL: self._losses(again._codes(self.test))}
        for peer in self.peers:
            if peer.in_curve:
                *_, (name, codes) = peer.decide(part.inputs, part.codes, self.test).items()
                found[name] = self._losses(codes)
        return found

    def _kind_name(self) -> str:
        return self.model._row_kind() if self.kind.name == "rows" else self.kind.name

    def _same_settings(self, **changes: Any) -> Any:
        from sklearn.base import clone

        again = clone(self.model).set_params(loss=self.kind.loss, **changes)
        # the models that were chosen, not the choice
        if hasattr(self.model.model_, "with_fixed_weights"):
            again.set_params(model=self.model.model_.with_fixed_weights(), cv=None, time_limit=None)
        return again

    def bandwidths(self) -> tuple[tuple[BandwidthPoint, ...], str | None]:
        """Leave-one-out losses around the bandwidth that was chosen, on at most 1000 rows."""
        ridge = ridge_of(self.model)
        if self.kind.name != "rows" or ridge is None or ridge is not self.model.model_:
            return (), "the model is not a ridge regression with a kernel"
        kernel = getattr(ridge.feature_map_, "kernel", None)
        if kernel is None or kernel.name == "poly":
            return (), "the features have no bandwidth"
        chosen = kernel.bandwidth
        if "task_loss" not in (getattr(self.model, "path_", None) or {}):
            return (), "the penalty was not chosen by leave-one-out"
        rng = np.random.default_rng(self.seed)
        n = len(self.train)
        rows = np.sort(rng.choice(n, size=min(n, BANDWIDTH_ROWS), replace=False))
        standardized = ridge.feature_map_.scaling.scale is not None
        points = []
        for factor in BANDWIDTH_FACTORS:
            model = self._same_settings(
                model__kernel=kernel.name,
                model__bandwidth=factor * chosen,
                model__standardize=standardized,
            )
            model._fit_model(model._model_for("rows"), self.train.take(rows))
            best = int(np.argmin(np.abs(model.path_["alphas"] - model.model_.alpha_)))
            points.append(
                BandwidthPoint(
                    float(factor * chosen),
                    float(model.path_["task_loss"][best]),
                    float(model.path_["task_error"][best]),
                    factor == 1.0,
                )
            )
            self.step()
        return tuple(points), None
