"""Data files, model files, checkpoints."""
