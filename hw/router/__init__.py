"""The router: its core, with tables, with registers, behind a bus, and with streams at its hosts.

May import: hw.streams, hw.ports and what lies below. Read first: `router.py`.
"""

from hopforge.moved import refuse_old_names

__getattr__ = refuse_old_names("hw.router")
