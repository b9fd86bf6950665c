"""One router on the kernels of the network simulator: flits and credits go in and come out at its ports.

The twin of `model.router.golden.RouterModel` for long runs. Nothing is attached to the ports: what would arrive at a
neighbour is taken from the event wheel in the cycle in which it stands on the output (`take_flits`, `take_credits`),
and what a neighbour sends is put there (`give_flit`, `give_credit`). In between `run_cycles` goes through one cycle.
"""

from typing import Any

import numpy as np
from numba import int64, uint64
from numpy.typing import NDArray

from hopforge.model.kernel.bits import trailing_zeros
from hopforge.model.kernel.compile import entry, inner
from hopforge.model.kernel.memory import int32s, int64s
from hopforge.model.network.build import build_net
from hopforge.model.network.core.candidates import candidate
from hopforge.model.network.core.events import end_routing, put_flit, send_credit
from hopforge.model.network.core.kinds import AHEAD_ENGINES
from hopforge.model.network.core.layouts import PACKET, TRAFFIC_CLASS
from hopforge.model.network.core.net_record import PATTERN_SIGNATURE, ROUTE_SIGNATURE, Net
from hopforge.model.network.core.records import fifo_of, input_port, input_vc, packet_at, vc_in_port
from hopforge.model.network.core.state import NetState
from hopforge.model.network.parts.class_arrays import put_quality
from hopforge.model.network.settings import RouterParameters, SourceParameters, Tables
from hopforge.model.router.params import RouterParams
from hopforge.model.topology import Topology
from hopforge.model.topology.spread import port_place

__all__ = [
    "candidates_of",
    "give_credit",
    "give_flit",
    "no_pattern",
    "one_of",
    "routed",
    "single_router",
    "table_route",
    "take_credits",
    "take_flits",
    "take_routing",
]

# header of the table, followed by four words for each destination, the VC rule and the rule of escapes
_ENTRIES, _CLASSES, _SPREADS, _ROUTER, _FIRST = range(5)
_LOW, _HIGH, _CLASS, _ESCAPE, _WORDS = range(5)
_HALF = 0xFFFFFFFF


def single_router(params: RouterParams) -> NetState:
    """Build the state of a router at reset.

    With ``rc: lookup`` every head waits one cycle in RC, from which `take_routing` takes it. With look-ahead that is so
    at inputs of hosts, and heads for routers wait in ``unanswered`` for `answer_ahead`.

    Parameters
    ----------
    params : RouterParams
        The router.

    Returns
    -------
    NetState
        A network of one router and no host, ready for `run_cycles` with `table_route` and `no_pattern`.
    """
    p = params
    ports = np.full((1, p.ports), -1, np.int32)
    topology = Topology(
        name="one router", kind="edge_list", routers=1, hosts=0, peer_router=ports, peer_port=ports.copy(),
        host_at=ports.copy(), host_router=np.zeros(0, np.int32), host_port=np.zeros(0, np.int32),
        host_address=np.zeros(0, np.int64), ports=np.full(1, p.ports, np.int32),
    )  # fmt: skip
    state = build_net(
        topology,
        RouterParameters(
            vcs=p.vcs, buffer_flits=p.buffer_flits, switching=p.switching,
            rc_cycles=1 if p.rc == "lookup" else p.rc_cycles, va=p.va, sa=p.sa, arbiter=p.arbiter,
            va_arbiter=p.va_arbiter, speculation=p.speculation, vc_release=p.vc_release,
            credit_delay_cycles=p.credit_delay_cycles,
            deadlock_cycles=1 << 62, lookahead=p.lookahead is not None,
            cycles_per_flit=np.array([p.cycles_per_flit]) if p.cycles_per_flit else 1,
        ),
        SourceParameters(),
        Tables(routing=_table(p), max_candidates=p.ports + 1),
        seed=0,
    )  # fmt: skip
    if p.quality is not None:
        q = p.quality
        put_quality(state, np.zeros(q.classes, TRAFFIC_CLASS), q.kind, q.of_vc, q.priorities, q.weights)
    vcs = np.arange(p.ports * p.vcs)
    depth = np.repeat([p.credits(o) for o in range(p.ports)], p.vcs)
    state["input_vc"]["credit_to"] = state["output_vc"]["target"] = len(vcs) + vcs
    state["output_vc"]["credits"] = state["output_vc"]["depth"] = depth
    state["input_port"]["credit_time"] = 1
    state["output_port"]["flit_time"] = 2
    state["output_port"]["free_mask"] = (1 << p.vcs) - 1
    state["output_port"]["connected"] = 1
    state["input_port"]["carried"] = [p.carries(i) for i in range(p.ports)]
    if p.asks_ahead:
        state.record["lookahead"] = AHEAD_ENGINES
    pool = 2 * len(vcs) * (p.buffer_flits + 3) + 64
    state.put("packet", np.zeros(pool, PACKET))
    state.put("free_packet", np.arange(pool - 1, -1, -1, dtype=np.int32))
    state.record["free_packets"] = pool
    return state


