"""Independent labels: how many of them are on, together with each one."""

from __future__ import annotations

import numpy as np

from consistruct.protocols import FloatArray

__all__ = ["joint_with_count"]


def joint_with_count(p: FloatArray) -> FloatArray:
    """Return P(y_t = 1, |y| = s) of independent labels, (n, T) -> (n, T, T) for s = 1, …, T.

    The number of other labels that are on is Poisson binomial. Dividing label t out of the count
    of all labels loses all digits near p = 1, so the count of the others is built by halves: what
    lies outside of a block is known, and each half of it adds the other one. O(T² log T) per row
    and no subtraction.

    Examples
    --------
    >>> joint_with_count(np.array([[0.5, 0.2]]))
    array([[[0.4, 0.1],
            [0.1, 0.1]]])
    """
    n, T = p.shape
    # joint[:, t, s − 1] = p_t · P(s − 1 of the other labels are on)
    joint = np.empty((n, T, T))

    def fill(first: int, last: int, outside: FloatArray) -> None:
        """Write the block of labels, given the count of all labels outside of it, (n, s)."""
        if last - first == 1:
            # a block of one label: outside of it are all others, T − 1 of them, so s has T values
            joint[:, first] = outside * p[:, first, None]
            return
        middle = (first + last) // 2
        fill(first, middle, _with_labels(outside, p[:, middle:last]))
        fill(middle, last, _with_labels(outside, p[:, first:middle]))

    # outside of the block of all labels there is none: their count is 0 with probability 1
    fill(0, T, np.ones((n, 1)))
    return joint


def _with_labels(counts: FloatArray, p: FloatArray) -> FloatArray:
    """Return the distribution of the count with further independent labels, (n, m + labels)."""
    n, m = counts.shape
    found = np.zeros((n, m + p.shape[1]))
    found[:, :m] = counts
    for label in range(p.shape[1]):
        on = p[:, label, None]
        # the right-hand side is a copy: the shifted counts are those before this label
        found[:, 1:] = found[:, 1:] * (1.0 - on) + found[:, :-1] * on
        found[:, :1] *= 1.0 - on
    return found
