"""Q-adaptive on dragonflies (seed 001), and beyond its paper.

May import: sim.reproduce.costs, sim.reproduce.registry; all other rooms of sim but start. Read first: `runs.py`.
"""
