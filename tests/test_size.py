"""Lines of code are counted as `make size` says."""

from tools.size import SINCE, SOURCE, by_file, code_lines, groups, purpose

TEXT = '''"""A module.

Two lines of words.
"""

# a comment
x = 1  # with a comment


def f(a):
    """Words."""
    text = """a string
    of two lines that is no docstring"""
    return (
        a,
        text,
    )
'''


def test_words_and_blank_lines_do_not_count():
    # x = 1; def; two lines of the string; return ( a, text, ): 4
    assert code_lines(TEXT) == 1 + 1 + 2 + 4
    assert code_lines("") == 0
    assert code_lines("# only words\n\n") == 0


def test_every_file_is_in_one_group(tmp_path):
    (tmp_path / "learning" / "models").mkdir(parents=True)
    (tmp_path / "learning" / "models" / "a.py").write_text("x = 1\ny = 2\n")
    (tmp_path / "learning" / "b.py").write_text("x = 1\n")
    (tmp_path / "c.py").write_text("x = 1\n")
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "d.py").write_text("x = 1\n")
    first, since = groups(tmp_path)
    assert first == {"learning/models": 2, "learning": 1, ".": 1}
    assert since == {"PyTorch and GPUs": 1}


def test_the_groups_are_the_package():
    first, since = groups()
    assert first.total() + since.total() == sum(by_file().values())
    assert set(since) == set(SINCE)


def test_what_is_named_as_new_exists_and_is_named_once():
    places = [place for group in SINCE.values() for place in group]
    assert [place for place in places if not (SOURCE / place).exists()] == []
    assert len(set(places)) == len(places)
    # a file in a folder that is named is not named again
    assert [place for place in places if "/" in place and purpose(place.rpartition("/")[0])] == []
