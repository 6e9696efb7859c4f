"""Plans: what follows by arithmetic from a model's shape, a device and what was measured; pure, one module per planner."""
