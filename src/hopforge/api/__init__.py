"""hopforge from Python: what `import hopforge` offers, a module for each of its functions.

A function here and the command of the same purpose call the same functions below; results are what the command writes.
May import: sim, gen, model. Read first: `configuration.py`, then `result.py`.
"""
