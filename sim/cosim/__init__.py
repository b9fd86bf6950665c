"""Hardware beside its golden model."""
