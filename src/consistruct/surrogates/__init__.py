"""Surrogates: convex functions of the scores that stand in for the task loss."""
