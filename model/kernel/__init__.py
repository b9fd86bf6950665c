"""How kernels are compiled, and the small tools that they are made of: memory, bits, random numbers.

May import: nothing. Read first: `compile.py`.
"""
