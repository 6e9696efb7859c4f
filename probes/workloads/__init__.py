"""Models that write no text, run for real: what they bring per second, and what of an LLM does not apply to them."""
