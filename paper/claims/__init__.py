"""The claims themselves, a module for each part of the paper."""
