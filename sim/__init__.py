"""Co-simulation benches and everything that needs all layers."""

if __name__ != "hopforge.sim":
    raise ImportError(f"import this package as hopforge.sim, not {__name__}")
