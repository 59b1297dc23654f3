"""Decision rules for metrics that are no means, found on left-out rows."""
