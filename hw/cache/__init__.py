"""The routing cache: arrays, replacement, epochs, and its second level.

May import: hw.parts; model. Read first: `routing_cache.py`.
"""
