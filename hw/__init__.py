"""Amaranth components of the router and its lookup path."""

if __name__ != "hopforge.hw":
    raise ImportError(f"import this package as hopforge.hw, not {__name__}")
