"""The lookup engine of any depth: MSHRs, TCAM, registers, and what joins them with keys and cache.

May import: hw.keys, hw.cache, hw.buses, hw.parts; model. Read first: `shallow.py`.
"""

from hopforge.moved import refuse_old_names

__getattr__ = refuse_old_names("hw.lookup")
