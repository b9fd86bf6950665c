"""Routing tables and virtual layers for irregular networks (spec compact-routing.md; Kawano's thesis, seed 002)."""
