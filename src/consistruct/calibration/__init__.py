"""The calibration function: pair problems, methods that solve them, certified curves."""
