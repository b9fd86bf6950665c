"""Input-output-queued routers."""
