"""Numbers in files are read to the last bit, and text that is no number is never taken for one."""

from __future__ import annotations

import math
import re

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from consistruct._validation import read_integer, read_number
from consistruct.learning import read_data
from consistruct.losses.costs.files import parse_cost_csv

FLOATS = st.floats(allow_nan=False, allow_infinity=False)
# what a number looks like, by a grammar of its own: ASCII digits, one point, one exponent
GRAMMAR = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?", re.ASCII)


@given(st.text(alphabet="0123456789+-.eE_ xnaif१½,", max_size=12))
def test_only_numbers_are_numbers(text):
    words = text.strip()
    try:
        value = read_number(text)
    except ValueError:
        assert not GRAMMAR.fullmatch(words) or math.isinf(float(words)), text
        return
    special = words.lower().lstrip("+-") in ("nan", "inf", "infinity")
    assert special or (GRAMMAR.fullmatch(words) and value == float(words)), text


@given(st.text(alphabet="0123456789+-._ x१", max_size=12))
def test_only_whole_numbers_are_integers(text):
    try:
        value = read_integer(text)
    except ValueError:
        assert not re.fullmatch(r"[+-]?[0-9]+", text.strip(), re.ASCII), text
        return
    assert value == int(text)
    assert re.fullmatch(r"[+-]?[0-9]+", text.strip(), re.ASCII)


@settings(max_examples=60)
@given(st.lists(st.tuples(FLOATS, FLOATS), min_size=2, max_size=6))
def test_tables_are_read_to_the_last_bit(tmp_path_factory, rows):
    folder = tmp_path_factory.mktemp("numbers")
    lines = ["a,b,y", *(f"{u!r},{v!r},c{place}" for place, (u, v) in enumerate(rows))]
    (folder / "t.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    found = read_data(folder / "t.csv", target="y")
    np.testing.assert_array_equal(found.X, np.array(rows))
    pairs = "".join(f"{place} 1:{u!r} 2:{v!r}\n" for place, (u, v) in enumerate(rows))
    (folder / "t.svm").write_text(pairs, encoding="utf-8")
    np.testing.assert_array_equal(read_data(folder / "t.svm").X.toarray(), np.array(rows))


@settings(max_examples=60)
@given(st.lists(st.floats(0.0, 1e150), min_size=4, max_size=4))
def test_cost_matrices_are_read_to_the_last_bit(costs):
    a, b, c, d = costs
    found = parse_cost_csv(f"{a!r},{b!r}\n{c!r},{d!r}\n", rows="pred")
    assert found.M.tolist() == [[a, b], [c, d]]
