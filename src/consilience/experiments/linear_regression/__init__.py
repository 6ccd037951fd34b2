"""Bayesian linear regression over a graph (Sec. 4.1, Fig. 1): every agent sees one coordinate, all learn all of it."""
