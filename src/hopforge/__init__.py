"""hopforge: switches and routing of high-performance interconnection networks, from gates to applications."""

__version__ = "0.1.0"
