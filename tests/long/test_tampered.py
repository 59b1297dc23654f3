"""A thousand tampered certificates (CONSISTRUCT_NIGHTLY=1: ten thousand): refused, or true."""

from __future__ import annotations

import json

import pytest

from consistruct import certificates
from consistruct.calibration.proofs import from_json
from consistruct.exceptions import CertificateError
from tests.calibration.hard_problems import COUNT
from tests.calibration.tampering import claim_is_true, genuine, tampered

pytestmark = pytest.mark.filterwarnings("ignore::consistruct.calibration.LabelOrderWarning")

BLOCKS = 40
EACH = 10  # changes to each certificate


def accepted(document):
    """The verdict of the package; that of the stand-alone checker must be the same."""
    try:
        from_json(json.dumps(document)).check()
        verdict = True
    except CertificateError:
        verdict = False
    try:
        certificates.verify(json.loads(json.dumps(document)))  # nothing faster, nothing trusted
        alone = True
    except certificates.Refused:
        alone = False
    assert alone is verdict or not verdict  # the package also requires fields that are not used
    return verdict


def run(seeds):
    refused = still_true = 0
    for seed in seeds:
        document = genuine(seed)
        if document is None:
            continue
        assert accepted(document)
        for turn in range(EACH):
            other = tampered(document, EACH * seed + turn)
            if accepted(other):
                assert claim_is_true(other), f"seed {seed}, turn {turn}"
                still_true += 1
            else:
                refused += 1
    return refused, still_true


@pytest.mark.parametrize("block", range(BLOCKS))
def test_tampered_certificates_are_refused(block, record_property):
    refused, still_true = run(range(block, COUNT // EACH, BLOCKS))
    assert refused > 0
    record_property("cases", refused + still_true)  # tools/nightly.py reads it
