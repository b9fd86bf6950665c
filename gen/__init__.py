"""Verilog generation, synthesis, proofs and mutation.

May import: hw, model. Read first: `packages/package.py`.
"""

if __name__ != "hopforge.gen":
    raise ImportError(f"import this package as hopforge.gen, not {__name__}")
