"""What every simulated network needs."""
