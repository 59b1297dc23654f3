"""How hard a loss is: the report of an analysis, its words, charts and page."""
