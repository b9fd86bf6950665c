"""OutFlank routing on tori and meshes (seed 003).

May import: sim.reproduce.registry; all other rooms of sim but start. Read first: `outflank.py`.
"""
