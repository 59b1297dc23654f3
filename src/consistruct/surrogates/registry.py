"""List the surrogates: what each is called, and what can be done with it.

The command line, the explorer, `calibration`, `learning`, the tests and the docs read this table.
"""

from __future__ import annotations

from dataclasses import dataclass

from consistruct._validation import check_choice
from consistruct.exceptions import CapabilityError
from consistruct.losses.base import Loss
from consistruct.structures import Structure
from consistruct.surrogates.ab_family import (
    ExponentialSurrogate,
    LogisticSurrogate,
    SquareSurrogate,
)
from consistruct.surrogates.base import DECODINGS, BaseSurrogate
from consistruct.surrogates.chains import (
    ChainHinge,
    ChainLogLoss,
    ChainQuadratic,
    ChainSoftmaxMargin,
    ChainSurrogate,
)
from consistruct.surrogates.decisions import PerturbedFenchelYoungSurrogate, SPOPlusSurrogate
from consistruct.surrogates.distribution import LogSurrogate, SparsemaxSurrogate
from consistruct.surrogates.linear_regret import LinearRegretSurrogate
from consistruct.surrogates.margins import (
    HingeSurrogate,
    MaxMinMarginSurrogate,
    SoftmaxMarginSurrogate,
)
from consistruct.surrogates.quadratic import QuadraticSurrogate

__all__ = [
    "SURROGATES",
    "SurrogateEntry",
    "SurrogateLike",
    "analyzed_class",
    "chain_surrogate",
    "make_surrogate",
    "surrogate_class",
]

SurrogateLike = str | type[BaseSurrogate] | BaseSurrogate


@dataclass(frozen=True)
class SurrogateEntry:
    """Register a surrogate; a reason stands where something cannot be done with it.

    Attributes
    ----------
    cls : type
        Over listed labels (or any number of them, for the quadratic one): what is trained.
    title : str
        For menus and tables.
    chain : type or None
        The same surrogate on chains of any length.
    not_analyzed, not_on_chains : str
        Why it has no calibration function, and why it cannot be trained on chains; empty where it
        can.
    """

    cls: type[BaseSurrogate]
    title: str
    chain: type[ChainSurrogate] | None = None
    not_analyzed: str = ""
    not_on_chains: str = ""

    @property
    def name(self) -> str:
        return self.cls.name

    @property
    def analyzed(self) -> bool:
        """Whether `calibration_function` takes it."""
        return not self.not_analyzed

    @property
    def on_chains(self) -> bool:
        """Whether chains of any length can be trained with it."""
        return self.chain is not None


# reasons, as the end of a sentence: "surrogate 'x' does not work on chains: …"
_SUM = "it sums a function of each label's own score, and a chain has no such sum over sequences"
_PROJECTION = "the projection on distributions over sequences is not a dynamic program"
_GAME = "the game over distributions of sequences is not a dynamic program"
_NO_FORM = "its excess risk is not a divergence that the convex programs here can bound"

_DECISIONS = "it is for decisions of one size; chains have the hinge"
_SYMMETRIC = "its guarantee is only for costs with symmetric noise; general distributions have none"
_IMITATES = "it imitates best decisions without looking at costs: no bound on the regret is known"

SURROGATES: dict[str, SurrogateEntry] = {
    entry.name: entry
    for entry in (
        SurrogateEntry(QuadraticSurrogate, "quadratic", ChainQuadratic),
        SurrogateEntry(LogisticSurrogate, "logistic", not_on_chains=_SUM),
        SurrogateEntry(ExponentialSurrogate, "exponential", not_on_chains=_SUM),
        SurrogateEntry(SquareSurrogate, "square (quadratic, label by label)", not_on_chains=_SUM),
        SurrogateEntry(LogSurrogate, "log loss (CRF)", ChainLogLoss),
        SurrogateEntry(SparsemaxSurrogate, "sparsemax", not_on_chains=_PROJECTION),
        SurrogateEntry(HingeSurrogate, "hinge (structured SVM)", ChainHinge),
        SurrogateEntry(
            SoftmaxMarginSurrogate, "softmax-margin", ChainSoftmaxMargin, not_analyzed=_NO_FORM
        ),
        SurrogateEntry(MaxMinMarginSurrogate, "max-min margin", not_on_chains=_GAME),
        SurrogateEntry(LinearRegretSurrogate, "linear regret", not_on_chains=_PROJECTION),
        SurrogateEntry(SPOPlusSurrogate, "SPO+", not_analyzed=_SYMMETRIC, not_on_chains=_DECISIONS),
        SurrogateEntry(
            PerturbedFenchelYoungSurrogate,
            "perturbed Fenchel–Young",
            not_analyzed=_IMITATES,
            not_on_chains=_DECISIONS,
        ),
    )
}


