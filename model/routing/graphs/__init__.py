"""Routing on any connected graph by tables of next ports.

May import: model.routing.combined, model.routing.contract and what lies below. Read first: `graph.py`.
"""
