"""DQN-Routing (seed 000), and beyond its paper.

May import: sim.reproduce.dragonflies, sim.reproduce.registry; all other rooms of sim but start. Read first:
`dqn_runs.py`.
"""
