"""The paper's sufficient conditions on (a, b), with the corrected hypothesis."""

from __future__ import annotations

import numpy as np
import pytest
import sympy

from paper.conditions import check_conditions, paper_examples


def verdicts(report):
    return {condition.statement.split(" (")[0]: condition for condition in report.conditions}


@pytest.mark.parametrize("l_max", [1.0, 2.5])
@pytest.mark.parametrize("name", ["quadratic", "exponential", "logistic"])
def test_the_examples_of_the_paper_are_proved_with_their_minimizers(name, l_max):
    a, b, paper = paper_examples(l_max)[name]
    report = check_conditions(a, b, l_max)
    assert report.verdict == "proved", str(report)
    ell = sympy.Symbol("ell", positive=True)
    expected = sympy.sympify(paper, locals={"ell": ell})
    for value in np.linspace(0.05, 0.95, 7) * l_max:
        at = {ell: float(value)}
        assert float(report.minimizer.subs(at)) == pytest.approx(float(expected.subs(at)))


def test_the_second_example_breaks_the_hypothesis_that_the_paper_states():
    """a itself is not convex: a'' = (e^f − e^−f)/Lmax < 0 for f < 0."""
    a, _, _ = paper_examples()["exponential"]
    f = sympy.Symbol("f", real=True)
    second = sympy.diff(sympy.sympify(a, locals={"f": f}), f, 2)
    assert float(second.subs(f, -1)) < 0


@pytest.mark.parametrize(
    ("a", "b", "statement"),
    [
        ("f", "-f**2", "b is convex"),
        ("f**3", "f**4", "Lmax·a + b is convex"),
        ("-f", "f**2", "a is strictly increasing"),
        ("f", "0", "b'/a' is strictly increasing"),
        ("f", "cos(f)", "b is convex"),
        ("f", "1/f", "a and b are differentiable"),
        ("f", "log(1 + exp(-f))/2", "c·a + b is bounded below with a unique minimizer"),
    ],
)
def test_refutations_come_with_a_witness_that_is_one(a, b, statement):
    report = check_conditions(a, b)
    assert report.verdict == "refuted"
    (found,) = [c for c in report.conditions if c.statement.startswith(statement)]
    assert found.verdict == "refuted"
    assert found.witness is not None
    f = sympy.Symbol("f", real=True)
    A, B = (sympy.sympify(text, locals={"f": f}) for text in (a, b))
    if statement == "b is convex":
        assert float(sympy.diff(B, f, 2).subs(f, found.witness["f"])) < 0
    elif statement == "Lmax·a + b is convex":
        assert float(sympy.diff(A + B, f, 2).subs(f, found.witness["f"])) < 0
    elif statement == "a is strictly increasing":
        assert float(sympy.diff(A, f).subs(f, found.witness["f"])) < 0
    elif statement.startswith("c·a"):
        values = [float((found.witness["c"] * A + B).subs(f, x)) for x in (-10, -100, -1000)]
        assert values[0] > values[1] > values[2]
        assert values[2] < -400


def test_a_minimizer_at_infinity_orders_nothing():
    # a, b convex, a and b'/a' = 2e^f increasing, c·a + b > 0 with its infimum at −∞ for every c
    report = check_conditions("exp(f)", "exp(2*f)")
    assert report.verdict == "refuted"
    (found,) = [c for c in report.conditions if c.verdict == "refuted"]
    assert found.reason == "the minimizer is infinite"
    assert found.witness is not None
    c = found.witness["c"]
    assert 0 < c < 1
    f = np.linspace(-30, 5, 200)
    assert (np.diff(c * np.exp(f) + np.exp(2 * f)) > 0).all()


@pytest.mark.parametrize(("a", "b"), [("f", "abs(f)"), ("f", "f**2/2 + sin(f)/2")])
def test_what_is_not_decided_is_stated_to_be_undecided(a, b):
    assert check_conditions(a, b).verdict == "undecided"


def test_other_consistent_pairs_are_proved():
    for a, b in (("f", "exp(-f)"), ("f", "f**4"), ("exp(f)", "exp(-f)")):
        assert check_conditions(a, b).verdict == "proved"


def test_the_text_names_every_condition():
    text = str(check_conditions("f", "-f**2"))
    assert "refuted" in text
    assert "witness" in text
    assert text.count("\n") == len(check_conditions("f", "-f**2").conditions)


def test_bad_arguments():
    with pytest.raises(ValueError, match="may contain only the symbol f"):
        check_conditions("f*g", "f**2")
    with pytest.raises(ValueError, match="l_max must be positive"):
        check_conditions("f", "f**2", 0)
    with pytest.raises(ValueError, match="must be expressions in f"):
        check_conditions("f +* 2", "f**2")
