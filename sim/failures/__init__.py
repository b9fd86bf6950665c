"""Links and switches that fail during a run."""
