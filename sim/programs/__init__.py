"""How long programs take: flow engine, packet engine, SimGrid."""
