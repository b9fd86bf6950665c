"""Parts that know nothing of routers and lookups: arbiters, memories, counters, check bits, hashes.

May import: model. Read first: `round_robin.py`.
"""
