"""Scores of single items, for rankings."""
