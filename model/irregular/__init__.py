"""Routing tables and virtual layers of networks without regular structure: LOREN, landmarks, LASH, ACRO.

May import: model.lookup, model.topology and what lies below. Read first: `tables.py`.
"""
