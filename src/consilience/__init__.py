"""Decentralized Bayesian learning over graphs: private data, no server, pooled posteriors."""

__version__ = "0.1.0"
