"""Boards: the host's end of the serial line, the design behind a pseudo-terminal, and the twin.

May import: sim.drive, gen, hw, model. Read first: `host_run.py`.
"""
