"""Routing on dragonflies: minimal, adaptive, learning; on groups of other shapes, too.

May import: model.routing.contract and what lies below. Read first: `dragonfly.py`.
"""
