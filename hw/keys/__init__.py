"""From a destination to its cache key: node reduction, expressions, and the stages that compute them.

May import: hw.parts; model. Read first: `node_reduction.py`.
"""
