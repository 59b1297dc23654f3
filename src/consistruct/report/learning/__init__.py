"""How good a fitted model is: the report on held-out data, its baselines, words and charts."""
