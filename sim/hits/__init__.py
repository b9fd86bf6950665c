"""Hit rates and what follows from them: forwarding rate, energy."""
