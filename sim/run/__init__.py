"""Simulate a network and measure it."""
