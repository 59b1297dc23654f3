"""What is made of the features of a token: its neighbors' features, random Fourier features."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from consistruct._compile import compiled
from consistruct._validation import check_count, is_sparse
from consistruct.learning.encoding.tokens import PackedTokens
from consistruct.learning.models.features.approximations import RandomFeatures
from consistruct.learning.models.features.feature_maps import (
    Kernel,
    median_bandwidth,
    squared_norms,
)
from consistruct.protocols import IntArray

__all__ = ["TokenMap", "window_features"]


@compiled
def _window_dense(
    features: NDArray[Any],  # (N, kept + d)
    offsets: IntArray,  # (n + 1,)
    radius: int,
    kept: int,
    out: NDArray[Any],  # (N, kept + (2·radius + 1)·d), zero on entry
) -> None:
    d = features.shape[1] - kept
    for row in range(len(offsets) - 1):
        for t in range(offsets[row], offsets[row + 1]):
            for j in range(kept):
                out[t, j] = features[t, j]
            for shift in range(-radius, radius + 1):
                if offsets[row] <= t + shift < offsets[row + 1]:
                    first = kept + (shift + radius) * d
                    for j in range(d):
                        out[t, first + j] = features[t + shift, kept + j]


def window_features(features: Any, offsets: IntArray, radius: int, kept: int = 0) -> Any:
    """Features of the tokens t − radius … t + radius side by side; zeros beyond the ends.

    The first `kept` columns (of dense features) are taken from token t alone.

    >>> window_features(np.array([[1.0], [2.0], [3.0]]), np.array([0, 2, 3]), 1).tolist()
    [[0.0, 1.0, 2.0], [1.0, 2.0, 0.0], [0.0, 3.0, 0.0]]
    """
    if radius == 0:
        return features
    n_tokens, d = features.shape
    if not is_sparse(features):
        width = kept + (2 * radius + 1) * (d - kept)
        out = np.zeros((n_tokens, width), dtype=features.dtype)
        _window_dense(features, offsets, radius, kept, out)
        return out
    rows = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    blank: Any = sp.csr_array(np.zeros((1, d), dtype=features.dtype))
    padded = sp.vstack([features, blank], format="csr")
    blocks = []
    for shift in range(-radius, radius + 1):
        source = np.arange(n_tokens) + shift
        inside = (source >= offsets[rows]) & (source < offsets[rows + 1])
        blocks.append(padded[np.where(inside, source, n_tokens)])
    return sp.csr_array(sp.hstack(blocks, format="csr"))


class TokenMap:
    """φ of a token: its features with its neighbors', or random Fourier features beside them.

    Without random features: x_{t−r}, …, x_{t+r} side by side (r = `window`). With m of them:
    √(2/m) cos(ωᵀx_t + b), and if r > 0 also the features of the window as they are, each token
    scaled to a mean square norm of `WINDOW_SHARE`². The window stands outside the kernel: a kernel
    on the concatenated window needs far more frequencies (on folds 2-9 of the OCR letters 10 %
    error against 4 % with equally many).

    Parameters
    ----------
    n_features : int
        Features of one token as given.
    window : int
        Neighbors on each side whose features are added.
    random : RandomFeatures or None
        Of one token; None keeps the features as they are.
    window_scale : float
        Factor of the features in the window beside random features.
    """

    def __init__(
        self,
        n_features: int,
        window: int = 0,
        random: RandomFeatures | None = None,
        window_scale: float = 1.0,
    ) -> None:
        self.n_features = n_features
        self.window = check_count(window, "window", minimum=0)
        self.random = random
        self.window_scale = window_scale

    @classmethod
    def fit(
        cls,
        tokens: PackedTokens,
        *,
        window: int,
        n_components: int | None,
        bandwidth: float | str,
        rng: np.random.Generator,
    ) -> TokenMap:
        """Draw the frequencies of `n_components` random features (None: keep the features).

        Bandwidth "median" is a fixed share of the median distance between tokens.
        """
        if n_components is None:
            return cls(tokens.n_features, window)
        if tokens.is_sparse:
            raise ValueError(
                "random features need dense token features, got sparse ones; "
                "use features='linear' or reduce the features first (TruncatedSVD)"
            )
        some = tokens.features[rng.integers(tokens.n_tokens, size=min(tokens.n_tokens, 1000))]
        some = np.unique(some.astype(np.float64), axis=0)
        if isinstance(bandwidth, str):
            if bandwidth != "median":
                raise ValueError(f"bandwidth must be 'median' or a number, got {bandwidth!r}")
            bandwidth = MEDIAN_SHARE * median_bandwidth(some, "rbf")
        random = RandomFeatures(
            Kernel("rbf", bandwidth), tokens.n_features, n_components, rng, dtype=np.float32
        )
        square_norm = float(squared_norms(some).mean())
        scale = WINDOW_SHARE / np.sqrt(square_norm) if square_norm > 0 else 1.0
        return cls(tokens.n_features, window, random, scale)

    @property
    def n_random(self) -> int:
        return 0 if self.random is None else self.random.n_outputs

    @property
    def n_outputs(self) -> int:
        if self.random is not None and self.window == 0:
            return self.n_random
        return self.n_random + self.n_features * (2 * self.window + 1)

    def local(self, features: Any) -> Any:
        """The costly part, which looks at one token at a time: random features, scaled ones."""
        if self.random is None:
            return features
        features = features.astype(np.float32, copy=False)
        drawn = self.random.transform(features)
        if not self.window:
            return drawn
        return np.hstack([drawn, features * np.float32(self.window_scale)])

    def spread(self, local: Any, offsets: IntArray) -> Any:
        """The fast part: the window of what `local` gave."""
        return window_features(local, offsets, self.window, self.n_random)

    def transform(self, features: Any, offsets: IntArray) -> Any:
        """(N, n_features) -> (N, n_outputs); sequences do not see each other."""
        return self.spread(self.local(features), offsets)


# Chosen on folds 2-9 of the OCR letters. With many tokens a narrower kernel than the median pays;
# the window, many blocks of features, must not drown the token itself.
MEDIAN_SHARE = 0.6
WINDOW_SHARE = 0.5
