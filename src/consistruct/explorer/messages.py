"""What the page states where something cannot be computed: in the words of its own menus.

The package speaks to people who write Python or commands. Here its messages are written again for
somebody who sees a form; what needs no other words passes as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable

__all__ = ["junk_message", "menu_words", "page_message"]

MESSAGE_CHARACTERS = 400
Match = re.Match[str]

_WORDINGS: tuple[tuple[str, str | Callable[[Match], str]], ...] = (
    (
        r"(separable|chain) scores need labels made of parts",
        lambda m: (
            f"“{m[1]}” in the menu “Scores” is for losses over parts, such as “Hamming: share of "
            f"wrong parts”; choose “own” or “full” for this one"
        ),
    ),
    (
        r"sortable scores are an alternative",
        "“sortable” in the menu “Scores” works only with “Mean average precision”; choose “own”",
    ),
    (
        r"scores are over (\d+) predictions, the loss over (\d+)",
        lambda m: (
            f"the group sizes of the scores add up to {m[1]}, but the loss has {m[2]} predictions; "
            f"change “Group sizes”, or choose “own” in the menu “Scores”"
        ),
    ),
    (
        r"unknown scores 'blocks:|block sizes must be written",
        "write the group sizes of the scores as 3,5,2 or as 4x25 (four groups of 25)",
    ),
    (
        r"the surrogate '([\w-]+)' with argmax decoding needs the capability",
        lambda m: (
            f"the surrogate “{m[1]}” needs true labels that are also predictions, which is not the "
            "case for this loss; choose “quadratic” in the menu “Surrogate”, or “log” or "
            "“sparsemax” there and “Bayes” in the menu “Decoding”"
        ),
    ),
    (
        r"scores must be None or 'full' with Bayes decoding",
        "“Bayes” in the menu “Decoding” models the true label, not the predictions; choose “own” "
        "or "
        "“full” in the menu “Scores”",
    ),
    (
        r"decoding must be 'argmax'",
        "“Bayes” in the menu “Decoding” works only with the surrogates “log” and “sparsemax”",
    ),
    (
        r"at must be at most the largest excess risk, (\S+), got (\S+)",
        lambda m: f"ε must be at most {m[1]}, the largest excess risk of this loss, got {m[2]}",
    ),
    (
        r"and does not say whether its rows are",
        "the costs are not symmetric in their names and the file does not say whether its rows are "
        "predictions or true labels; choose one in the menu “Its rows are”",
    ),
    (
        r"unknown loss '([^']*)' in the spec '[^']*'(; did you mean [\w-]+\?)?",
        lambda m: (
            f"there is no loss {m[1]!r}{m[2] or ''}; choose one in the menu “What a mistake costs”"
        ),
    ),
    (
        r"([\w-]+) is a metric of the whole data set",
        lambda m: (
            f"{m[1]} is a metric of the whole data set; choose “A metric, at a confusion” in the "
            "menu “What a mistake costs” and provide the confusion matrix"
        ),
    ),
    (
        r"the spec of ([\w-]+) lacks the ([\w ]+);",
        lambda m: f"the field “{m[2]}” of {m[1]} is empty; fill it in",
    ),
    (
        r"surrogate must be one of",
        "this surrogate is not known; choose one in the menu “Surrogate”",
    ),
    (
        r"needs finitely many true labels",
        "costs per example cannot be analyzed in advance: the analysis needs finitely many true "
        "labels",
    ),
    (
        r"(?:FScore|JaccardScore|Matthews|Kappa|RecallMean|Randomized|Constrained|\w+Score)\(.*\) "
        r"is for (\d+) classes, got a confusion of (\d+)",
        lambda m: f"this metric is for {m[1]} classes, but the confusion matrix has {m[2]}",
    ),
)


def page_message(error: object) -> str:
    """One line for the page, cut where it is long.

    >>> page_message(ValueError("at must be at most the largest excess risk, 1, got 7"))
    'ε must be at most 1, the largest excess risk of this loss, got 7'
    >>> page_message(ValueError("first\\n second"))
    'first second'
    """
    text = " ".join(str(error).split())
    for pattern, wording in _WORDINGS:
        found = re.search(pattern, text)
        if found is not None:
            text = wording if isinstance(wording, str) else wording(found)
            break
    return text if len(text) <= MESSAGE_CHARACTERS else f"{text[: MESSAGE_CHARACTERS - 1]}…"


_OPTIONS = (
    (r"--scores (\w+)", r"“\1” in the menu “Scores”"),
    (r"--surrogate (\w+)", r"“\1” in the menu “Surrogate”"),
    (r"use --at to choose another", "use “ε” on the left to choose another"),
)


def menu_words(text: str) -> str:
    """A sentence of a report, with options of the command line as choices of the menus.

    >>> menu_words("Use the loss's own scores (--scores own): they are always consistent.")
    "Use the loss's own scores (“own” in the menu “Scores”): they are always consistent."
    """
    for pattern, wording in _OPTIONS:
        text = re.sub(pattern, wording, text)
    return text


# --- files that are no tables of costs ---

_MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"PK\x03\x04", "a spreadsheet or ZIP file; save the sheet with the numbers as CSV (UTF-8)"),
    (b"\xd0\xcf\x11\xe0", "an old Excel or Word file; save the sheet with the numbers as CSV"),
    (b"%PDF", "a PDF; copy the numbers into a sheet and save it as CSV"),
    (b"\x89PNG", "a picture; type the numbers into a sheet and save it as CSV"),
    (b"\xff\xd8\xff", "a picture; type the numbers into a sheet and save it as CSV"),
    (b"GIF8", "a picture; type the numbers into a sheet and save it as CSV"),
    (b"PAR1", "a Parquet file; the explorer expects the small table of costs as CSV"),
    (b"\x1f\x8b", "compressed; unpack it first"),
)
WANTED = "a table of numbers with one row and one column for each label, separated by commas"


def junk_message(content: bytes) -> str | None:
    """Why a file can be no table of costs, by its first bytes; None if it may be one.

    >>> junk_message(b"%PDF-1.7 ...")
    'the file is a PDF; copy the numbers into a sheet and save it as CSV'
    >>> junk_message(b"0,1\\n1,0\\n") is None
    True
    """
    for magic, what in _MAGIC:
        if content.startswith(magic):
            return f"the file is {what}"
    if b"\0" in content:  # no text at all
        return None
    start = content.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    if start == b"<":
        return f"the file is a web page or XML; provide {WANTED}"
    if start in (b"{", b"["):
        return f"the file is JSON; provide {WANTED}"
    first = next((line for line in content.splitlines() if line.strip()), b"")
    if first and b"," not in first and not _is_number(first):
        for mark, name in ((b";", "semicolons"), (b"\t", "tabs")):
            if mark in first:
                return f"the cells of the file are separated by {name}; save it with commas"
        return f"the file is not a table: its first line has one cell; provide {WANTED}"
    return None


def _is_number(text: bytes) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
