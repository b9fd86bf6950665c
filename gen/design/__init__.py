"""The hardware that a file describes, whole and in blocks that can be synthesized.

May import: gen.tools; hw, model. Read first: `configured.py`.
"""

from hopforge.moved import refuse_old_names

__getattr__ = refuse_old_names("gen.design")
