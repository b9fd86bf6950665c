"""Irregular networks (seed 002): LOREN's tables and ACRO's virtual layers.

May import: sim.reproduce.registry; all other rooms of sim but start. Read first: `loren_networks.py`.
"""