def _table(params: RouterParams) -> NDArray[np.int32]:
    p = params
    words = [len(p.routes) if p.rc == "table" else 0, p.classes, p.spread_router is not None, p.spread_router or 0]
    for route in p.routes if p.rc == "table" else ():
        words += [route.ports & _HALF, route.ports >> 32, route.route_class]
        words.append(-1 if route.escape is None else route.escape)
    for mask in (p.vc_mask, p.escape_mask):
        words += [
            mask(k, i, v, o)
            for k in range(p.classes) for i in range(p.ports) for v in range(p.vcs) for o in range(p.ports)
        ]  # fmt: skip
    return np.array(words, np.int64).astype(np.uint32).view(np.int32)


@inner
def candidates_of(
    net: Net, table: Any, ports: Any, route_class: int, escape: int, in_port: int, in_vc: int, out: Any
) -> int:
    """Write the candidates of a route (mask of ports, class, escape port or -1) to `out`; returns their number."""
    count = 0
    if route_class >= table[_CLASSES]:
        return count
    rule = _FIRST + _WORDS * table[_ENTRIES]
    row = ((route_class * net.ports + in_port) * net.vcs + in_vc) * net.ports
    rest = uint64(ports)
    while rest != uint64(0):
        o = trailing_zeros(rest)
        rest &= rest - uint64(1)
        mask = int64(table[rule + row + o])
        if mask != 0:
            out[count] = candidate(o, mask)
            count += 1
    if escape >= 0:
        size = table[_CLASSES] * net.ports * net.vcs * net.ports
        mask = int64(table[rule + size + row + escape])
        if mask != 0:
            out[count] = candidate(escape, mask, 1)
            count += 1
    return count


@inner
def one_of(ports: Any, packet: Any, dst: int, router: int) -> Any:
    """Return the port of a mask that the head of a packet to an address, and the router, name."""
    rest, ways = uint64(ports), 0
    while rest != uint64(0):
        rest &= rest - uint64(1)
        ways += 1
    rest = uint64(ports)
    for _ in range(port_place(int64(packet.src), dst, int64(packet.part), router, ways) if ways > 1 else 0):
        rest &= rest - uint64(1)
    return int64(rest & (~rest + uint64(1)))


@entry(ROUTE_SIGNATURE)
def table_route(
    _router: int, in_port: int, in_vc: int, packet: Any, net: Net, table: Any, _memory: Any, out: Any
) -> int:
    """Route by the table; ``packet.dst`` is a row of it or -1.

    With look-ahead heads bring their port and class along in ``packet.user0`` and ``user1``.
    """
    if net.lookahead != 0 and input_port(net, in_port).carried != 0:
        ports = int64(1) << packet.user0 if packet.user0 < net.ports else int64(0)
        return int(candidates_of(net, table, ports, int64(packet.user1), -1, in_port, in_vc, out))
    if packet.dst < 0 or packet.dst >= table[_ENTRIES]:
        return 0
    row = _FIRST + _WORDS * packet.dst
    ports = (int64(table[row + _LOW]) & _HALF) | int64(table[row + _HIGH]) << 32
    if table[_SPREADS]:
        ports = one_of(ports, packet, int64(packet.dst), int64(table[_ROUTER]) & _HALF)
    return int(
        candidates_of(net, table, ports, int64(table[row + _CLASS]), int64(table[row + _ESCAPE]), in_port, in_vc, out)
    )


