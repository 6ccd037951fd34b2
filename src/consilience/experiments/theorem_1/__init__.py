"""Theorem 1 measured: finite hypotheses over several networks, exact Bayes, many seeds."""
