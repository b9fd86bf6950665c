"""What memories and gates cost, for the figures of several rooms.

May import: all other rooms of sim but start. Read first: `gate_cost.py`.
"""
