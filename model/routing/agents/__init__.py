"""Routing by agents that learn (DQN), on grids and dragonflies, whole and damaged.

May import: all other rooms of model.routing. Read first: `grid.py`.
"""
