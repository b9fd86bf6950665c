"""A cache before a TCAM of prefix rules.

May import: hw.cache, hw.parts; model. Read first: `rule_cache.py`.
"""
