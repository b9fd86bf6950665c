"""The cocotb benches of the blocks.

May import: sim.drive, sim.run; gen, hw, model. Read first: `lookup.py`.
"""
