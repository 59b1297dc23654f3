"""The ways to compute H: each folder has a `Method` of `calibration.curve` and what it needs.

`calibration.engine` tries them in order.
"""
