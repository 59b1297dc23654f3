"""Learning: score maps, solvers and estimators behind the scikit-learn interface."""
