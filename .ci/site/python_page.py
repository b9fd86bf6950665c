"""The page of all that `import hopforge` offers: its names, each from its docstring."""

import hopforge

#: headings, each with what stands below it; a test sees that every public name has its place
PARTS = {
    "Configurations": ["load", "loads", "network", "Configuration"],
    "Runs": [
        "simulate", "series", "sweep", "hits", "route", "app", "bounds", "jobs", "rules", "wavelengths", "collectives",
    ],
    "Hardware": ["generate", "cosim"],
    "Results": ["compare", "Comparison", "Result", "SimulationResult", "CosimResult", "GeneratedFiles", "Picture"],
    "Mistakes and warnings": [
        "UserError", "ConfigError", "DeadlockError", "DivergedError", "Mistake", "HopforgeWarning",
    ],
}
_HEAD = """\
# Python reference

What `import hopforge as hf` offers, made from the docstrings by `make docs`. The guide:
[python.md](../guides/python.md).

"""


def text() -> str:
    """Return the page; mkdocstrings fills it in."""
    missing = {*hopforge.__all__} - {"__version__"} ^ {name for names in PARTS.values() for name in names}
    if missing:
        raise RuntimeError(f".ci/site/python_page.py: {', '.join(sorted(missing))}: public, or here, but not both")
    parts = ("\n\n".join([f"## {head}", *(f"::: hopforge.{name}" for name in names)]) for head, names in PARTS.items())
    return _HEAD + "\n\n".join(parts) + "\n"
