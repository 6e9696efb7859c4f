"""A stand-in for OVMS on this machine: SmolLM2-135M in OpenVINO GenAI, behind the paths and bodies of OVMS."""
