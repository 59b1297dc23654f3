"""From a loss and a score family to its calibration function."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from consistruct.calibration.curve import CalibrationFunction
from consistruct.calibration.methods import choose_method
from consistruct.calibration.nonquadratic import ABSurrogate, check_surrogate, choose
from consistruct.calibration.nonquadratic.choice import default_scores
from consistruct.exceptions import ConsistructError
from consistruct.losses.base import Loss
from consistruct.scores import Blocks, Dense, Full
from consistruct.scores.base import BaseScoreSpace

__all__ = ["LabelOrderWarning", "calibration_function"]


class LabelOrderWarning(UserWarning):
    """The result depends on the order of labels that the scores cannot tell apart."""


def calibration_function(
    loss: Loss,
    scores: BaseScoreSpace | str | Any = None,
    surrogate: str | ABSurrogate = "quadratic",
    decoding: str = "argmax",
    *,
    jobs: int = 1,
) -> CalibrationFunction:
    """The exact, certified calibration function of a task loss.

    H(ε) = min ½‖f + P_F Lq‖²_μ over laws q and scores f = Fθ whose prediction is worse by ε than
    the best predictable label. It is zero up to the consistency level, and the larger it is, the
    fewer examples it takes to learn.

    Parameters
    ----------
    loss : Loss
    scores : None, "full", ScoreSpace or (k, r) array
        None: the loss's own span (always consistent); for other surrogates than the quadratic,
        what they are trained with: full scores, or one score per part and state for the log loss
        on `Hamming`. "full": one score per label. An array is F itself, one row per prediction.
    surrogate : str or ABSurrogate
        "quadratic", "logistic", "exponential", "log" (CRF), "sparsemax", "hinge" (Crammer–Singer,
        structured SVM), "max-min-margin", or functions a and b.
    decoding : "argmax" or "bayes"
        "bayes" takes argmin_c (Lp)_c of the estimated law p; for "log" and "sparsemax".
    jobs : int
        Threads for explicit cost matrices with full scores.

    Returns
    -------
    CalibrationFunction
        Evaluates lazily; see its methods.

    Examples
    --------
    >>> import consistruct as cs
    >>> H = cs.calibration_function(cs.losses.Hamming(1000))
    >>> round(H(0.5), 8), H.effective_classes, H.consistency_level   # ε²/8T
    (3.125e-05, 2000.0, 0.0)
    >>> H = cs.calibration_function(cs.losses.Mixed((2, 2, 2), 0.2), cs.scores.Blocks((2, 2, 2)))
    >>> H.consistency_level, H.approximation_error
    (0.1, 0.2)
    >>> H = cs.calibration_function(cs.losses.ZeroOne(3), surrogate="hinge")   # Crammer–Singer
    >>> round(H.consistency_level, 9), round(H(0.75), 9)
    (0.5, 0.5)
    """
    if not isinstance(loss, Loss):
        raise TypeError(
            f"loss must be a consistruct loss, got {type(loss).__name__}; "
            f"wrap a matrix in losses.CostMatrix"
        )
    name = check_surrogate(surrogate, decoding)
    if loss.truths.size is None or loss.n_labels is None:
        raise ConsistructError(
            f"the calibration function needs finitely many labels, which {loss!r} does not have; "
            f"choose a member of a family with .at(size)"
        )
    other = surrogate != "quadratic"
    space = default_scores(loss, name) if other and scores is None else _as_space(loss, scores)
    if space.predictions.size != loss.n_labels:
        raise ValueError(
            f"scores are over {space.predictions.size} predictions, the loss over {loss.n_labels}"
        )
    _warn_of_label_order(loss, space)
    if other:
        method, refusals = choose(
            loss, space, name if isinstance(surrogate, str) else surrogate, decoding
        )
        return CalibrationFunction(loss, space, method, refusals, name, decoding)
    method, refusals = choose_method(loss, space, jobs)
    return CalibrationFunction(loss, space, method, refusals)


def _as_space(loss: Loss, scores: Any) -> BaseScoreSpace:
    if scores is None:
        return loss.score_space
    if isinstance(scores, BaseScoreSpace):
        return scores
    if isinstance(scores, str):
        if scores == "full":
            return Full(loss)
        raise ValueError(f"scores must be None, 'full', a score space or an array, got {scores!r}")
    return Dense(np.asarray(scores), over=loss.predictions)


def _warn_of_label_order(loss: Loss, space: BaseScoreSpace) -> None:
    """Name the labels that only their place in the order keeps in or out of pred(F)."""
    if not isinstance(space, Dense):
        # blocks of the paper's losses are symmetric; other structured spaces tell all labels apart
        if not isinstance(space, Blocks) or space == loss.score_space:
            return
        if getattr(loss, "partition", None) == space.partition:
            return
    predictable = space.predictable()
    if not predictable.order_matters:
        return
    F = space.matrix()
    L = loss.matrix()
    groups: dict[bytes, list[int]] = {}
    for label, row in enumerate(F):
        groups.setdefault(row.tobytes(), []).append(label)
    merged = [
        group
        for group in groups.values()
        if len(group) > 1 and len(np.unique(L[group], axis=0)) > 1
    ]
    if merged:
        named = ", ".join(str(group) for group in merged[:3])
        warnings.warn(
            f"the scores do not tell apart labels of different loss, {named}; of each group only "
            f"the first can be predicted, so the result depends on the order of the labels",
            LabelOrderWarning,
            stacklevel=3,
        )
        return
    kept = range(len(F)) if predictable.indices is None else predictable.indices.tolist()
    inside = sorted(set(range(len(F))) - set(kept)) if len(groups) == len(F) else []
    if inside or predictable.indices is None:
        named = str(inside[:5]) if inside else "some labels"
        warnings.warn(
            f"not every label can win outright under these scores ({named}); whether it wins ties "
            f"depends on the order of the labels",
            LabelOrderWarning,
            stacklevel=3,
        )
