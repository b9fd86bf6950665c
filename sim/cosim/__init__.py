"""Hardware beside its golden model."""

from hopforge.moved import refuse_old_names

__getattr__ = refuse_old_names("sim.cosim")
