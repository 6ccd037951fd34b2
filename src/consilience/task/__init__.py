"""A task: what is learnt from what, by whom, and how it is judged."""
