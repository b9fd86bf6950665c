"""Routing caches (seed 004): conflicts, helps, area and energy, caches before rules.

May import: sim.reproduce.costs, sim.reproduce.registry; all other rooms of sim but start. Read first: `conflicts.py`.
"""
