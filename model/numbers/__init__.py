"""Numbers and codes: addresses, CRC, Galois fields, skew matrices.

May import: nothing. Read first: `crc.py`.
"""
