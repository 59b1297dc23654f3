"""Metrics that are no means: ours against the recipes that people use, on the same models."""
