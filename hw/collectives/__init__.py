"""Units beside routers that combine and copy words, and the links between them.

May import: hw.parts; model. Read first: `unit.py`.
"""
