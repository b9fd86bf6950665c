"""Routing tables of routers: a routing relation, evaluated for every packet that can be there, in the form of hardware.

The simulator asks a function at every router (`model.routing`); a router has a table by destination and a rule of VCs
by class, input port and input VC (docs/router.md, RC). `compile_tables` walks all packets through the network and
factors the function's answers into the second form, or says why they do not fit into it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import int64, types, uint64
from numpy.typing import NDArray

from hopforge.model.config import Config
from hopforge.model.errors import UserError
from hopforge.model.kernel.bits import trailing_zeros
from hopforge.model.kernel.compile import entry
from hopforge.model.kernel.memory import floats, int32s, int64s
from hopforge.model.lookup.params import LookupParams
from hopforge.model.network.build import build_net
from hopforge.model.network.core.candidates import candidate_mask, candidate_port
from hopforge.model.network.core.records import (
    NET_RECORD,
    PACKET,
    PACKET_RECORD,
    ROUTE_SIGNATURE,
    Net,
    host_at,
    input_port,
    input_vc,
    output_vc,
)
from hopforge.model.network.core.state import NetState
from hopforge.model.network.settings import RouterParameters, SourceParameters, Tables, router_parameters
from hopforge.model.router.links import Link, topology_links
from hopforge.model.router.params import CLASS_BITS, PORT_BITS, Route, RouterParams, Rule
from hopforge.model.routing import RoutingError, RoutingPlan
from hopforge.model.topology import Topology

__all__ = ["RouterTables", "compile_tables", "network_links", "network_params"]

MAX_ENTRIES = 1 << 28
"""Most (destination, input VC, output port) entries of a network that are factored."""

MAX_CLASSES = 1 << CLASS_BITS


@dataclass(frozen=True, eq=False)
class RouterTables:
    """What every router of a network does with every destination.

    Attributes
    ----------
    algorithm : str
        Its name, for messages.
    ports : ndarray, uint64[router, host]
        Mask of the ports that some packet to the host may take there, apart from an escape; 0: unroutable.
    route_class : ndarray, uint8[router, host]
        Class of the destination.
    escape : ndarray, int8[router, host]
        Escape port, -1: none.
    vc_rule, escape_rule : tuple of ndarray, uint16[class, port, vc, port]
        For each router the VCs by class, input port, input VC and output port. An entry that no packet reaches is 0, or
        all VCs if no other entry of the rule restricts them.
    inject_mask : ndarray, uint32[host]
        VCs that hosts may use.
    """

    algorithm: str
    ports: NDArray[np.uint64]
    route_class: NDArray[np.uint8]
    escape: NDArray[np.int8]
    vc_rule: tuple[NDArray[np.uint16], ...]
    escape_rule: tuple[NDArray[np.uint16], ...]
    inject_mask: NDArray[np.uint32]

    def routes(self, router: int) -> tuple[Route, ...]:
        """Table of a router by host number."""
        return tuple(
            Route(ports, of_class, None if escape < 0 else escape)
            for ports, of_class, escape in zip(
                self.ports[router].tolist(),
                self.route_class[router].tolist(),
                self.escape[router].tolist(),
                strict=True,
            )
        )

    def lookup_outputs(self, router: int) -> list[int | None]:
        """Return what the lookup of a router must give for each host, by host number; None: no entry.

        One port for every host of the network: port and class (``output_kind: port``). Else masks of ports
        (``port_set``).

        Raises
        ------
        RoutingError
            An escape, or port sets of several classes: a lookup gives neither.
        """
        ports, of_class = self.ports[router], self.route_class[router]
        escaping = np.flatnonzero(self.escape[router] >= 0)
        if len(escaping):
            raise RoutingError(
                f"routing.algorithm {self.algorithm}: router {router} has an escape for host {escaping[0]}, "
                "which a lookup cannot give; use tables"
            )
        if self.port_sets:
            if self.vc_rule[router].shape[0] > 1:
                raise RoutingError(
                    f"routing.algorithm {self.algorithm}: router {router} has port sets in "
                    f"{self.vc_rule[router].shape[0]} classes, and a lookup gives sets of class 0 only; use tables"
                )
            return [mask or None for mask in ports.tolist()]
        return [
            mask.bit_length() - 1 | k << PORT_BITS if mask else None
            for mask, k in zip(ports.tolist(), of_class.tolist(), strict=True)
        ]

    @property
    def port_sets(self) -> bool:
        """Whether a destination has several ports in some router."""
        return bool((self.ports & (self.ports - np.uint64(1))).any())


_I1 = types.Array(types.int64, 1, "C")
_I2 = types.Array(types.int64, 2, "C")


@entry(int64(types.FunctionType(ROUTE_SIGNATURE), NET_RECORD, PACKET_RECORD, int64, int64, int64, _I1, _I2, _I1))
def walk_packets(
    route: Callable[..., int],
    net: Net,
    packet: Any,
    dst: int,
    phases: int,
    other: int,
    count: Any,
    answer: Any,
    stack: Any,
) -> int:
    """Evaluate the relation in every state that a packet to host `dst` can reach.

    A state is (input VC · phases + phase). `count` (-1: not reached) and `answer` are filled. `other`: the packet
    has another source, length, number and age, none of which a router sees. Returns -1, or the input VC in which
    the relation keeps something else than a phase in the packet.
    """
    vcs = net.vcs
    waiting = 0
    for h in range(net.hosts):
        for v in range(vcs):
            if (host_at(net, h).inject_mask >> v) & 1:
                state = (int64(host_at(net, h).input_vc) + v) * phases
                if count[state] < 0:
                    count[state] = 0
                    stack[waiting] = state
                    waiting += 1
    while waiting > 0:
        waiting -= 1
        state = stack[waiting]
        n = state // phases
        port = input_port(net, input_vc(net, n).port)
        packet.dst = dst
        packet.phase = state % phases
        packet.via = -1
        packet.user0 = 0
        packet.user1 = 0
        packet.src = (dst + n) % net.hosts if other else dst
        packet.length = 1 + other
        packet.number = other * n
        packet.created = other * n
        packet.hops = 0 if input_vc(net, n).credit_to >= net.output_vcs else 1 + 2 * other
        found = route(
            int64(port.router),
            int64(port.port),
            int64(input_vc(net, n).vc),
            packet,
            net,
            int32s(net.table),
            floats(net.memory),
            int64s(net.candidate),
        )
        after = int64(packet.phase)
        if packet.via != -1 or packet.user0 != 0 or packet.user1 != 0 or after < 0 or after >= phases:
            return n
        count[state] = found
        for k in range(found):
            packed = int64s(net.candidate)[k]
            answer[state, k] = packed
            mask = candidate_mask(packed)
            while mask != 0:
                w = trailing_zeros(uint64(mask))
                mask &= mask - 1
                target = int64(
                    output_vc(net, (int64(port.router) * net.ports + candidate_port(packed)) * vcs + w).target
                )
                if target < 0 or target >= net.input_vcs:
                    continue
                if count[target * phases + after] < 0:
                    count[target * phases + after] = 0
                    stack[waiting] = target * phases + after
                    waiting += 1
    return -1


@dataclass(frozen=True, eq=False)
class _Answers:
    """Answers to packets to one host, by input VC.

    Attributes
    ----------
    reached : ndarray, bool[input VC]
    mask : ndarray, uint16[input VC, port]
    escape : ndarray, int8[input VC]
    escape_mask : ndarray, uint16[input VC]
    """

    reached: NDArray[np.bool_]
    mask: NDArray[np.uint16]
    escape: NDArray[np.int8]
    escape_mask: NDArray[np.uint16]


class _Walker:
    """Walks packets and brings the answers into the form of one router's table."""

    def __init__(self, topology: Topology, plan: RoutingPlan, vcs: int, algorithm: str) -> None:
        self.topology, self.plan, self.vcs, self.algorithm = topology, plan, vcs, algorithm
        self.input_vcs = topology.routers * topology.max_ports * vcs
        states = self.input_vcs * plan.phases
        self._stack = np.zeros(states, np.int64)
        self._packet = np.zeros(1, PACKET)[0]
        self._states = [self._state(), self._state()]
        # The second time nothing is as in an empty network: a table cannot see that.
        rng = np.random.default_rng(1)
        outputs = self._states[1]["output_vc"]
        outputs["credits"] = rng.integers(0, outputs["depth"] + 1)

    def _state(self) -> NetState:
        plan = self.plan
        tables = Tables(
            routing=plan.table, memory=plan.memory, max_candidates=plan.max_candidates, inject_mask=plan.inject_mask
        )
        return build_net(self.topology, RouterParameters(vcs=self.vcs), SourceParameters(), tables, seed=1)

    @property
    def inject_mask(self) -> NDArray[np.uint32]:
        """VCs that hosts may use."""
        return self._states[0]["host"]["inject_mask"].astype(np.uint32)

    def _walk(self, host: int, other: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        plan, states = self.plan, len(self._stack)
        count = np.full(states, -1, np.int64)
        answer = np.zeros((states, plan.max_candidates), np.int64)
        state = self._states[other]
        wrong = walk_packets(
            plan.route, state.record[0], self._packet, host, plan.phases, other, count, answer, self._stack
        )
        if wrong >= 0:
            raise self.error(int(wrong), host, "keeps more in a packet than its phase")
        return count, answer

    def error(self, n: int, host: int, reason: str) -> RoutingError:
        """Return the error for packets to `host` in input VC `n`."""
        router, rest = divmod(n, self.topology.max_ports * self.vcs)
        port, vc = divmod(rest, self.vcs)
        return RoutingError(
            f"routing.algorithm {self.algorithm} cannot be a table of a router: for packets to host {host} in "
            f"router {router}, input port {port}, VC {vc} it {reason}"
        )

    def answers(self, host: int) -> _Answers:
        """Answers to all packets to `host`.

        Raises
        ------
        RoutingError
            One that is no function of the input VC, or not of the form that a router knows.
        """
        count, answer = self._walk(host, 0)
        again = self._walk(host, 1)
        differs = (count != again[0]) | (answer != again[1]).any(axis=1)
        phases = self.plan.phases
        if differs.any():
            first = int(np.flatnonzero(differs)[0])
            raise self.error(first // phases, host, "looks at more than destination, phase and input VC")
        states = np.flatnonzero(count >= 0)
        mask, escape, escape_mask = self._normal_form(states, count[states], answer[states], host)
        n = states // phases
        leader = np.searchsorted(n, n)  # the first state of the same input VC
        same = (mask == mask[leader]).all(axis=1) & (escape == escape[leader]) & (escape_mask == escape_mask[leader])
        if not same.all():
            k = int(np.flatnonzero(~same)[0])
            phase, other = states[k] % phases, states[leader[k]] % phases
            raise self.error(
                int(n[k]),
                host,
                f"answers phase {other} and phase {phase} differently, which the input VC does not show",
            )
        NI, P = self.input_vcs, self.topology.max_ports
        found = _Answers(
            np.zeros(NI, bool), np.zeros((NI, P), np.uint16), np.full(NI, -1, np.int8), np.zeros(NI, np.uint16)
        )
        found.reached[n] = True
        found.mask[n], found.escape[n], found.escape_mask[n] = mask, escape, escape_mask
        return found

    def _normal_form(
        self, states: NDArray[np.int64], count: NDArray[np.int64], answer: NDArray[np.int64], host: int
    ) -> tuple[NDArray[np.uint16], NDArray[np.int8], NDArray[np.uint16]]:
        """Split lists of candidates into port masks in increasing order, and one escape behind them."""
        rows = np.arange(len(states))
        live = (np.arange(answer.shape[1]) < count[:, None]) & ((answer >> 16 & 0xFFFF) != 0)
        port, level, mask = answer & 255, answer >> 8 & 255, answer >> 16 & 0xFFFF

        def refuse(wrong: NDArray[np.bool_], reason: str) -> None:
            if wrong.any():
                raise self.error(int(states[np.flatnonzero(wrong)[0]]) // self.plan.phases, host, reason)

        refuse((live & (answer >> 32 != 0)).any(axis=1), "asks for free flits (need_flits)")
        refuse((live & (port >= self.topology.max_ports)).any(axis=1), "names a port that is not there")
        last = np.where(live, np.arange(answer.shape[1]), -1).max(axis=1)
        some = last >= 0
        lowest = np.where(live, level, 256).min(axis=1)
        # A level counts only beside another one: alone, an escape is as good as any port.
        escapes = live & (level > lowest[:, None])
        is_last = np.arange(answer.shape[1]) == last[:, None]
        refuse((escapes & ~is_last).any(axis=1), "has candidates of a higher level other than one at the end")
        level0 = live & ~escapes
        before = np.maximum.accumulate(np.where(level0, port, -1), axis=1)
        disordered = level0[:, 1:] & (port[:, 1:] <= before[:, :-1])
        refuse(disordered.any(axis=1), "lists ports other than in increasing order")
        masks = np.zeros((len(states), self.topology.max_ports), np.uint16)
        for k in range(answer.shape[1]):
            chosen = level0[:, k]
            masks[rows[chosen], port[chosen, k]] = mask[chosen, k]
        escaping = some & escapes[rows, np.maximum(last, 0)]
        escape = np.where(escaping, port[rows, np.maximum(last, 0)], -1).astype(np.int8)
        escape_mask = np.where(escaping, mask[rows, np.maximum(last, 0)], 0).astype(np.uint16)
        return masks, escape, escape_mask


def compile_tables(topology: Topology, plan: RoutingPlan, vcs: int, algorithm: str) -> RouterTables:
    """Factor a routing relation into the tables and VC rules of all routers.

    Packets are walked from every host to every other. Of two classes that never differ where packets are, one remains.

    Parameters
    ----------
    topology : Topology
        The network.
    plan : RoutingPlan
        The relation.
    vcs : int
        Virtual channels per port.
    algorithm : str
        Its name, for messages.

    Raises
    ------
    RoutingError
        A relation that no table can give: it draws random numbers, learns, keeps more than a phase in the packet or a
        phase that the input VC does not show, looks at credits, or needs more than 16 classes.
    """
    for reason, found in (
        ("draws random numbers", plan.random),
        ("sends packets over a router drawn at the source", plan.uses_via),
        ("learns", plan.memory.size > 1),
    ):
        if found:
            raise RoutingError(f"routing.algorithm {algorithm} cannot be a table of a router: it {reason}")
    R, P, H = topology.routers, topology.max_ports, topology.hosts
    entries = R * P * vcs * P * H
    if entries > MAX_ENTRIES:
        raise RoutingError(
            f"routing.algorithm {algorithm} on the {topology.name} has {entries} entries of tables, more than "
            f"{MAX_ENTRIES}"
        )
    walker = _Walker(topology, plan, vcs, algorithm)
    shape = (H, R, P * vcs)
    reached, escape = np.zeros(shape, bool), np.full(shape, -1, np.int8)
    mask, escape_mask = np.zeros((*shape, P), np.uint16), np.zeros(shape, np.uint16)
    for host in range(H):
        answers = walker.answers(host)
        reached[host] = answers.reached.reshape(R, -1)
        mask[host] = answers.mask.reshape(R, -1, P)
        escape[host] = answers.escape.reshape(R, -1)
        escape_mask[host] = answers.escape_mask.reshape(R, -1)
    escape_port = escape.max(axis=2)
    conflict = (escape >= 0) & (escape != escape_port[:, :, None])
    if conflict.any():
        host, router, n = (int(index) for index in np.argwhere(conflict)[0])
        raise walker.error(
            router * P * vcs + n,
            host,
            f"escapes to port {escape[host, router, n]} and to port {escape_port[host, router]} elsewhere",
        )
    used = (mask != 0).any(axis=2)
    ports = (used.astype(np.uint64) << np.arange(P, dtype=np.uint64)).sum(axis=2, dtype=np.uint64)
    classes, rules, escape_rules = [], [], []
    for router in range(R):
        # Columns: masks of all ports, then the mask of the escape.
        value = np.concatenate([mask[:, router], escape_mask[:, router, :, None]], axis=2)
        counts = np.concatenate([used[:, router], escape_port[:, router, None] >= 0], axis=1)
        known = reached[:, router, :, None] & counts[:, None, :]
        port_of = np.where(escape_port[:, router] < 0, 0, escape_port[:, router])
        of_host, rule, escape_rule = _colour(value, known, port_of, (1 << vcs) - 1)
        if len(rule) > MAX_CLASSES:
            raise RoutingError(
                f"routing.algorithm {algorithm} cannot be a table of a router: router {router} needs {len(rule)} "
                f"classes of destinations, more than {MAX_CLASSES}"
            )
        classes.append(of_host)
        rules.append(rule.reshape(-1, P, vcs, P))
        escape_rules.append(escape_rule.reshape(-1, P, vcs, P))
    return RouterTables(
        algorithm, ports.T.copy(), np.array(classes, np.uint8).reshape(R, H), escape_port.T.copy(), tuple(rules),
        tuple(escape_rules), walker.inject_mask,
    )  # fmt: skip


def _colour(
    value: NDArray[np.uint16], known: NDArray[np.bool_], escape: NDArray[np.int8], full: int
) -> tuple[NDArray[np.int64], NDArray[np.uint16], NDArray[np.uint16]]:
    """Put each destination into the first class with whose rule it agrees.

    Parameters
    ----------
    value, known : ndarray [host, input VC, port + 1]
        Masks of VCs, the last column for the escape, and which of them count.
    escape : ndarray, int8[host]
        Port that the last column belongs to.
    full : int
        Mask of all VCs.

    Returns
    -------
    of_host : ndarray, int[host]
    rule, escape_rule : ndarray, uint16[class, input VC, port]
    """
    H, N, columns = value.shape
    P = columns - 1
    # Destinations that are alike are placed together.
    rows = np.concatenate(
        [np.where(known, value, 0).reshape(H, -1), known.reshape(H, -1), escape[:, None]], axis=1
    ).astype(np.uint16)
    _, first, kind = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    kind = kind.reshape(-1)
    rules: list[NDArray[np.uint16]] = []  # [input VC, port or P + escape port]
    taken: list[NDArray[np.bool_]] = []
    of_kind = np.zeros(len(first), np.int64)
    for k in np.argsort(first):
        host = int(first[k])
        mine, counts = np.zeros((N, 2 * P), np.uint16), np.zeros((N, 2 * P), bool)
        mine[:, :P], counts[:, :P] = value[host, :, :P], known[host, :, :P]
        mine[:, P + escape[host]], counts[:, P + escape[host]] = value[host, :, P], known[host, :, P]
        fits = [not (counts & used & (mine != rule)).any() for rule, used in zip(rules, taken, strict=True)]
        if True not in fits:
            rules.append(np.zeros_like(mine))
            taken.append(np.zeros_like(counts))
            fits.append(True)
        c = of_kind[k] = fits.index(True)
        rules[c] = np.where(counts, mine, rules[c])
        taken[c] |= counts
    both, used = np.array(rules), np.array(taken)
    rule, escape_rule = both[:, :, :P], both[:, :, P:]
    if (rule[used[:, :, :P]] == full).all():
        rule = np.full_like(rule, full)
    return of_kind[kind], rule, escape_rule


def _as_rule(masks: NDArray[np.uint16]) -> Rule:
    return tuple(tuple(tuple(tuple(row) for row in of_port) for of_port in of_class) for of_class in masks.tolist())


def network_links(config: Config, topology: Topology) -> tuple[Link, ...]:
    """Links between the routers, with the latencies of section `router`."""
    latency = np.broadcast_to(
        np.asarray(router_parameters(config, topology).link_latency_cycles), (topology.routers, topology.max_ports)
    )
    return tuple(link._replace(latency_cycles=int(latency[link.source])) for link in topology_links(topology))


def network_params(
    config: Config,
    topology: Topology,
    tables: RouterTables,
    *,
    lookup: LookupParams | None = None,
    width_bits: int | None = None,
    tag_bits: int | None = None,
) -> tuple[RouterParams, ...]:
    """Parameters of every router of a network.

    All routers have as many ports as the largest of them. In mode table a destination is a host number, in mode lookup
    (with `lookup`) an address. `width_bits` and `tag_bits` are by default ``router.flit_bits`` and ``router.tag_bits``.

    Raises
    ------
    UserError
        Values of section `router` that the simulator takes and the hardware does not; routes that a lookup cannot give.
    """
    router = config.router
    if router.cycles_per_flit != 1:
        raise UserError(f"router.cycles_per_flit must be 1 in hardware, not {router.cycles_per_flit}")
    if router.switching == "saf":
        raise UserError("router.switching must be wormhole or vct in hardware, not saf")
    if router.speculation == "shared":
        raise UserError("router.speculation must be false or true in hardware, not shared")
    given: dict[str, Any] = router.model_dump(
        include={
            "vcs", "buffer_flits", "switching", "arbiter", "speculation", "vc_release", "credit_delay_cycles",
            "flit_buffers",
        }
    )
    kinds: dict[str, Any] = {
        name: "output_first" if kind == "islip" else kind for name, kind in (("va", router.va), ("sa", router.sa))
    }
    full = (1 << router.vcs) - 1
    result = []
    for number in range(topology.routers):
        if lookup is not None:
            tables.lookup_outputs(number)
        escape = lookup is None and bool((tables.escape[number] >= 0).any())
        free = tables.vc_rule[number].shape[0] == 1 and bool((tables.vc_rule[number] == full).all())
        rule = () if free and not escape else _as_rule(tables.vc_rule[number])
        try:
            result.append(
                RouterParams(
                    ports=topology.max_ports,
                    rc="table" if lookup is None else "lookup",
                    rc_cycles=router.rc_cycles if lookup is None else 0,
                    width_bits=router.flit_bits if width_bits is None else width_bits,
                    address_bits=config.address.width_bits,
                    tag_bits=router.tag_bits if tag_bits is None else tag_bits,
                    length_bits=router.length_bits,
                    routes=tables.routes(number) if lookup is None else (),
                    vc_rule=rule,
                    escape_rule=_as_rule(tables.escape_rule[number]) if escape else (),
                    lookup=lookup,
                    output_kind="port_set" if lookup is not None and tables.port_sets else "port",
                    **given,
                    **kinds,
                )
            )
        except ValueError as error:
            raise UserError(f"router: {str(error).replace('width_bits', 'flit_bits', 1)}") from error
    return tuple(result)
