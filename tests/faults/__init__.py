"""Signals, full disks and rivals at random moments: nothing lost or half-written (tests/long)."""
