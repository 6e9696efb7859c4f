"""Everything that touches the world: inventory, devices, endpoints, load, evidence files."""
