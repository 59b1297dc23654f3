"""Boosted symmetric trees for any loss: bins, compiled loops, growing, the model."""
