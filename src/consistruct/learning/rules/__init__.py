"""Decision rules for non-decomposable metrics, found on left-out rows."""
