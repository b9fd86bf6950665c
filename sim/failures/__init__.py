"""Links and switches that fail while a network is simulated: losses, draining, new tables.

May import: sim.queued; model. Read first: `reconfiguration.py`.
"""
