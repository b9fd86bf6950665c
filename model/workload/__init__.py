"""Programs of ranks: traces, calls, collectives, operations."""

from hopforge.moved import refuse_old_names

__getattr__ = refuse_old_names("model.workload")
