"""The front door: from what is known of the true labels to decisions of least expected loss."""

from __future__ import annotations

from typing import Any

from consistruct.decisions.from_probabilities import decide_from_probabilities
from consistruct.decisions.from_samples import decide_from_samples
from consistruct.decisions.result import Decisions
from consistruct.decisions.uncertain import CostRanges, decide_from_ranges

__all__ = ["decide"]


def decide(
    loss: Any, probabilities: Any = None, *, samples: Any = None, **options: Any
) -> Decisions:
    """Return the decisions of least expected loss, argmin_c E[L(c, y)], from any model's output.

        E[L(c, y) | x] = E[offset(y) | x] + ⟨embed(c), E[target(y) | x]⟩

    so that of x a decision needs an expected target only, which probabilities tell.

    Parameters
    ----------
    loss : Loss, spec such as "abstain::0.2", table of costs, or CostRanges
        A spec may leave out sizes, which the probabilities tell. For ranges of costs the decisions
        are those of least worst-case regret; of the options below they take `classes`.
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
        Draws of the true label of each example in place of probabilities, of a model that has none
        or for a metric that is only a function. With them go `weights`, `candidates`, `budget`,
        `confidence`, `rng` and `loss_range`, see `decide_from_samples`; the rest is for
        probabilities.
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

    Returns
    -------
    decisions : Decisions
        `labels`, `expected_loss`, `runner_up`, `gap`, `notes` and `to_frame()`.

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

    References
    ----------
    Elkan (2001), The foundations of cost-sensitive learning; Guo and others (2017), On calibration
    of modern neural networks.
    """
    if (probabilities is None) == (samples is None):
        given = "neither" if probabilities is None else "both"
        raise TypeError(f"decide takes probabilities or samples, got {given}; pass one of them")
    if isinstance(loss, CostRanges):
        if samples is not None:
            raise ValueError("ranges of costs take probabilities, got samples; average them first")
        return decide_from_ranges(loss, probabilities, **options)
    if samples is None:
        return decide_from_probabilities(loss, probabilities, **options)
    return decide_from_samples(loss, samples, **options)
