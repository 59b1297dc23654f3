"""Sequences: linear chains over token features."""
