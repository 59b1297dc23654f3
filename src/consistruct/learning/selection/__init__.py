"""Choosing: cross-fitting, and which models are worth their time."""
