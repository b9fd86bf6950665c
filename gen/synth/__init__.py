"""Area, delay and energy in a standard-cell library, and the timing of whole packages.

May import: gen.packages, gen.design, gen.verilog, gen.tools; hw, model. Read first: `area_and_delay.py`.
"""

from hopforge.moved import refuse_old_names

__getattr__ = refuse_old_names("gen.synth")
