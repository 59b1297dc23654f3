"""The paper's claims, one entry each, checked by computation."""

from consistruct.audit.inventory import ENTRIES, NOT_CLAIMS
from consistruct.audit.model import Deviation, Effort, Entry, Evidence, Result
from consistruct.audit.render import audit_dict, audit_pages, audit_text
from consistruct.audit.runner import AuditReport, run_audit

__all__ = [
    "ENTRIES",
    "NOT_CLAIMS",
    "AuditReport",
    "Deviation",
    "Effort",
    "Entry",
    "Evidence",
    "Result",
    "audit_dict",
    "audit_pages",
    "audit_text",
    "run_audit",
]
