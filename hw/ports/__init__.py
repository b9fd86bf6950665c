"""Both sides of a router's port: buffers, routes and requests of its inputs, credits of its outputs.

May import: hw.lookup, hw.allocation and what lies below. Read first: `input_unit.py`.
"""
