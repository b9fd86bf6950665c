"""Standard buses and the serial line in front of a design's registers.

May import: hw.parts; model. Read first: `on_bus.py`.
"""
