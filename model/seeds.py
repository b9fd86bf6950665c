"""The largest seed, for configurations and options alike."""

MOST_SEED = 10**18
"""Seeds stand in tables as 64-bit numbers, and runs of a sweep count up from them."""
