"""Adapters between an AXI-Stream and the flits of a host port.

May import: hw.ports and what lies below. Read first: `sender.py`.
"""
