"""Bounds of throughput that need no simulation: loads of channels, worst permutations, ideal routing.

May import: sim.traffic; model. Read first: `bounds.py`.
"""
