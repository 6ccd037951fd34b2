"""Learning from one's own data: shares as they are, a likelihood for what is predicted, any network."""
