"""What a new user runs first: demo, doctor, benchmarks."""
