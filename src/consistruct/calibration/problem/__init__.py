"""The problem that H solves, as data: listed pairs, symmetry, bounds on one pair, distributions."""
