"""Proofs about the hardware, by subject.

May import: gen.tools, gen.verilog; hw, model. Read first: `all_proofs.py`.
"""

from hopforge.moved import refuse_old_names

__getattr__ = refuse_old_names("gen.formal")
