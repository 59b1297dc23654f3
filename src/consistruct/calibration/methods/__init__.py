"""The ways to compute H over listed or structured labels, one file each."""
