"""Readings of this machine while something runs on it: memory and power."""
