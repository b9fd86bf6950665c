"""The lookup path: keys, routing cache, TCAM, and the golden engine that joins them; `fast` is the engine as a kernel.

May import: model.topology, model.workload and what lies below. Read first: `golden/engine.py`.
"""

from hopforge.moved import refuse_old_names

__getattr__ = refuse_old_names("model.lookup")
