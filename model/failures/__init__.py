"""Links and switches that fail while a network is simulated: losses, draining, new tables."""
