"""Measures of decisions that were made: costs, regret, intervals, importance, comparisons."""
