"""Too many labels to list: oracles over predictions and true labels, or bounds."""