def _known(name: str, among: dict[str, SurrogateEntry]) -> str:
    key = name.replace("_", "-")
    if key not in among:
        raise ValueError(
            f"surrogate must be one of {', '.join(among)} or a surrogate class, got {name!r}"
        )
    return key


def surrogate_class(surrogate: SurrogateLike) -> type[BaseSurrogate]:
    """Return the class behind a name (hyphens and underscores alike), a class or an object.

    >>> surrogate_class("max_min_margin").name
    'max-min-margin'
    """
    if isinstance(surrogate, str):
        return SURROGATES[_known(surrogate, SURROGATES)].cls
    cls = surrogate if isinstance(surrogate, type) else type(surrogate)
    if issubclass(cls, BaseSurrogate):
        return cls
    raise TypeError(
        f"surrogate must be a name ({', '.join(SURROGATES)}) or a surrogate class, "
        f"got {cls.__name__}"
    )


def analyzed_class(surrogate: SurrogateLike, decoding: str) -> type[BaseSurrogate]:
    """Return the surrogate's class; one clear line if it or the decoding cannot be analyzed."""
    cls = surrogate_class(surrogate)
    check_choice(decoding, "decoding", DECODINGS)
    if decoding == "bayes" and cls.excess != "distribution":
        raise ValueError(
            f"decoding must be 'argmax' for the surrogate {cls.name!r}, got 'bayes'; only 'log' "
            "and 'sparsemax' estimate a distribution that the Bayes rule can use"
        )
    if cls.excess is None:
        known = SURROGATES.get(cls.name)
        # a class of one's own may have the name of a registered one, but not its reasons
        why = known.not_analyzed if known is not None and known.cls is cls else ""
        raise CapabilityError(
            cls.name,
            "excess",
            "a calibration function",
            (why or "derive it from ABSurrogate or DistributionSurrogate")
            + f"; analyzed are {', '.join(n for n, e in SURROGATES.items() if e.analyzed)}",
        )
    return cls


def make_surrogate(
    surrogate: SurrogateLike, loss: Loss, scores: Structure | None = None
) -> BaseSurrogate:
    """Build a surrogate by name, from a class of one's own, or take one that was built.

    Examples
    --------
    >>> from consistruct.losses import ZeroOne
    >>> make_surrogate("log", ZeroOne(3))
    LogSurrogate(ZeroOne(3))
    """
    cls = surrogate_class(surrogate)
    if not isinstance(surrogate, BaseSurrogate):
        return cls(loss, scores)
    if surrogate.loss != loss or scores not in (None, surrogate.scores):
        raise ValueError(
            f"surrogate {surrogate!r} was built for a different loss or different scores than "
            f"{loss!r} and {scores!r}; pass its class"
        )
    return surrogate


def chain_surrogate(name: str | type[ChainSurrogate]) -> ChainSurrogate:
    """Return the surrogate of that name on chains, hyphens and underscores alike.

    >>> chain_surrogate("softmax_margin")
    ChainSoftmaxMargin()
    """
    if isinstance(name, type) and issubclass(name, ChainSurrogate):
        return name()
    if not isinstance(name, str):
        raise TypeError(f"surrogate must be a name or a chain surrogate class, got {name!r}")
    known = SURROGATES.get(name.replace("_", "-"))
    if known is not None and known.chain is None:
        raise ValueError(f"surrogate {known.name!r} does not work on chains: {known.not_on_chains}")
    chains = {key: entry for key, entry in SURROGATES.items() if entry.on_chains}
    cls = chains[_known(name, chains)].chain
    assert cls is not None
    return cls()
