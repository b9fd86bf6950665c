"""Times of links and crossbars in nanoseconds, as whole cycles of one length."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopforge.model.config.router import RouterConfig
from hopforge.model.errors import UserError
from hopforge.model.topology import Topology
from hopforge.model.topology.groups import GROUPED_KINDS, ports_between_groups

#: most cycles of a packet on a link when the length of a cycle is found
MAX_PACKET_CYCLES = 10_000
#: times of input-output-queued routers that the file does not give, in ns (spec/dragonfly.md)
DEFAULT_NS = {"flit_ns": 32.0, "crossbar_ns": 3.2, "link_ns": 30.0, "global_ns": 300.0, "host_ns": 10.0, "end_ns": 10.0}


class LinkTimeError(UserError, ValueError):
    """Times that no cycle divides: names the key."""


@dataclass(frozen=True)
class LinkTimes:
    """Times of input-output-queued routers.

    Attributes
    ----------
    cycle_ns : float
        Length of a cycle.
    flit_cycles, crossbar_cycles : int
        A packet on a link; between two matches.
    flight_cycles : ndarray, int64[router, port]
        Of the link at each output port, both ends included.
    """

    cycle_ns: float
    flit_cycles: int
    crossbar_cycles: int
    flight_cycles: NDArray[np.int64]


def common_cycle_ns(times: list[float]) -> float:
    """Longest cycle of which all `times` (ns) are whole multiples.

    Raises
    ------
    LinkTimeError
        The longest of them would be more than `MAX_PACKET_CYCLES` × 1000 cycles.

    Examples
    --------
    >>> common_cycle_ns([32.0, 3.2, 50.0, 320.0, 30.0])
    0.4
    """
    exact = [Fraction(str(time)) for time in times if time > 0]
    scale = math.lcm(*(one.denominator for one in exact))
    found = Fraction(math.gcd(*(int(one * scale) for one in exact)), scale)
    if max(exact) / found > MAX_PACKET_CYCLES * 1000:
        raise LinkTimeError(f"router.cycle_ns: no cycle fits all times; they would need one of {float(found)} ns")
    return float(found)


def port_values(topology: Topology, between: Any, far: Any, host: Any) -> NDArray[Any]:
    """One value for each output port: links between routers, those between groups, links to hosts."""
    if topology.aggregation is not None:
        return topology.aggregation.spread(port_values(topology.aggregation.logical, between, far, host))
    values = np.full((topology.routers, topology.max_ports), between)
    if topology.kind == "dragonfly":
        values[:, int(topology.params["p"]) + int(topology.params["a"]) - 1 :] = far
    elif topology.kind in GROUPED_KINDS:
        values[ports_between_groups(topology)] = far
    values[topology.host_at >= 0] = host
    return values


def _queued_ns(router: RouterConfig) -> tuple[dict[str, float], dict[str, float]]:
    """Return times of ``router.model: input_output_queued``, and those from end to end of a link; ns."""
    ns = {
        key: default if (given := getattr(router, key)) is None else float(given) for key, default in DEFAULT_NS.items()
    }
    return ns, {key: ns[key] + 2 * ns["end_ns"] for key in ("link_ns", "global_ns", "host_ns")}


def queued_cycle_ns(router: RouterConfig) -> float:
    """Length of a cycle with ``router.model: input_output_queued``."""
    ns, flights = _queued_ns(router)
    return router.cycle_ns or common_cycle_ns([ns["flit_ns"], ns["crossbar_ns"], *flights.values()])


def queued_credit_flits(router: RouterConfig) -> int:
    """Packets that the longest link takes until the credit of the first is back, ``router.model: input_output_queued``.

    A packet is there and served after its flight, a packet's time and at most two matches; so is its credit after
    another flight.
    """
    ns, flights = _queued_ns(router)
    return math.ceil((2 * max(flights.values()) + ns["flit_ns"] + 2 * ns["crossbar_ns"]) / ns["flit_ns"])


def queued_times(router: RouterConfig, topology: Topology) -> LinkTimes:
    """Turn the times of ``router.model: input_output_queued`` into cycles."""
    ns, flights = _queued_ns(router)
    cycle = queued_cycle_ns(router)
    cycles = {key: max(round(time / cycle), 1) for key, time in (ns | flights).items()}
    flight = port_values(topology, cycles["link_ns"], cycles["global_ns"], cycles["host_ns"])
    return LinkTimes(cycle, cycles["flit_ns"], cycles["crossbar_ns"], flight.astype(np.int64))


def input_queued_cycles(router: RouterConfig) -> dict[str, int]:
    """Keys of the router of docs/definitions/router.md that the file gives in ns, in whole cycles (rounded up)."""
    if router.cycle_ns is None:
        return {}
    found: dict[str, int] = {}
    ends = 2 * (router.end_ns or 0.0)
    for key, name in (("link_ns", "link_latency_cycles"), ("global_ns", "global_latency_cycles"),
                      ("host_ns", "host_latency_cycles")):  # fmt: skip
        if getattr(router, key) is not None:
            found[name] = max(math.ceil((getattr(router, key) + ends) / router.cycle_ns - 1e-9), 1)
    if router.flit_ns is not None:
        found["cycles_per_flit"] = max(math.ceil(router.flit_ns / router.cycle_ns - 1e-9), 1)
    return found


def in_cycles(router: RouterConfig, key: str) -> int:
    """Return a time of the router of docs/definitions/router.md in cycles, whichever way the file gives it.

    Parameters
    ----------
    router : RouterConfig
        Section `router`.
    key : {'link_latency_cycles', 'host_latency_cycles', 'cycles_per_flit'}
        Which one.
    """
    given: int = getattr(router, key)
    return input_queued_cycles(router).get(key, given)


def dragonfly_times(topology: Topology, router: RouterConfig) -> tuple[float, float, float]:
    """Return the times of a local and a global link as estimates begin with, and of a cycle.

    They are in ns; of input-queued routers without ``cycle_ns`` in cycles (and 1).
    """
    if router.model == "input_output_queued":
        local, far = (
            DEFAULT_NS[key] if getattr(router, key) is None else getattr(router, key)
            for key in ("link_ns", "global_ns")
        )
        return float(local), float(far), queued_times(router, topology).cycle_ns
    given = input_queued_cycles(router)
    local = given.get("link_latency_cycles", router.link_latency_cycles)
    far = given.get("global_latency_cycles", router.global_latency_cycles or local)
    cycle = router.cycle_ns or 1.0
    return local * cycle, far * cycle, cycle


def linked_ports(topology: Topology) -> int:
    """Ports of a router that lead to routers: all those after the hosts up to the last one with a link anywhere."""
    p = int(topology.params["p"])
    return int(np.nonzero(topology.peer_router >= 0)[1].max(initial=p - 1)) + 1 - p
