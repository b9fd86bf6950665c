"""Programs of ranks: traces, calls, collectives, operations."""
