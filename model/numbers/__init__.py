"""Numbers and codes: addresses, CRC, Galois fields."""
