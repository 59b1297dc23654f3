"""Finding proofs in exact arithmetic: pair problems, pieces and predictable labels as rationals.

Nothing here is trusted: what it finds is written into certificates that `proofs` checks.
"""
