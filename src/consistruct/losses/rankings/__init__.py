"""Losses of orders: gains, pairs, distances between permutations."""
