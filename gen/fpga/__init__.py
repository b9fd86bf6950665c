"""Bitstreams for boards: top, pins, clocks, and the open tools.

May import: gen.packages, gen.design, gen.verilog, gen.tools; hw, model. Read first: `bitstream.py`.
"""

from hopforge.moved import refuse_old_names

__getattr__ = refuse_old_names("gen.fpga")
