"""Reports: one look for figures and tables."""
