"""Hardware beside its golden model, cycle by cycle, and mutants of the hardware.

May import: sim.benches, sim.drive, sim.run; gen, hw, model. Read first: `lookup.py`.
"""

from hopforge.moved import refuse_old_names

__getattr__ = refuse_old_names("sim.cosim")
