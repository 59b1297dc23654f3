"""Too many labels to list: oracles over predictions and truths, or bounds."""
