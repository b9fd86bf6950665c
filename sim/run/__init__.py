"""Simulate a network and measure it: one load, sweeps, time series, traces.

May import: sim.failures, sim.hits, sim.queued, sim.traffic; gen, hw, model. Read first: `simulation.py`.
"""
