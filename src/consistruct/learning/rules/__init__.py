"""Decision rules for non-decomposable metrics, found on out-of-fold rows."""
