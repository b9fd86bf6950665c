"""How long programs take: the flow engine, the packet engine, SimGrid's replay.

May import: sim.packet, sim.run and what lies below. Read first: `application.py`.
"""
