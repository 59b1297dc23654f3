"""Costs of decisions: weighted least squares, chosen by left-out regret."""
