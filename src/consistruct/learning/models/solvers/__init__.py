"""Solvers that the linear models share."""
