"""Freedom from deadlock, proved before a run: the exploration of what packets reach, and its short cuts.

May import: model.routing.contract and what lies below. Read first: `deadlock.py`.
"""
