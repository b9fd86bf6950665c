"""Classes of ports, by which results are summed up: host, dimension and sign, level, local or global."""

import numpy as np

from hopforge.model.topology.base import Topology
from hopforge.model.topology.groups import GROUPED_KINDS, ports_between_groups


def port_classes(topology: Topology) -> list[list[str]]:
    """Class of every port, ``[router][port]``: host; dim0+, dim0-, …; level0 up, level1 down, …; local, global; link.

    The class of a grid port is the direction in which it *sends*; packets that enter there travel the other way.
    """
    params, width = topology.params, topology.max_ports
    if topology.kind in ("mesh", "torus"):
        row = ["host"] * params["hosts_per_router"]
        row += [f"dim{i}{sign}" for i in range(len(params["radices"])) for sign in "+-"]
        return [row] * topology.routers
    if topology.kind == "fat_tree":
        k, n = params["k"], params["n"]
        rows = []
        for level in range(n + 1):
            down = "host" if level == 0 else f"level{level} down"
            rows += [([down] * k + [f"level{level} up"] * k)[:width]] * k**n
        return rows
    if topology.kind == "dragonfly":
        p, a, h = params["p"], params["a"], params["h"]
        return [["host"] * p + ["local"] * (a - 1) + ["global"] * h] * topology.routers
    if topology.kind in GROUPED_KINDS:
        far = ports_between_groups(topology)
        names = np.where(topology.host_at >= 0, "host", np.where(far, "global", "local"))
        return [[str(name) for name in row] for row in names]
    return [["host" if host >= 0 else "link" for host in row] for row in topology.host_at.tolist()]
