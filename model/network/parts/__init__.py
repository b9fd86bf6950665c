"""What only some simulated networks need: lookup engines, programs, messages, other allocators, notes.

May import: model.network.core and what lies below. Read first: `route_lookup.py`.
"""
