"""The front door: from what is known of the true labels to decisions of least expected loss."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from consistruct.decisions.from_probabilities import decide_from_probabilities
from consistruct.decisions.from_samples import decide_from_samples, is_metric
from consistruct.decisions.result import Decisions
from consistruct.decisions.uncertain import CostRanges, decide_from_ranges

__all__ = ["decide"]

# What each kind of input takes beside the loss. An option that another kind has would otherwise do
# nothing: a limit that is ignored looks like one that is kept.
TAKEN = {
    "probabilities": ("rows", "classes", "costs", "calibrate", "limits"),
    "probabilities with ranges of costs": ("classes",),
    "samples with a loss": ("rows", "weights", "candidates"),
    "samples with a metric and no budget": ("weights", "candidates", "budget"),
    "samples with a metric under a budget": (
        *("weights", "candidates", "budget"),
        *("confidence", "loss_range", "rng"),
    ),
}


def decide(
    loss: Any,
    probabilities: Any = None,
    *,
    samples: Any = None,
    rows: Any = None,
    classes: Any = None,
    costs: Any = None,
    calibrate: tuple[Any, Any] | None = None,
    limits: Mapping[Any, Any] | None = None,
    weights: Any = None,
    candidates: Any = None,
    budget: int | None = None,
    confidence: float | None = None,
    loss_range: tuple[float, float] | None = None,
    rng: Any = None,
) -> Decisions:
    """Return the decisions of least expected loss, argmin_c E[L(c, y)], from any model's output.

        E[L(c, y) | x] = E[offset(y) | x] + ⟨embed(c), E[target(y) | x]⟩

    so that of x a decision needs an expected target only, which probabilities or samples give. An
    option that does not apply to what is passed is refused.

    Parameters
    ----------
    loss : Loss, spec such as "abstain::0.2", table of costs, CostRanges, or function
        A spec may leave out sizes that the probabilities or samples show. For ranges of costs the
        decisions are those of least worst-case regret; they take probabilities and `classes`. A
        function ``metric(prediction, truth)`` takes samples.
    probabilities : array, data frame (pandas, Polars, pyarrow) or list
        ========================  ==========================================================
        loss over                 what is given
        ========================  ==========================================================
        classes                   (n, k): predict_proba of any library
        label sets                (n, T), one per label; or a list of T arrays (n, 2), as
                                  scikit-learn returns. F-beta counts labels as independent,
                                  unless it gets (n, T, 1 + sizes): P(label is not in the
                                  set), P(label is in a set of this size) …
        parts with s states       (n, T, s); ``Hamming(None, s)``: a list of (length, s)
        rankings                  (n, items): expected gains, divided by the best possible
                                  one for NDCG; or (n, items, grades): probabilities of
                                  grades, which count as independent
        cost vectors, oracles     (n, costs): predicted costs
        anything listed           (n, number of true labels), in the order of
                                  ``loss.true_labels.enumerate()``
        ========================  ==========================================================
    samples : list of n lists, or (n, m, …) array
        Draws of the true label of each example, in place of probabilities.
    rows : "pred" or "true", optional
        What the rows of a table of costs stand for, unless it is symmetric or states it.
    classes : sequence, optional
        What the columns are called, where they have no names: ``model.classes_``. Columns are
        matched with the names of the loss. Where either has none, the order is refused unless it
        cannot be mistaken.
    costs : (n, k, k) array, optional
        What prediction c costs in row i if the true class is y, in place of a loss ("zero-one").
    calibrate : (p_val, y_val), optional
        Probabilities and true labels of rows that the model was not fitted on. A temperature or
        isotonic regression is made first, whichever has the least log loss by cross-validation
        on these rows, or nothing; `notes` state it.
    limits : dict, optional
        Most rows of the batch with a prediction: ``{"review": 200}`` rows, ``{"reject": 0.05}``
        of them. Decisions are the cheapest that keep all limits.
    weights : (m,) array, or list of n such arrays, optional
        Weight of each sample, scaled to sum to 1; equal if not given.
    candidates : list of n lists, optional
        Predictions to choose among, for samples. If not given: all labels for a loss, the distinct
        samples for a metric.
    budget : int, optional
        Most calls of a metric for one example. If not given, each candidate is compared with each
        distinct sample.
    confidence : float, optional
        Probability with which a choice under a budget that is `certified` is the one that all calls
        would give; 0.95 if not given.
    loss_range : (low, high), optional
        Bounds of the metric, which a budget relies on; (0, 1) if not given.
    rng : Generator or int, optional
        For the order in which a budget looks at samples.

    Returns
    -------
    decisions : Decisions
        `labels`, `expected_loss`, `runner_up`, `gap`, `notes` and `to_frame()`; with
        `worst_regret` for ranges of costs, `certified` and `n_calls` for a metric.

    Examples
    --------
    >>> import consistruct as cs, pandas as pd
    >>> costs = {"ham": {"spam": 1}, "spam": {"ham": 10}}
    >>> p = pd.DataFrame({"spam": [0.8, 0.95], "ham": [0.2, 0.05]})  # matched by name
    >>> decisions = cs.decide(costs, p, rows="pred")
    >>> decisions.labels.tolist(), decisions.expected_loss
    (['ham', 'spam'], array([0.8, 0.5]))
    >>> cs.decide("abstain::0.2", [[0.7, 0.3], [0.9, 0.1], [0.6, 0.4]], limits={2: 1}).labels
    array([0, 0, 2])
    >>> draws = [[[1, 0, 0], [0, 1, 0], [1, 0, 1]]]  # three of one label set
    >>> cs.decide(cs.losses.FBeta(3), samples=draws).labels  # the best label is none of them
    array([[1, 1, 0]])

    References
    ----------
    Elkan (2001), The foundations of cost-sensitive learning; Guo and others (2017), On calibration
    of modern neural networks; Kumar and Byrne (2004), Minimum Bayes-risk decoding for statistical
    machine translation.
    """
    if (probabilities is None) == (samples is None):
        given = "neither" if probabilities is None else "both"
        raise TypeError(f"decide takes probabilities or samples, got {given}; pass one of them")
    if isinstance(loss, CostRanges) and samples is not None:
        raise ValueError("ranges of costs take probabilities, got samples; average them first")
    if is_metric(loss) and samples is None:
        raise TypeError(
            f"a metric that is a function takes samples=, got probabilities and {loss!r}; pass a "
            "consistruct loss, or draws of the true labels"
        )
    options = {
        "rows": rows,
        "classes": classes,
        "costs": costs,
        "calibrate": calibrate,
        "limits": limits,
        "weights": weights,
        "candidates": candidates,
        "budget": budget,
        "confidence": confidence,
        "loss_range": loss_range,
        "rng": rng,
    }
    chosen = {name: value for name, value in options.items() if value is not None}
    if isinstance(loss, CostRanges):
        return decide_from_ranges(
            loss, probabilities, **_taken(chosen, "probabilities with ranges of costs")
        )
    if samples is None:
        return decide_from_probabilities(loss, probabilities, **_taken(chosen, "probabilities"))
    if not is_metric(loss):
        return decide_from_samples(loss, samples, **_taken(chosen, "samples with a loss"))
    kind = "a metric and no budget" if budget is None else "a metric under a budget"
    return decide_from_samples(loss, samples, **_taken(chosen, f"samples with {kind}"))


def _taken(given: dict[str, Any], kind: str) -> dict[str, Any]:
    """Return the options that were given, all of which must apply to this kind of input."""
    for name in given:
        if name not in TAKEN[kind]:
            allowed = ", ".join(f"{option}=" for option in TAKEN[kind])
            raise ValueError(f"{name}= does not apply to {kind} (they take {allowed}); omit it")
    return given
