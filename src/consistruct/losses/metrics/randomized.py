"""Leave to decide at random between rules, for metrics that can gain by it."""

from __future__ import annotations

from dataclasses import dataclass

from consistruct.losses.metrics.base import Kind, Metric, OfMetric

__all__ = ["Randomized"]


@dataclass(frozen=True, eq=False, repr=False)
class Randomized(OfMetric):
    """A concave metric whose rule may be drawn at random between a few cost matrices.

    Only where many rows have the same probabilities can that help: one rule has to treat them
    alike, and the recalls of the classes cannot be made equal. A mixture is used where it is better
    than the best single rule by at least 0.01 as the search counts.

    Parameters
    ----------
    metric : Metric
        Of kind "concave": the least recall, G-mean and other means of recalls. For linear metrics
        and ratios a single rule is as good as any mixture.

    Examples
    --------
    >>> from consistruct.losses.metrics import Randomized, RecallMean
    >>> Randomized(RecallMean(None)).value([[80, 5], [10, 5]])
    0.5
    """

    metric: Metric
    drawn = True

    def __post_init__(self) -> None:
        if not isinstance(self.metric, Metric):
            raise TypeError(f"metric must be a Metric, got {type(self.metric).__name__}")
        if self.metric.kind != "concave" or self.metric.drawn:
            raise ValueError(
                "decisions at random are for concave metrics such as min-recall or g-mean, got "
                f"{self.metric!r}; use it without randomized"
            )

    @property
    def kind(self) -> Kind:
        return self.metric.kind
