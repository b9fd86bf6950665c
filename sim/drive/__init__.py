"""What drives a bench: stimulus, players, runners."""
