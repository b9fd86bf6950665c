"""Programs, jobs and collectives on whole machines (seed 004, issue 20).

May import: sim.reproduce.dragonflies, sim.reproduce.registry; all other rooms of sim but start. Read first:
`apps_figures.py`.
"""
