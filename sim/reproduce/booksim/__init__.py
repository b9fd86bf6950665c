"""Our simulator beside BookSim 2; the shipped reference lies in ``data/``.

May import: sim.reproduce.registry; all other rooms of sim but start. Read first: `comparison.py`.
"""

from hopforge.moved import refuse_old_names

__getattr__ = refuse_old_names("sim.reproduce.booksim")
