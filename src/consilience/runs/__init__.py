"""A run in its folder: its description, record, checkpoints, and what it came from."""
