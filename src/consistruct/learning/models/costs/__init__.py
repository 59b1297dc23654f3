"""Costs of decisions: weighted least squares, chosen by out-of-fold regret."""
