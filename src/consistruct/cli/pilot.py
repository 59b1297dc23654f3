"""A pilot data set for ``consistruct plan``: what to refit, and on what."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from consistruct.cli.choices import choose_model, estimator_for, query_arguments, read_table
from consistruct.cli.progress import progress_bar
from consistruct.exceptions import ConsistructError

if TYPE_CHECKING:  # imported inside the functions: see cli/commands/learning.py
    from consistruct.guarantees.complexity import SampleComplexity
    from consistruct.guarantees.forecasts.forecast import Forecast

__all__ = ["Pilot", "forecast_of", "read_pilot", "worst_case_of"]


@dataclass(frozen=True)
class Pilot:
    """An unfitted estimator and its data."""

    estimator: Any
    X: Any
    y: Any
    groups: Any


def read_pilot(
    data: Path,
    *,
    loss: str,
    rows: str | None,
    target: list[str] | None,
    template: Path | None,
    format: str | None,  # noqa: A002
    learner: str,
    settings: list[str] | None,
    seed: int,
    jobs: int | None,
    **table: Any,
) -> Pilot:
    """Read as `fit` reads, a table with the options `table`, and choose as `fit` chooses."""
    from consistruct.cli import sequences
    from consistruct.learning import StructuredPredictor

    if data.is_dir():
        raise ValueError(
            f"a pilot data set is a single file, but {data} is a folder; choose one file in it"
        )
    if sequences.is_column_file(data, format):
        if loss != "hamming":
            raise ValueError(f"for sequences of tags use --loss hamming, got {loss!r}")
        unused = [name for name, given in table.items() if given]
        if unused:
            option = unused[0].replace("_", "-")
            raise ValueError(f"--{option} does not apply to a column file; leave it out")
        chain = choose_model("chain" if learner == "auto" else learner, settings, None, None)
        X, y = sequences.read_columns(data, template, target)
        return Pilot(StructuredPredictor("hamming", chain, random_state=seed), X, y, None)
    if template is not None:
        raise ValueError("--template applies only to column files (.conll, or --format conll)")
    examples = read_table(data, format=format, target=target, **table)
    estimator = estimator_for(
        examples,
        loss=loss,
        rows=rows,
        learner=learner,
        settings=settings,
        random_state=seed,
        n_jobs=jobs,
    )
    queries = query_arguments(estimator, examples)
    return Pilot(estimator, examples.X, examples.y, queries.get("groups"))


def forecast_of(pilot: Pilot, confidence: float, seed: int) -> Forecast:
    """The forecast, with a bar while it refits."""
    from consistruct.guarantees import forecast

    with progress_bar("refits for the forecast") as step:
        return forecast(
            pilot.estimator,
            pilot.X,
            pilot.y,
            groups=pilot.groups,
            confidence=confidence,
            random_state=seed,
            progress=step,
        )


def worst_case_of(
    pilot: Pilot, *, eps: float | None, scores: str, radius: float, q_bound: float
) -> SampleComplexity | str:
    """The guarantee for the loss with the sizes of these data, or why there is none.

    Without `eps`: a tenth of what the best constant prediction loses on these data.
    """
    from sklearn.base import clone

    from consistruct.guarantees import sample_complexity
    from consistruct.guarantees.constants import default_accuracy
    from consistruct.losses.metrics import requested_metric
    from consistruct.structures.registry import parse_scores

    if requested_metric(pilot.estimator.loss) is not None:
        return "a metric that is not an average over examples has none"
    _, examples = clone(pilot.estimator)._training(pilot.X, pilot.y, groups=pilot.groups)
    if examples.kind.name != "rows":
        return f"{examples.kind.loss!r} is a family of losses; name a size: consistruct plan SPEC"
    loss, reason = examples.kind.loss, "requested"
    try:
        if eps is None:
            chosen = default_accuracy(loss, true=examples.codes)
            eps, reason = chosen.eps, chosen.reason
        family = parse_scores(scores, loss)
        found = sample_complexity(loss, family, eps=eps, radius=radius, q_bound=q_bound)
    except ConsistructError as error:
        return str(error)
    return replace(found, eps_reason=reason)
