"""Jobs that share a machine: where they are placed, when they start, how much they disturb each other.

May import: model. Read first: `runs.py`.
"""
