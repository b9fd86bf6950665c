"""The one way through a k-ary n-fly: every stage takes the output that a digit of the destination names."""

from typing import Any

import numpy as np

from hopforge.model.network.core.candidates import candidate
from hopforge.model.routing.contract.plan import RoutingPlan, all_vcs, need_kind, register, relation
from hopforge.model.topology import Topology

# table: 0 k, 1 all VCs, 2 routers of a stage, 3 stages
_K, _ALL, _STAGE, _STAGES = range(4)


def _dest_tag(router: int, in_port: int, in_vc: int, packet: Any, net: Any, table: Any, memory: Any, out: Any) -> int:
    k, stages = table[_K], table[_STAGES]
    stage = router // table[_STAGE]
    if stage == 0 and in_port >= k:  # the half of the last stage
        stage = stages - 1
    digits = packet.dst
    for _ in range(stages - 1 - stage):
        digits //= k
    out[0] = candidate((0 if stage == stages - 1 else k) + digits % k, table[_ALL])
    return 1


@register("dest_tag")
def prepare_dest_tag(topology: Topology, vcs: int, options: dict[str, Any]) -> RoutingPlan:
    """Stage s takes the output of the digit of weight k^(n-1-s) of the destination; any VC."""
    need_kind(topology, "dest_tag", "butterfly")
    k, n = int(topology.params["k"]), int(topology.params["n"])
    return RoutingPlan(relation(_dest_tag), np.array([k, all_vcs(vcs), k ** (n - 1), n], np.int32))
