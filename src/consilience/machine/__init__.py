"""This machine: its cores, its memory, the signals it sends."""
