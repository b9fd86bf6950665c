"""What only some simulated networks need."""
