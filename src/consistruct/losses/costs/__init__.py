"""Costs given as numbers: tables, vectors of each example, files."""
