"""What a command of `hopforge gen` writes: Verilog and everything that goes with it.

May import: gen.design, gen.registers, gen.verilog, gen.tools; hw, model. Read first: `package.py`.
"""
