"""All entries in the order of the paper, and what in its source is not a claim."""

from __future__ import annotations

from consistruct.audit.claims import (
    blocks,
    bounds,
    consistency,
    constants,
    exact,
    figures,
    hamming,
    introduction,
    kernel_related,
    mixed,
    mixed_blocks,
    optimisation,
    quadratic,
    readings,
    related,
    setup,
    surrogates,
    upper_bounds,
)
from consistruct.audit.model import Entry

__all__ = ["ENTRIES", "NOT_CLAIMS"]

PARTS = (
    introduction,
    setup,
    consistency,
    figures,
    optimisation,
    quadratic,
    bounds,
    upper_bounds,
    related,
    kernel_related,
    readings,
    surrogates,
    exact,
    blocks,
    hamming,
    mixed,
    mixed_blocks,
    constants,
)

ENTRIES: dict[str, Entry] = {
    entry.name: entry for part in PARTS for entry in vars(part).values() if isinstance(entry, Entry)
}

# Labels of the paper's source that name no claim, with the reason.
NOT_CLAIMS: dict[str, str] = {
    "footnote:Iverson": "notation: the Iverson bracket",
    "sec:intro": "heading",
    "sec:notation": "heading",
    "sec:consistency": "heading",
    "sec:connection": "heading",
    "sec:quadrSurr": "heading",
    "sec:relatedworks": "heading",
    "sec:conclusion": "heading; the conclusion repeats earlier claims",
    "sec:Thm6Proof": "heading",
    "sec:techLemmas": "heading",
    "sec:specialLosses": "heading",
    "sec:boundscalibrationFunction": "heading",
    "sec:boundscalibrationFunction:lower": "heading",
    "sec:boundscalibrationFunction:upper": "heading",
    "sec:bounds:interpretations": "heading",
    "sec:exactTranferProofs": "heading",
    "sec:exactTranferProofs:01loss": "heading",
    "sec:exactTranferProofs:block01loss": "heading",
    "sec:exactTranferProofs:hamming": "heading",
    "sec:exactTranferProofs:mixedloss": "heading",
    "sec:tranferAndSgd": "heading",
    "sec:tranferAndSgd:constants": "heading",
    "sec:hammingLossProps": "heading",
}
