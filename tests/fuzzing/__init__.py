"""Hostile and damaged inputs, made from seeds, against the real entry points (tests/long)."""
