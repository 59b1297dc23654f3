"""Non-decomposable metrics: ours against the recipes that people use, on the same models."""
