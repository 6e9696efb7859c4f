"""OpenVINO devices: what they say about themselves, and what they really do when asked."""
