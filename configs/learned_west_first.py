"""Q-routing (Boyan and Littman 1994) among the ways of west-first on a 2-D mesh (docs/guides/routing-of-your-own.md).

Every router estimates, for each destination and output port, the cycles that a packet still needs to the router of its
destination. When a packet leaves a router, that router tells the one upstream how long the hop took and what it
estimates for the rest of the way itself. A packet takes the port with the smallest estimate; the other minimal one if
that has no free virtual channel. Both are ways of west-first, hence no deadlock.
"""

from typing import Any

import numpy as np

from hopforge.model.routing import Feedback, RoutingError, RoutingPlan, Topology, candidate, learner, relation, reporter

EAST, WEST, NORTH, SOUTH = 1, 2, 3, 4  # ports of a mesh with one host a router: 0 is the host, then +x, −x, +y, −y
PORTS = 5
ALPHA = 0.2  # learning rate


def learned(router: int, in_port: int, in_vc: int, packet: Any, net: Any, table: Any, memory: Any, out: Any) -> int:
    """Write the candidates of `packet` at `router` to `out` and return their number."""
    width, vcs, routers = table[0], table[1], table[2]
    dx = packet.dst % width - router % width
    dy = packet.dst // width - router // width
    if dx == 0 and dy == 0:
        out[0] = candidate(0, vcs)
        return 1
    vertical = NORTH if dy > 0 else SOUTH
    if dx <= 0 or dy == 0:
        out[0] = candidate(vertical if dx == 0 else WEST if dx < 0 else EAST, vcs)
        return 1
    row = (router * routers + packet.dst) * PORTS
    east_first = memory[row + EAST] <= memory[row + vertical]
    out[0] = candidate(EAST if east_first else vertical, vcs, 0)
    out[1] = candidate(vertical if east_first else EAST, vcs, 1)
    return 2


def report(router: int, in_port: int, packet: Any, elapsed: int, net: Any, table: Any, memory: Any, note: Any) -> int:
    """`packet` leaves `router`: tell the router upstream the cycles of the hop and the estimate from here on."""
    width, routers = table[0], table[2]
    dx = packet.dst % width - router % width
    dy = packet.dst // width - router // width
    row = (router * routers + packet.dst) * PORTS
    vertical = memory[row + (NORTH if dy > 0 else SOUTH)]
    if dx == 0:
        rest = vertical if dy != 0 else 0.0
    elif dx < 0:
        rest = memory[row + WEST]
    else:
        rest = memory[row + EAST] if dy == 0 else min(memory[row + EAST], vertical)
    note.key = packet.dst
    note.value = elapsed + rest
    return 1


def learn(router: int, out_port: int, out_vc: int, note: Any, net: Any, table: Any, memory: Any) -> int:
    """`note` has come back to `router` for a packet that left by `out_port`."""
    entry = (router * table[2] + note.key) * PORTS + out_port
    memory[entry] += ALPHA * (note.value - memory[entry])
    return 0


def prepare(topology: Topology, vcs: int, options: dict[str, Any]) -> RoutingPlan:
    """Fill the table that the functions read and the estimates that they learn; called once per run."""
    if topology.kind != "mesh" or len(topology.params["radices"]) != 2 or topology.hosts != topology.routers:
        raise RoutingError(f"learned_west_first.py needs a 2-D mesh with one host a router, not {topology.name}")
    table = np.array([topology.params["radices"][0], (1 << vcs) - 1, topology.routers], np.int32)
    memory = np.zeros(topology.routers * topology.routers * PORTS)
    feedback = Feedback(reporter(report), learner(learn))
    return RoutingPlan(relation(learned), table, max_candidates=2, memory=memory, feedback=feedback)
