"""Routing by coordinates: meshes, tori, HyperX.

May import: model.routing.ways and what lies below. Read first: `grid.py`.
"""
