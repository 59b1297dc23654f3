"""Metrics that predictions are reported by: our defaults against what people use now."""