@entry(PATTERN_SIGNATURE)
def no_pattern(_host: int, _number: int, _net: Net, _table: Any) -> int:
    """Traffic pattern of a network without hosts."""
    return 0


@inner
def give_flit(net: Net, n: int, packet: int, kind: int, now: int) -> None:
    """Put a flit of record `packet` on the input of input VC `n` in cycle `now`."""
    put_flit(net, n, packet << 2 | kind, now + 1)


@inner
def give_credit(net: Net, m: int, now: int) -> None:
    """Return a credit of output VC `m` in cycle `now`."""
    send_credit(net, m, now + 1 + net.router_credit_delay)


@inner
def take_flits(net: Net, now: int, flits: Any, vcs: Any) -> None:
    """Take what stands on the outputs in cycle `now`: ``flits[o]`` = packet << 2 | kind or -1, ``vcs[o]``."""
    slot = now & net.wheel_mask
    first = slot * net.event_capacity
    kept = 0
    flits[:] = -1
    for k in range(int32s(net.flit_events)[slot]):
        event = int64s(net.flit_event)[first + k]
        m = (event >> 32) - net.input_vcs
        if m < 0:
            int64s(net.flit_event)[first + kept] = event
            kept += 1
        else:
            flits[m // net.vcs] = event & _HALF
            vcs[m // net.vcs] = m % net.vcs
    int32s(net.flit_events)[slot] = kept


@inner
def take_credits(net: Net, now: int, vcs: Any) -> None:
    """Take the credits that the inputs return in cycle `now`: VC ``vcs[i]`` or -1."""
    slot = now & net.wheel_mask
    first = slot * net.event_capacity
    kept = 0
    vcs[:] = -1
    for k in range(int32s(net.credit_events)[slot]):
        target = int32s(net.credit_event)[first + k]
        n = int64(target) - net.output_vcs
        if n < 0:
            int32s(net.credit_event)[first + kept] = target
            kept += 1
        else:
            vcs[n // net.vcs] = n % net.vcs
    int32s(net.credit_events)[slot] = kept


@inner
def take_routing(net: Net, now: int, waiting: Any) -> None:
    """After cycle `now`: take the input VCs that are in RC since this cycle, and set ``waiting[n]`` for them.

    Unroutable heads that have brought their route along stay: they are on their way to DRAIN.
    """
    slot = (now + net.rc_cycles) & net.wheel_mask
    first, kept = slot * net.event_capacity, 0
    for k in range(int32s(net.ready_events)[slot]):
        n = int32s(net.ready_event)[first + k]
        if net.lookahead != 0 and input_port(net, int64(input_vc(net, n).port)).carried != 0:
            int32s(net.ready_event)[first + kept] = n
            kept += 1
        else:
            waiting[n] = 1
    int32s(net.ready_events)[slot] = kept


@inner
def routed(net: Net, n: int, ports: Any, route_class: int, dst: int) -> None:
    """After a cycle: let RC of input VC `n` end with a mask of ports and a class, as looked up for address `dst`."""
    vc, table = input_vc(net, n), int32s(net.table)
    if table[_SPREADS]:
        packet = packet_at(net, fifo_of(net, n)[vc.head] >> 2)
        ports = uint64(one_of(ports, packet, dst, int64(table[_ROUTER]) & _HALF))
    in_port = int64(input_port(net, vc.port).port)
    base = net.candidate + 8 * n * net.max_candidates
    v = vc_in_port(net, vc)
    vc.candidates = candidates_of(net, int32s(net.table), ports, route_class, -1, in_port, v, int64s(base))
    end_routing(net, n)
