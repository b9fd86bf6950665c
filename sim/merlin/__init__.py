"""Configurations of SST with Merlin, its network, as SST writes them in JSON: translated, never run.

May import: model. Read first: `translate.py`.
"""
