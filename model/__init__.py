"""The machine and its network: what is true of them, without running them.

May import: nothing of hopforge but itself. Read first: `config/root.py`.
"""

if __name__ != "hopforge.model":
    raise ImportError(f"import this package as hopforge.model, not {__name__}")
