"""Programs of others and how they are run: yosys, abc, Verilator, slang.

May import: hw, model. Read first: `yosys.py`.
"""
