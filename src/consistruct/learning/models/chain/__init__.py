"""Linear chains for sequences."""
