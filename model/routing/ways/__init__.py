"""Ways between all pairs of routers of any network: their table, their classes of virtual channels, detours.

May import: model.routing.graphs, model.routing.proof and what lies below. Read first: `detours.py`.
"""

from hopforge.moved import refuse_old_names

__getattr__ = refuse_old_names("model.routing.ways")
