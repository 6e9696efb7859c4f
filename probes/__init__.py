"""Everything that touches the world: inventory, devices, endpoints, load, evidence files."""

__version__ = "0.1.0"
