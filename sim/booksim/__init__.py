"""Configurations of BookSim 2 as configurations of ours: `hopforge import booksim`.

`grammar` reads the text, `keys` knows BookSim's keys and defaults, `translate` puts the sections together.

May import: model. Read first: `translate.py`.
"""
