"""Hit rates, and what follows from them: forwarding rate, energy, loads of channels.

May import: sim.traffic; model. Read first: `hit_rates.py`.
"""
