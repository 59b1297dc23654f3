"""The page from the numbers: targets first, then every table."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.measure import table

OURS = "consistruct"
RECIPES = ("class weights", "prior shift")
HEAD = """\
# Non-decomposable metrics: one search against the usual recipes

Made by `python -m benchmarks.complex_metrics --write`; do not edit. The numbers are in [complex_metrics.json](complex_metrics.json).

Every recipe decides from the same probabilities: those of one base model on out-of-fold training rows (five folds) and on test rows. "Class weights": the same model fitted with
`class_weight="balanced"`. "Prior shift": probabilities over class shares to a power, the best of 16 on out-of-fold rows. "Tuned threshold": the best of 200 cuts on out-of-fold rows for two classes,
as prior shift for more. "xcolumns": version 0.0.2, its Frank–Wolfe for macro-F1 without a budget, from both of its starts, the better one on out-of-fold rows. "Cut points": Nelder–Mead on the cuts of the expected grade, six starts. Ours is what `TaskLossClassifier(loss=…)` does after the model's fit, without settings.
Base models: logistic regression, extra trees (300 trees, leaves of 2), boosting (80 rounds of rate .06, 15 leaves).
"""
COUNTS = """\
Counts that were run: ten tables (adult, bank marketing and credit cut to 6,000 rows at random), three models, five folds, each row tested once; of label sets yeast, scene and bibtex on their published split
(the seven boosting fits of the 159 labels of bibtex took 2.4 hours of a processor, on a machine of 16 cores with scikit-learn 1.9.1; its extra trees have 100 trees); constraints on 50 random splits, a third for the test, by logistic regression.
"""


def page(known: dict[str, Any]) -> str:
    """Markdown of the sections that were run."""
    found = {name: entry["found"] for name, entry in known.items()}
    machines = sorted({entry["machine"] for entry in known.values()})
    parts = [HEAD, f"Machine: {'; '.join(machines)}.\n", COUNTS, _targets(found)]
    if "tables" in found:
        parts += [_recipes(name, rows) for name, rows in found["tables"].items()]
    if "grades" in found:
        parts.append(_recipes("quadratic weighted kappa of grades", found["grades"]))
    if "labels" in found:
        parts.append(_recipes("macro-F1 of label sets", found["labels"]))
    if "constraints" in found:
        parts.append(_constraints(found["constraints"], found.get("others", {})))
    if "gaps" in found:
        parts.append(_gaps(found["gaps"]))
    if "speed" in found:
        rows = [
            (name, f"{times['recalibration']:.2f}", f"{times['search']:.2f}")
            for name, times in found["speed"].items()
        ]
        parts.append(
            "## Processor seconds\n\n100,000 rows of ten classes; 2,000 rows of 4,000 labels.\n\n"
            + table(("metric", "recalibration", "search"), rows)
        )
    if "beyond" in found:
        parts.append(_beyond(found["beyond"]))
    return "\n".join(part.rstrip() + "\n" for part in parts)


def _beyond(found: dict[str, Any]) -> str:
    fits = found["fit"]
    lines = [
        (
            name,
            f"{1000 * found['recalibration'][name]:.0f}",
            f"{1000 * seconds:.0f}",
            *(f"{100 * seconds / fit:.1f} %" for fit in fits.values()),
            f"{1000 * found['whole'][name]:.0f}",
        )
        for name, seconds in found["search"].items()
    ]
    times = ", ".join(f"{model} {seconds:.1f} s" for model, seconds in fits.items())
    columns = ("recalibration", "search", *(f"of {model}" for model in fits), "all of it")
    return (
        "## The search beside a fit\n\n300,000 rows, 20 features, ten classes; processor "
        f"milliseconds. One fit to all rows: {times}; out-of-fold estimates take five more. Extra trees were not timed. "
        "The search takes a sample of 50,000 rows by class (160,000 for the least recall), which the recalibration draws. "
        "All of it: what `fit` does once it has out-of-fold estimates, which is the search for all rows, five more for the estimate on "
        "rows that they did not see, and the bound of concave metrics.\n\n"
        + table(("metric", *columns), lines)
    )


def mean(rows: dict[str, dict[str, float]], recipe: str) -> float:
    """Of a recipe over the tables."""
    return float(np.mean([row[recipe] for row in rows.values()]))


def _recipes(name: str, rows: dict[str, dict[str, float]]) -> str:
    recipes = list(next(iter(rows.values())))
    lines = [(place, *(f"{row[recipe]:.1f}" for recipe in recipes)) for place, row in rows.items()]
    lines.append(("**mean**", *(f"**{mean(rows, recipe):.1f}**" for recipe in recipes)))
    return (
        f"## {name[0].upper()}{name[1:]}\n\nIn points, means over models and splits.\n\n"
        + table(("data", *recipes), lines)
    )


def _constraints(found: dict[str, Any], others: dict[str, Any]) -> str:
    lines = [
        (
            name,
            recipe,
            f"{100 * row['missed']:.0f} %",
            f"{row['recall']:.3f}",
            f"{row['precision']:.3f}",
            f"{100 * others[name][recipe]['missed']:.1f} %" if others else "–",
            f"{others[name][recipe]['precision']:.4f}" if others else "–",
        )
        for name, by in found.items()
        for recipe, row in by.items()
    ]
    return (
        "## Precision at recall 0.9\n\nSplits whose test part has a recall below 0.9; mean "
        "recall and precision on test parts. Exact: the highest threshold whose Clopper–Pearson bound of the "
        "recall on out-of-fold rows is at least 0.9. Others: 200 more splits with another seed, which tell the luck of fifty from what a recipe does.\n\n"
        + table(
            (
                "data",
                "threshold",
                "missed",
                "recall",
                "precision",
                "missed, others",
                "precision, others",
            ),
            lines,
        )
        + _of_others(others)
    )


def _of_others(others: dict[str, Any]) -> str:
    if not others:
        return ""
    missed = [row[OURS]["missed"] for row in others.values()]
    each = {
        r: float(np.mean([row[r]["precision"] for row in others.values()]))
        for r in (OURS, "exact 95 % interval")
    }
    precision = _paired(others, *each.values())[0]
    return (
        f"\n\nOver the others the recall is missed in {100 * np.mean(missed):.1f} % of the splits, at worst "
        f"{100 * max(missed):.1f} %; precision {precision} (exact 95 % interval).\n"
    )


def _paired(by: dict[str, Any], us: float, exact: float) -> tuple[str, bool | str]:
    """Both precisions and the interval of their difference; a tie where it holds 0."""
    measured = f"{us:.4f} against {exact:.4f}"
    each = [np.array(row[OURS].get("gained", ())) for row in by.values()]
    if not all(len(one) > 1 for one in each):
        return measured, us >= exact
    gain = float(np.mean([one.mean() for one in each]))
    error = 1.96 * float(np.sqrt(sum(one.var(ddof=1) / len(one) for one in each))) / len(each)
    met: bool | str = "tie" if abs(gain) <= error else gain > 0
    return f"{measured}; paired difference {gain:+.5f} ± {error:.5f}", met


def _gaps(found: dict[str, Any]) -> str:
    columns = ("single", "where", "one row", "drawn")
    largest = [
        (name, *(f"{row[column]:.4f}" if column != "where" else row[column] or "–" for column in columns))
        for name, row in found["largest"].items()
    ]  # fmt: skip
    drawn = [
        (name, row["rules"], *(f"{a:.3f} → {b:.3f}" for a, b in (row["gap"], row["left out"], row["test"])))
        for name, row in found["drawn"].items()
    ]  # fmt: skip
    text = (
        "## Optimality gaps of concave metrics\n\nLargest over ten tables and three models, first "
        "split, on out-of-fold rows. Drawn: with `randomized:`, which decides at random between a few rules "
        "where that is better by 0.01 or more than the best single rule found. One row: by how much a "
        "recall moves with the label of one row of the rarest class there; a rule that draws nothing can "
        "only come nearer than that by moving rows of other classes.\n\n"
        + table(("metric", "one rule", "where", "one row", "drawn"), largest)
    )
    if not drawn:
        return text + "\n\nNowhere was a mixture better than the single rule by 0.01.\n"
    return (
        text
        + "\n\nWhere rules were drawn, from the single rule to the mixture (mean over draws): the gap, "
        "the metric on out-of-fold rows by rules found on others, and on test rows.\n\n"
        + table(("data, model, metric", "rules", "gap", "left out", "test"), drawn)
    )


def _targets(found: dict[str, Any]) -> str:
    lines: list[tuple[str, str, str]] = []

    def target(what: str, measured: str, met: bool | str) -> None:
        word = met if isinstance(met, str) else "yes" if met else "**no**"
        lines.append((what, measured, word))

    if "tables" in found:
        by = found["tables"]
        best = {name: max(mean(by[name], recipe) for recipe in RECIPES) for name in by}
        ours = {name: mean(by[name], OURS) for name in by}
        plain = {name: mean(by[name], "likeliest class") for name in by}
        for name, gain, over in (("macro-f1", 2.5, 0.0), ("g-mean", 8.0, 1.0)):
            measured = f"{ours[name]:.2f} against {plain[name]:.2f}"
            met = ours[name] >= plain[name] + gain
            target(f"{name}: likeliest class + {gain:g}", measured, met)
            measured = f"{ours[name]:.2f} against {best[name]:.2f}"
            what = f"{name}: the better of class weights and prior shift + {over:g}"
            target(what, measured, ours[name] >= best[name] + over)
        name = "balanced-accuracy"
        measured = f"{ours[name]:.2f} against {best[name]:.2f}"
        target(f"{name}: within 0.5 of the best recipe", measured, ours[name] >= best[name] - 0.5)
        measured = f"{ours['mcc']:.2f} against {plain['mcc']:.2f}"
        target("mcc: at least the likeliest class", measured, ours["mcc"] >= plain["mcc"])
    if "grades" in found:
        rows = found["grades"]
        us, square, cuts = (mean(rows, r) for r in (OURS, "expected squared error", "cut points"))
        target(
            "qwk: expected squared error + 2", f"{us:.2f} against {square:.2f}", us >= square + 2
        )
        target("qwk: within 0.5 of cut points", f"{us:.2f} against {cuts:.2f}", us >= cuts - 0.5)
    if "labels" in found:
        us, tuned = (mean(found["labels"], r) for r in (OURS, "tuned thresholds"))
        what = "macro-F1 of label sets: tuned thresholds − 0.3"
        target(what, f"{us:.2f} against {tuned:.2f}", us >= tuned - 0.3)
    if "constraints" in found:
        by = found["constraints"]
        missed = np.mean([row[OURS]["missed"] for row in by.values()])
        worst = max(row[OURS]["missed"] for row in by.values())
        target(
            "recall missed on test in at most 10 % of splits",
            f"{100 * missed:.1f} %, at worst {100 * worst:.0f} %",
            bool(missed <= 0.1),
        )
        us = float(np.mean([row[OURS]["precision"] for row in by.values()]))
        exact = float(np.mean([row["exact 95 % interval"]["precision"] for row in by.values()]))
        target(
            "precision at least that of thresholds by the exact 95 % interval",
            *_paired(by, us, exact),
        )
    if "gaps" in found:
        largest = found["gaps"]["largest"].values()
        for what, which in (("one rule", "single"), ("drawn where that wins", "drawn")):
            worst = max(row[which] for row in largest)
            text = f"optimality gap of concave metrics at most 0.01, {what}"
            target(text, f"{worst:.4f}", worst <= 0.01)
    if "speed" in found:
        longest = max(
            times["search"] for name, times in found["speed"].items() if name != "4000 labels"
        )
        target(
            "search at most 2 s for 100,000 rows of ten classes", f"{longest:.2f} s", longest <= 2
        )
    if "beyond" in found:
        name, slowest = max(found["beyond"]["search"].items(), key=lambda pair: pair[1])
        for model, seconds in found["beyond"]["fit"].items():
            target(
                f"search on 300,000 rows of ten classes at most 5 % of one fit: {model}",
                f"{slowest:.2f} s ({name}) beside {seconds:.1f} s",
                slowest <= 0.05 * seconds,
            )
    count = sum(line[2] == "yes" for line in lines)
    ties = sum(line[2] == "tie" for line in lines)
    tied = f", {ties} tied" if ties else ""
    heading = f"## Targets: {count} of {len(lines)} met{tied}\n\n"
    return heading + table(("target (mean over sets)", "measured", "met"), lines)
