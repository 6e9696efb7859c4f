"""What configuration files say about a service: read as their program would, with the line of every value."""
