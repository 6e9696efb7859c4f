"""Micro-benchmarks of OpenVINO GenAI on this machine: each technique off and on in turn, in one process."""
