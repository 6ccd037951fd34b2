"""Rates in networks that change: what the realised W_t predict, next to what is measured."""
