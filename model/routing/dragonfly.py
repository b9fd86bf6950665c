"""Minimal routing on a dragonfly: local, global, local."""

from typing import Any

import numpy as np

from hopforge.model.network.core.candidates import candidate
from hopforge.model.routing.dragonfly_ways import need_links
from hopforge.model.routing.plan import RoutingPlan, all_vcs, need_kind, need_vcs, register, relation, vc_range
from hopforge.model.topology import Topology

# table: 0 p, 1 a, 2 all VCs, 3 VCs before the global link, 4 from the global link on, 5 groups,
# 6 VCs to the host only from the packet's class, 7 … gateway [group, group]: router · 64 + port of the global link
_P, _A, _ALL, _BEFORE, _AFTER, _G, _CLASS_ONLY, _GATEWAY = range(8)


def _minimal(router: int, in_port: int, in_vc: int, packet: Any, net: Any, table: Any, memory: Any, out: Any) -> int:
    p, a = table[_P], table[_A]
    there = packet.dst // p
    if there == router:
        mask = table[_ALL]
        if table[_CLASS_ONLY] == 1:
            mask = table[_AFTER] if packet.phase == 1 else table[_BEFORE]
        out[0] = candidate(packet.dst - there * p, mask)
        return 1
    group, goal = router // a, there // a
    if group == goal:
        target = there
    else:
        gateway = table[_GATEWAY + group * table[_G] + goal]
        target = gateway >> 6
        if target == router:
            packet.phase = 1
            out[0] = candidate(gateway & 63, table[_AFTER])
            return 1
    mine, other = router - group * a, target - group * a
    out[0] = candidate(p + other - (1 if other > mine else 0), table[_AFTER] if packet.phase == 1 else table[_BEFORE])
    return 1


@register("dragonfly_min")
def prepare_dragonfly_min(topology: Topology, vcs: int, options: dict[str, Any]) -> RoutingPlan:
    """Direct: the lower half of the VCs before the global link, the upper half on it and after it.

    ``ejection: class`` keeps a packet to its half on the channel to the host, as BookSim does.
    """
    need_kind(topology, "dragonfly", "dragonfly")
    need_vcs("dragonfly_min", vcs, 2)
    if int(topology.params["links_per_group_pair"]) > 0:
        need_links(topology, "dragonfly_min", around=False)
    p, a, g = (int(topology.params[name]) for name in ("p", "a", "g"))
    gateway = np.full((g, g), -1, np.int64)
    for router in range(topology.routers - 1, -1, -1):
        for port in range(p + a - 1, int(topology.ports[router])):
            peer = int(topology.peer_router[router, port])
            if peer >= 0:
                gateway[router // a, peer // a] = (router << 6) | port
    half = vcs // 2
    header = [
        p,
        a,
        all_vcs(vcs),
        vc_range(0, half - 1),
        vc_range(half, vcs - 1),
        g,
        int(options.get("ejection", "any") == "class"),
    ]
    return RoutingPlan(relation(_minimal), np.array([*header, *gateway.reshape(-1)], np.int32), phases=2)
