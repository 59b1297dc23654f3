"""Risk control on real data, against MAPIE, and on a million rows."""
