"""The measuring instrument: framing, decoding and timing of streamed answers."""
