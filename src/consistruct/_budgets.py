"""How much may be requested from outside: sizes in specs, in data files and in model files.

A loss spec, a data file and a model file can come from anyone, and a few bytes of each can name
more than any machine holds. The parsers and readers look here before they build anything; the
command line and the explorer share these numbers, and the explorer narrows some of them further
(`explorer.Limits`). Objects that a Python program builds itself are not bound by them.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

__all__ = ["FILES", "SPECS", "FileBudget", "SpecBudget", "irregular_file", "unreadable_table"]


@dataclass(frozen=True)
class SpecBudget:
    """Sizes that a loss or score spec may name.

    Each is what one analysis can hold: below it, arrays take about a gigabyte or less. Sizes that
    an estimator takes from data are bounded by the data.

    Attributes
    ----------
    characters : int
        Length of the text, which may be the name of a file.
    nesting : int
        Losses inside losses, as in ``partial-labels:infimum:…``.
    digits : int
        Of one number. Closed forms take classes without listing them, so no more is requested.
    blocks : int
        Blocks of classes.
    separable_width : int
        Parts times states: one score each.
    items : int
        Items of a ranking with one score each; some products are items × items.
    paired_items : int
        Items of a ranking or matching with one score for each pair.
    set_labels : int
        Labels of a set measure: one score for each label and set size.
    grades : int
        Relevance grades; gains grow like 2^grade.
    derived_size : int
        Words, tokens and types of structures made by a recursion: trees list words cubed edges.
    points : int
        Values of ε in one analysis.
    page_characters, page_integer : int
        Length of a spec on the explorer's page, and the largest integer in it.
    """

    characters: int = 4096
    nesting: int = 4
    digits: int = 100
    blocks: int = 100_000
    separable_width: int = 1_000_000
    items: int = 4096
    paired_items: int = 512
    set_labels: int = 1000
    grades: int = 100
    derived_size: int = 120
    points: int = 10_001
    page_characters: int = 200
    page_integer: int = 100_000


@dataclass(frozen=True)
class FileBudget:
    """What a file may make of itself in memory.

    Attributes
    ----------
    table_bytes : int
        Text of a cost matrix, a label tree, a template, a list of labels or a certificate.
    features : int
        Columns; of sparse files this is the largest index, a number that costs nothing to write.
    weight_bytes : int
        Memory of a linear fit per column and class: ridge keeps four arrays of float64 (measured
        with 2 and with 10 classes of 2^22 columns).
    inflated_bytes, inflated_ratio : int
        Compressed arrays may take so many bytes, or so many times the size of the file if that is
        more.
    model_bytes, model_ratio : int
        The same for everything that a model file rebuilds: strings, whose cells are all as wide as
        the widest, and arrays, once for each place that refers to them.
    model_labels : int
        A size of a fitted loss, such as its classes, may be so large, or as large as the file has
        bytes: weights of each class take more. Long queries need the number.
    tree_nodes : int
        Nodes of a label tree, twice the number of labels that can be listed.
    """

    table_bytes: int = 256 * 2**20
    features: int = 2**27
    weight_bytes: int = 32
    inflated_bytes: int = 2 * 2**30
    inflated_ratio: int = 32
    model_bytes: int = 64 * 2**20
    model_ratio: int = 64
    model_labels: int = 2**16
    tree_nodes: int = 8192

    def inflated(self, size: int) -> int:
        """Bytes that the arrays of a compressed file of `size` bytes may take."""
        return max(self.inflated_bytes, self.inflated_ratio * size)

    def model(self, size: int) -> int:
        """Bytes that everything in a model file of `size` bytes may take together."""
        return max(self.model_bytes, self.model_ratio * size)

    def model_sizes(self, size: int) -> int:
        """Labels, items or states that a fitted loss in a model file of `size` bytes may have."""
        return max(self.model_labels, size)


SPECS = SpecBudget()
FILES = FileBudget()


def unreadable_table(path: str | Path) -> str | None:
    """Why a small text file (costs, a tree, a template) will not be read; None if it may be."""
    kind = irregular_file(path)
    if kind is not None:
        return f"it is {kind}, pass a plain file"
    try:
        size = Path(path).stat().st_size
    except (OSError, ValueError):
        return None  # opening it reports more
    if size > FILES.table_bytes:
        return f"it has {size} bytes, and at most {FILES.table_bytes} are read"
    return None


def irregular_file(path: str | Path) -> str | None:
    """What a path is if it is there and is no plain file; None otherwise.

    Devices and pipes have no size that could be looked at before they are read.

    >>> irregular_file("/dev/zero"), irregular_file("no such file")
    ('a device', None)
    """
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116 - a name may be bytes or a descriptor
    except (OSError, ValueError):
        return None
    if stat.S_ISREG(mode):
        return None
    if stat.S_ISDIR(mode):
        return "a folder"
    return "a device" if stat.S_ISCHR(mode) or stat.S_ISBLK(mode) else "a pipe or socket"
