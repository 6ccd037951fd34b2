"""Image classification over a graph with Bayesian networks (Sec. 4.2): agents recognise labels they never saw."""
