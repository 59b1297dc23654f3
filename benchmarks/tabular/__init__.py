"""Costs on tables of mixed columns: ours against the recipe that every practitioner knows."""
