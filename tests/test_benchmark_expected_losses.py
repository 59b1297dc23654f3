"""The page of expected losses: what is allowed, and what a miss looks like."""

from benchmarks.expected_losses import CASES, Found, page


def found(expected, **changes):
    values = {
        "name": "made up",
        "loss": "zero_one",
        "fitted": 900,
        "tested": 100,
        "expected": expected,
        "occurred": 0.2,
        "error": 0.01,
        "seconds": 1.0,
    }
    return Found(**(values | changes))


def test_five_per_cent_and_two_standard_errors_are_allowed():
    assert found(0.2299).met
    assert not found(0.2301).met
    assert not found(0.1699).met
    assert found(0.2599, error=0.025).met


def test_the_page_states_where_it_was_missed():
    text = page([found(0.21), found(0.3)])
    assert "Met in 1 of 2 cases" in text
    assert "| +50.0 % | 15.0 % | **no** |" in text


def test_small_and_large_tables_label_sets_and_sequences_are_there():
    names = [(case.name, case.structured) for case in CASES]
    assert len(set(map(str, ((case.name, case.loss) for case in CASES)))) == len(CASES)
    assert {True, False} == {structured for _, structured in names}
    assert any("letters" in name for name, _ in names)
