"""Typed descriptions: what can be described, how it is read from files and settings, what is wrong with it."""
