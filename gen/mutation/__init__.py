"""Faults in a netlist, and proofs that one never shows.

May import: gen.tools; hw, model. Read first: `mutate.py`.
"""
