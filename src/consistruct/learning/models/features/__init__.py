"""Feature maps, and how they are chosen."""
