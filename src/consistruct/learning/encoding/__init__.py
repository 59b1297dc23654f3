"""Between labels and inputs as people write them and codes and arrays."""
