"""Listed labels, any scores: quadratic programs with pruning and symmetry."""
