"""Engines: the ways an inbox gets filled."""
