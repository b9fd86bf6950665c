"""Routers with links between them, and what stands at their hosts.

May import: hw.router and what lies below. Read first: `network.py`.
"""

from hopforge.moved import refuse_old_names

__getattr__ = refuse_old_names("hw.network")
