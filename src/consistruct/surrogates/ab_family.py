"""Sum L(c, y)·a(f_c) + b(f_c) over labels: the (a, b) family, with three members."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy  # its submodules are imported on use
from numpy.typing import ArrayLike

from consistruct.protocols import FloatArray
from consistruct.surrogates.base import EnumeratedSurrogate, ExcessForm, ValueAndGradient

__all__ = ["ABSurrogate", "ExponentialSurrogate", "LogisticSurrogate", "SquareSurrogate"]


class ABSurrogate(EnumeratedSurrogate):
    """Sum over labels: Φ(θ, y) = E_c[L(c, y)·a(f_c) + b(f_c)], f = Fθ. Required: `a` and `b`.

    Consistent for full scores where ℓ·a + b is convex and bounded below for every ℓ in [0, L_max]
    and a and b'/a' increase strictly; `calibration_function` computes what it buys. The
    expectation is a sum over listed labels, or one label drawn from μ
    (`sampled_value_and_gradient`), which any number of labels allows.

    Derive from it for functions of your own: what trains the classifier is what
    `calibration_function` analyses. The optional methods make the analysis faster; without them it
    bisects. `jointly_convex` claims that 1/G'' is concave, where G(ℓ) = −min_f [ℓa + b]: one
    tangent plane then proves the lower bound. You answer for that claim.

    Examples
    --------
    >>> import numpy as np, consistruct as cs
    >>> class Squares(cs.surrogates.ABSurrogate):
    ...     jointly_convex = True
    ...     def a(self, f):
    ...         return f, np.ones_like(f)
    ...     def b(self, f):
    ...         return f**2 / 2, f
    >>> H = cs.calibration_function(cs.losses.ZeroOne(3), surrogate=Squares)
    >>> round(H(0.6), 7)     # the quadratic surrogate: ε²/4k
    0.03
    """

    excess: ClassVar[ExcessForm | None] = "bregman"
    jointly_convex: ClassVar[bool] = False

    @abstractmethod
    def a(self, f: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return values and derivatives of a, each of the shape of f."""

    @abstractmethod
    def b(self, f: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return values and derivatives of b, each of the shape of f."""

    # --- optional: closed forms for the analysis ---

    @property
    def window(self) -> tuple[float, float]:
        """Return the scores to search: Φ must reach its infimum there for all ℓ in [0, L_max]."""
        return -200.0, 200.0

    def minimizer(self, ell: FloatArray) -> FloatArray | None:
        """Return f*(ℓ) = argmin_f ℓ·a(f) + b(f), in closed form if there is one."""
        return None

    def inverse(self, u: FloatArray) -> FloatArray | None:
        """Return f with a(f) = u."""
        return None

    def entropy(self, ell: FloatArray) -> FloatArray | None:
        """Return G(ℓ) = −min_f [ℓ·a(f) + b(f)], whose Bregman divergence is the excess risk."""
        return None

    def reflected(self, f: FloatArray) -> FloatArray | None:
        """Return b + L_max·a where the sum would cancel: for bounds at large negative scores."""
        return None

    def variance(self, ell: FloatArray) -> FloatArray | None:
        """Return 1/G''(ℓ), which must rise up to L_max/2 and fall after it."""
        return None

    # --- what follows ---

    @property
    def l_max(self) -> float:
        """Return L_max, or 1 for a loss that is always zero."""
        return self.loss.max_value or 1.0

    def loss_of_score(self, f: FloatArray) -> FloatArray:
        """Return ℓ = −b'(f)/a'(f), the expected loss that makes f the minimizer."""
        return np.asarray(-self.b(f)[1] / self.a(f)[1])

    def value_and_gradient(self, theta: FloatArray, true: ArrayLike) -> ValueAndGradient:
        losses = self._losses(true)
        scores = theta @ self._embedding.T
        # ∂Φ/∂θ = E_c[(L a'(f_c) + b'(f_c)) F_c], the chain rule through f = Fθ
        (a, a_slope), (b, b_slope) = self.a(scores), self.b(scores)
        values = (losses * a + b) @ self._measure
        return values, ((losses * a_slope + b_slope) * self._measure) @ self._embedding

    def sampled_value_and_gradient(
        self, theta: FloatArray, true: ArrayLike, rng: np.random.Generator
    ) -> ValueAndGradient:
        # Φ is an expectation over c ~ μ: one draw per example estimates it without listing labels,
        # at the price of a variance that averaging over steps of SGD has to remove
        labels = self.score_space.predictions.sample(len(theta), rng)
        embedded = self.score_space.embed(labels)
        losses = self.loss(labels, true)
        scores = np.einsum("nw,nw->n", embedded, theta)
        (a, a_slope), (b, b_slope) = self.a(scores), self.b(scores)
        return losses * a + b, (losses * a_slope + b_slope)[:, None] * embedded

    def expected_target(self, theta: FloatArray) -> FloatArray:
        # each f_c reveals ℓ_c = E[L(c, y) | x]; of all u the one whose losses o + ⟨F_c, u⟩ are
        # closest in L²(μ) is Ḡ⁺E_c[F_c (ℓ_c − o)]: exact where θ is the minimizer
        losses = self.loss_of_score(theta @ self._embedding.T) - self._constant_offset
        moments = (losses * self._measure) @ self._loss_embedding
        return self.loss.score_space.gram().solve(moments)


def _log_odds(p: FloatArray) -> FloatArray:
    """Return log((1 − p)/p), infinite at 0 and 1; p may leave [0, 1] by rounding."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log1p(-np.clip(p, 0.0, 1.0)) - np.log(np.clip(p, 0.0, 1.0)))


@dataclass(frozen=True, eq=False, repr=False)
class LogisticSurrogate(ABSurrogate):
    """Fit s = ℓ/L_max of every label by logistic regression: a(f) = f/L_max, b(f) = log(1 + e^−f).

    ℓ·a + b = s·log(1 + e^f) + (1 − s)·log(1 + e^−f) because f = log(1 + e^f) − log(1 + e^−f): the
    cross-entropy of the scaled loss under P = 1/(1 + e^f). Choose it before the exponential one.

    Examples
    --------
    >>> import numpy as np
    >>> from consistruct.losses import ZeroOne
    >>> LogisticSurrogate(ZeroOne(2)).value_and_gradient(np.zeros((1, 2)), [0])[1]
    array([[-0.25,  0.25]])
    """

    name: ClassVar[str] = "logistic"
    jointly_convex: ClassVar[bool] = True  # 1/G'' = ℓ(L_max − ℓ)

    def a(self, f: FloatArray) -> tuple[FloatArray, FloatArray]:
        return f / self.l_max, np.full_like(f, 1.0 / self.l_max)

    def b(self, f: FloatArray) -> tuple[FloatArray, FloatArray]:
        # log(1 + e^−f) without overflow at f = −800, where e^−f alone is infinite
        return np.logaddexp(0.0, -f), -scipy.special.expit(-f)

    @property
    def window(self) -> tuple[float, float]:
        # log(1/s − 1) reaches ±40 at s = 4e-18 and 1 − s, which floats cannot tell from 0 and 1
        return -40.0, 40.0

    def minimizer(self, ell: FloatArray) -> FloatArray:
        return _log_odds(ell / self.l_max)

    def inverse(self, u: FloatArray) -> FloatArray:
        return u * self.l_max

    def entropy(self, ell: FloatArray) -> FloatArray:
        p = ell / self.l_max
        return np.asarray(-(scipy.special.entr(p) + scipy.special.entr(1 - p)))

    def reflected(self, f: FloatArray) -> FloatArray:
        return np.asarray(np.logaddexp(0.0, f))


@dataclass(frozen=True, eq=False, repr=False)
class ExponentialSurrogate(ABSurrogate):
    """Weigh right labels by e^−f and wrong ones by e^f: a(f) = (e^f − e^−f)/L_max, b(f) = e^−f.

    ℓ·a + b is convex for every ℓ in [0, L_max] although a is not; f = ½ log(1/s − 1) with
    s = ℓ/L_max. Heavier tails than the logistic member: prefer that one unless you compare them.

    Examples
    --------
    >>> import numpy as np
    >>> from consistruct.losses import ZeroOne
    >>> ExponentialSurrogate(ZeroOne(2)).value_and_gradient(np.zeros((1, 2)), [0])[1]
    array([[-0.5,  0.5]])
    """

    name: ClassVar[str] = "exponential"

    def a(self, f: FloatArray) -> tuple[FloatArray, FloatArray]:
        return 2.0 * np.sinh(f) / self.l_max, 2.0 * np.cosh(f) / self.l_max

    def b(self, f: FloatArray) -> tuple[FloatArray, FloatArray]:
        decay = np.exp(-f)
        return decay, -decay

    @property
    def window(self) -> tuple[float, float]:
        # ½ log(1/s − 1) reaches ±28 at s = 5e-25 and 1 − s: far below what floats resolve next to 1
        return -28.0, 28.0

    def minimizer(self, ell: FloatArray) -> FloatArray:
        return 0.5 * _log_odds(ell / self.l_max)

    def inverse(self, u: FloatArray) -> FloatArray:
        return np.asarray(np.arcsinh(u * self.l_max / 2))

    def entropy(self, ell: FloatArray) -> FloatArray:
        p = ell / self.l_max
        return np.asarray(-2 * np.sqrt(np.clip(p * (1 - p), 0.0, None)))

    def reflected(self, f: FloatArray) -> FloatArray:
        return np.asarray(np.exp(f))

    def variance(self, ell: FloatArray) -> FloatArray:
        p = ell / self.l_max
        return np.asarray(2 * self.l_max**2 * np.clip(p * (1 - p), 0.0, None) ** 1.5)


@dataclass(frozen=True, eq=False, repr=False)
class SquareSurrogate(ABSurrogate):
    """Fit −ℓ by least squares, label by label: a(f) = f, b(f) = f²/2.

    ℓ·f + f²/2 = (f + ℓ)²/2 − ℓ²/2: the quadratic surrogate as a sum over listed labels.

    It differs from `QuadraticSurrogate` by a term free of θ and serves to try the sampled label.

    Examples
    --------
    >>> import numpy as np
    >>> from consistruct.losses import ZeroOne
    >>> SquareSurrogate(ZeroOne(2)).value_and_gradient(np.zeros((1, 2)), [0])[1]
    array([[0. , 0.5]])
    """

    name: ClassVar[str] = "square"
    jointly_convex: ClassVar[bool] = True  # 1/G'' = 1

    def a(self, f: FloatArray) -> tuple[FloatArray, FloatArray]:
        return f, np.ones_like(f)

    def b(self, f: FloatArray) -> tuple[FloatArray, FloatArray]:
        return 0.5 * f**2, f

    @property
    def window(self) -> tuple[float, float]:
        # minimizers lie in [−L_max, 0]; the parabola is convex, so one margin on either side is
        # enough
        return -2.0 * self.l_max - 1.0, 1.0

    def minimizer(self, ell: FloatArray) -> FloatArray:
        return -ell

    def inverse(self, u: FloatArray) -> FloatArray:
        return u

    def entropy(self, ell: FloatArray) -> FloatArray:
        return 0.5 * ell**2
