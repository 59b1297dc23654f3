"""Learning: score maps, solvers, estimators, metrics, data and model files."""
