"""Golden models, configuration, topologies, workloads, replay and analysis."""

if __name__ != "hopforge.model":
    raise ImportError(f"import this package as hopforge.model, not {__name__}")
