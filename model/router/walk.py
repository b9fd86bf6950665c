"""Walks packets through a network: the answers of a routing relation to every packet that can be there.

A router sees less of a packet than the relation may: the answers must depend on destination and input VC alone, and
have the form of a table.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import int64, types, uint64
from numpy.typing import NDArray

from hopforge.model.kernel.bits import trailing_zeros
from hopforge.model.kernel.checked import VALUE_BITS
from hopforge.model.kernel.compile import entry
from hopforge.model.kernel.memory import floats, int32s, int64s
from hopforge.model.network.build import build_net
from hopforge.model.network.core.candidates import (
    blank_candidates,
    candidate_level,
    candidate_mask,
    candidate_need,
    candidate_port,
)
from hopforge.model.network.core.layouts import PACKET, PACKET_RECORD
from hopforge.model.network.core.net_record import NET_RECORD, ROUTE_SIGNATURE, Net
from hopforge.model.network.core.records import host_at, input_port, input_vc, output_vc, vc_in_port
from hopforge.model.network.core.state import NetState
from hopforge.model.network.core.user_code import refuse_mistake
from hopforge.model.network.settings import RouterParameters, SourceParameters, Tables
from hopforge.model.routing import RoutingError, RoutingPlan
from hopforge.model.topology import Topology

_CANDIDATE = (1 << VALUE_BITS) - 1  # above it the line of a user's file may stand
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
            if ((host_at(net, h).inject_mask | host_at(net, h).reply_mask) >> v) & 1:
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
        blank_candidates(net, 0)
        found = route(
            int64(port.router),
            int64(port.port),
            vc_in_port(net, input_vc(net, n)),
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
            answer[state, k] = packed & _CANDIDATE
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
class Answers:
    """Answers to packets to one host, by input VC (`model.router.factor` puts hosts and routers before that).

    Attributes
    ----------
    reached : ndarray, bool[input VC]
    mask : ndarray, uint16[input VC, port]
    escape : ndarray, int16[input VC]
    escape_mask : ndarray, uint16[input VC]
    """

    reached: NDArray[np.bool_]
    mask: NDArray[np.uint16]
    escape: NDArray[np.int16]
    escape_mask: NDArray[np.uint16]


class Walker:
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
            routing=plan.table, memory=plan.memory, max_candidates=plan.max_candidates, inject_mask=plan.inject_mask,
            reply_mask=plan.reply_mask,
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
        refuse_mistake(state.record[0])
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

    def answers(self, host: int) -> Answers:
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
        found = Answers(
            np.zeros(NI, bool), np.zeros((NI, P), np.uint16), np.full(NI, -1, np.int16), np.zeros(NI, np.uint16)
        )
        found.reached[n] = True
        found.mask[n], found.escape[n], found.escape_mask[n] = mask, escape, escape_mask
        return found

    def _normal_form(
        self, states: NDArray[np.int64], count: NDArray[np.int64], answer: NDArray[np.int64], host: int
    ) -> tuple[NDArray[np.uint16], NDArray[np.int16], NDArray[np.uint16]]:
        """Split lists of candidates into port masks in increasing order, and one escape behind them."""
        rows = np.arange(len(states))
        live = (np.arange(answer.shape[1]) < count[:, None]) & (candidate_mask.py_func(answer) != 0)
        port, level, mask = (part.py_func(answer) for part in (candidate_port, candidate_level, candidate_mask))

        def refuse(wrong: NDArray[np.bool_], reason: str) -> None:
            if wrong.any():
                raise self.error(int(states[np.flatnonzero(wrong)[0]]) // self.plan.phases, host, reason)

        refuse((live & (candidate_need.py_func(answer) != 0)).any(axis=1), "asks for free flits (need_flits)")
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
        refuse(
            disordered.any(axis=1),
            "lists ports other than in increasing order, as routing.links: adaptive does (take own_first or "
            "destination)",
        )
        masks = np.zeros((len(states), self.topology.max_ports), np.uint16)
        for k in range(answer.shape[1]):
            chosen = level0[:, k]
            masks[rows[chosen], port[chosen, k]] = mask[chosen, k]
        escaping = some & escapes[rows, np.maximum(last, 0)]
        escape = np.where(escaping, port[rows, np.maximum(last, 0)], -1).astype(np.int16)
        escape_mask = np.where(escaping, mask[rows, np.maximum(last, 0)], 0).astype(np.uint16)
        return masks, escape, escape_mask
