"""The lookup path: keys, routing cache, TCAM, and the engine that joins them."""

from hopforge.moved import refuse_old_names

__getattr__ = refuse_old_names("model.lookup")
