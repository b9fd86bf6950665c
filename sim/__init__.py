"""All that runs the machine: simulations, hit rates, programs, pages, co-simulation, reproduced figures.

May import: gen, hw, model. Read first: `run/simulation.py`.
"""

if __name__ != "hopforge.sim":
    raise ImportError(f"import this package as hopforge.sim, not {__name__}")
