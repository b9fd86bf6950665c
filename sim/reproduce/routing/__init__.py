"""Routing methods side by side on networks of equal size; classes of traffic; spraying.

May import: sim.reproduce.registry; all other rooms of sim but start. Read first: `methods.py`.
"""
