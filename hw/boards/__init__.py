"""What is built for a board: a lookup engine or a network, behind a serial line.

May import: hw.network, hw.lookup, hw.buses and what lies below. Read first: `board.py`.
"""
