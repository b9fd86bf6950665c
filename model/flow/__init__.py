"""Flow-level simulation: messages are flows that share the bandwidth of the links on their routes."""
