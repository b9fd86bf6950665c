"""Generators of programs: NPB, training, graph search and others.

May import: model.workload, model.config. Read first: `npb.py`.
"""
