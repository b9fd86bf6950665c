"""Store-and-forward routers of whole packets."""
