"""Comparisons with peers: one run, one machine, ratios and errors side by side."""
