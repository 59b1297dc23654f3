"""Lines of code are counted as `make size` says."""

from tools.size import by_folder, code_lines

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


def test_every_file_is_counted(tmp_path):
    (tmp_path / "learning" / "models").mkdir(parents=True)
    (tmp_path / "learning" / "models" / "a.py").write_text("x = 1\ny = 2\n")
    (tmp_path / "learning" / "b.py").write_text("x = 1\n")
    (tmp_path / "c.py").write_text("x = 1\n")
    assert by_folder(tmp_path) == {"learning/models": 2, "learning": 1, ".": 1}
