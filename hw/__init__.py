"""Amaranth components of the router and its lookup path.

May import: model (specs and tables, never golden functions). Read first: `router/router.py`.
"""

if __name__ != "hopforge.hw":
    raise ImportError(f"import this package as hopforge.hw, not {__name__}")
