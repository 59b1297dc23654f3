"""Models of the expected target, one file or folder each."""
