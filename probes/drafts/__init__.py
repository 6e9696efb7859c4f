"""Speculative decoding on a device: a head built for the target at hand, what it proves and what it costs."""
