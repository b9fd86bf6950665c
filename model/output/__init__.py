"""Files that runs write: staged folders, tables, metadata, plots.

May import: model.config. Read first: `results.py`.
"""
