"""Standard buses in front of the registers: what they reach, what an access does, interrupts.

May import from `model.lookup` and `model.router`. Read ``space`` first, then ``golden``.
"""
