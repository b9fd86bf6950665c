"""Verilog of a component, written for people, and its lint.

May import: gen.tools; hw, model. Read first: `writer.py`.
"""

from hopforge.moved import refuse_old_names

__getattr__ = refuse_old_names("gen.verilog")
