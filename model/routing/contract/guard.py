"""A routing algorithm of a user's file in the kernel: ours stands before it, calls it, and looks at what it returns.

The table of such an algorithm begins with what its guard needs to know (`_FIRST` entries; for each port of each
router the VCs that a candidate may name, none where the port leads nowhere; then for each port its host, or −1), so
that it comes along wherever the table goes.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np
from numba import int64
from numpy.typing import NDArray

from hopforge.model.kernel.checked import UNKNOWN_LINE, VALUE_BITS, call_checked
from hopforge.model.kernel.compile import c_function, inlined, inner, kernel
from hopforge.model.network.core.candidates import candidate_mask, candidate_port
from hopforge.model.network.core.net_record import ROUTE_SIGNATURE, Net
from hopforge.model.network.core.user_code import (
    COUNT,
    FOREIGN_TABLE,
    LEARN_ARGUMENTS,
    NO_CANDIDATE,
    NO_LINK,
    NO_PORT,
    NO_VC,
    PHASE,
    REPORT_ARGUMENTS,
    ROUTE_ARGUMENTS,
    UNWRITTEN_CANDIDATE,
    WRONG_HOST,
    Role,
    guard_user_function,
    make_memory,
    make_out,
    make_table,
    note_exception,
    note_mistake,
    note_of,
    note_place,
    route_arguments,
)
from hopforge.model.network.parts.feedback import LEARN_SIGNATURE, REPORT_SIGNATURE, Feedback
from hopforge.model.routing.contract.fields_read import fields_read
from hopforge.model.routing.contract.plan import RoutingPlan
from hopforge.model.topology import Topology

_MARK = 0x68667275  # the first entry of such a table
(
    _MARKED, _START, _ENTRIES, _MEMORY, _CANDIDATES, _PHASES, _PORTS,
    _ROUTE, _REPORT, _LEARN, _PROVED, _HOSTS, _FIRST,
) = range(13)  # fmt: skip


def guarded_plan(plan: RoutingPlan, topology: Topology, vcs: int, key: str) -> RoutingPlan:
    """Put our guards before the functions of a user's plan, and what they have to know before its table.

    Parameters
    ----------
    plan : RoutingPlan
        As `prepare` of the file returned it, with arrays of the right kinds.
    topology : Topology
        The network that it was made for.
    vcs : int
        Virtual channels per port.
    key : str
        Configuration key of the file, for messages.

    Raises
    ------
    UserCodeError
        A function that cannot be compiled or takes something else.
    """
    ports, routers = topology.max_ports, topology.routers
    limits = {
        "max_candidates": plan.max_candidates,
        "phases": plan.phases,
        "last_phase": plan.phases - 1,
        "last_port": ports - 1,
        "last_vc": vcs - 1,
    }
    header = np.zeros(_FIRST, np.int32)

    def guard(role: Role, place: int, function: Any) -> Any:
        guarded, header[place] = guard_user_function(function, role, key, limits)
        return guarded

    route = guard(ROUTE, _ROUTE, plan.route)
    feedback = plan.feedback and Feedback(
        guard(REPORT, _REPORT, plan.feedback.report), guard(LEARN, _LEARN, plan.feedback.learn)
    )
    leads = np.zeros((routers, ports), np.int32)
    leads[:, : topology.peer_router.shape[1]] = topology.peer_router >= 0
    leads[topology.host_router, topology.host_port] = 1
    allowed = (leads * ((1 << vcs) - 1)).reshape(-1)
    hosts = np.full((routers, ports), -1, np.int32)
    hosts[topology.host_router, topology.host_port] = np.arange(topology.hosts)
    header[_MARKED], header[_START], header[_HOSTS] = _MARK, _FIRST + 2 * len(allowed), _FIRST + len(allowed)
    header[_ENTRIES], header[_MEMORY] = plan.table.size, plan.memory.size
    header[_CANDIDATES], header[_PHASES], header[_PORTS] = plan.max_candidates, plan.phases, ports
    table = np.concatenate([header, allowed, hosts.reshape(-1), plan.table])
    return replace(
        plan, route=route, every=None, feedback=feedback, table=table, unguarded=plan, of_paths=(), among=None, rows=(),
    )  # fmt: skip


def spare_guard(plan: RoutingPlan, table: NDArray[np.int32]) -> None:
    """Let the guard leave out its look at the answers: the proof has seen all that the relation can return.

    It has called the guard in every state that packets can reach, with all that they may draw, and refused the file if
    one answer was wrong. During the run the relation gives the same: its answer follows from what the proof explored
    (router, input, fields of the packet, draws) and from constants: it was compiled for records that have no other
    fields (`_narrow_route`). `table` cannot be written by a user's code, what
    the network is built of does not change, and numba freezes the globals of a function. A relation that looks at
    queues or at memory (`FieldsRead.changing`) can give more than the proof saw, and keeps the whole guard; so does one
    over aggregated links, whose table stands behind another one. Indices are
    checked and exceptions caught as before.

    Parameters
    ----------
    plan : RoutingPlan
        Proved for all hosts by `model.routing.proof.deadlock.check_routing`, for packets that are sent once.
    table : ndarray, int32
        The table of the network that was explored; changed.
    """
    written = plan.unguarded
    if written is None or written.feedback is not None or table[_MARKED] != _MARK:
        return
    if not fields_read(written.route).changing:
        table[_PROVED] = 1


@cache
def _call_narrow(packet: frozenset[str], written: frozenset[str]) -> Any:
    return call_checked(route_arguments(packet, written))


def _narrow_route(relation: Any) -> tuple[str, dict[str, Any]]:
    """Let only those fields exist for a relation that the proof heeds (`user_code.Role.narrow`)."""
    reads = fields_read(relation)
    # no proof, or one that knows what changes and spares no guard; that draws as only our own code does
    if reads.unseen or reads.changing or reads.kernel_draws:
        return "", {}
    packet, written = frozenset({"dst", *reads.fields}), frozenset(reads.written)
    # with these records it cannot write another field; a packet begins with phase 0
    names = {"_call_route": _call_narrow(packet, written), "_WRITES_PHASE": "phase" in written}
    return f" reads {sorted(packet)} writes {sorted(written)}", names


#: whether the relation may write ``packet.phase`` (`_narrow_route` knows better)
_WRITES_PHASE = True
_call_route = call_checked(ROUTE_ARGUMENTS)
_call_report = call_checked(REPORT_ARGUMENTS)
_call_learn = call_checked(LEARN_ARGUMENTS)


@inner
def _refuse(net: Net, table: Any, router: int, packed: int, number: int, which: int, count: int) -> None:
    """Note why a candidate is none that a router can take."""
    if packed >= 0 and packed >> VALUE_BITS == 0:
        note_mistake(net, UNWRITTEN_CANDIDATE, number, int64(0), which, count)
        return
    line = -1 - packed if packed < 0 else packed >> VALUE_BITS
    line = 0 if line == UNKNOWN_LINE else line
    port, mask = candidate_port(packed), candidate_mask(packed)
    if packed < 0:
        note_mistake(net, NO_CANDIDATE, number, line, which, int64(0))
    elif port >= table[_PORTS]:
        note_mistake(net, NO_PORT, number, line, which, port)
    elif table[_FIRST + table[_PORTS] * router + port] == 0:
        note_mistake(net, NO_LINK, number, line, which, port)
    elif mask == 0 or mask & ~table[_FIRST + table[_PORTS] * router + port] != 0:
        note_mistake(net, NO_VC, number, line, which, mask)
    else:
        note_mistake(net, WRONG_HOST, number, line, which, port)


@inlined
def _fits(net: Net, table: Any, router: int, packed: int, destination: int) -> bool:
    """Whether a candidate is one that a router can take."""
    port, mask = candidate_port(packed), candidate_mask(packed)
    if packed >> VALUE_BITS <= 0 or port >= table[_PORTS]:  # no line of the user's wrote it, or a bad one
        return False
    place = table[_PORTS] * router + port
    host = table[table[_HOSTS] + place]
    return (mask != 0) & (mask & ~table[_FIRST + place] == 0) & ((host < 0) | (host == destination))


@inner
def _tell(net: Net, table: Any, number: int, router: int, packet: Any, count: int, raised: int, size: int) -> None:
    """Note what is wrong with the answer of a relation, if it is not one of the candidates."""
    if raised != 0:
        note_exception(net, number, raised, size)
    elif count < 0 or count > table[_CANDIDATES]:
        note_mistake(net, COUNT, number, int64(0), int64(0), count)
    else:
        note_mistake(net, PHASE, number, int64(0), int64(0), int64(packet.phase))


#: the function of the user's that a guard calls: `guard_user_function` gives each guard its own
user_function: Any = None


def _guard_relation(identity: str, most: int, phases: int) -> Callable[..., int]:
    def guard(
        router: int, in_port: int, in_vc: int, packet: Any, net: Net, table: Any, memory: Any, out: Any
    ) -> int:
        if len(identity) == 0 or net.mistake != 0:
            return 0
        note = note_of(net)
        count, raised, size = _call_route(
            user_function, router, in_port, in_vc, packet, net,
            make_table(table, int64(table[_START]), int64(table[_ENTRIES]), note),
            make_memory(memory, int64(0), int64(table[_MEMORY]), note),
            make_out(out, int64(0), int64(most), note),
        )  # fmt: skip
        if raised == 0 and table[_PROVED] != 0:
            return count
        if raised == 0 and 0 <= count <= most and (not _WRITES_PHASE or 0 <= packet.phase < phases):
            wrong = -1
            for k in range(count):  # the lines stay in the candidates: who reads one takes its bits alone
                if not _fits(net, table, router, out[k], int64(packet.dst)):
                    wrong = k
                    break
            if wrong < 0:
                return count
            _refuse(net, table, router, out[wrong], int64(table[_ROUTE]), wrong, count)
        else:
            _tell(net, table, int64(table[_ROUTE]), router, packet, count, raised, size)
        note_place(net, router, in_port, in_vc, int64(packet.dst))
        packet.phase = 0  # an index in the proof
        return 0

    return guard


@inner
def _foreign(net: Net, table: Any) -> bool:
    """Whether `table` is not the one that begins with our header (aggregated links); noted."""
    if table[_MARKED] == _MARK:
        return False
    note_mistake(net, FOREIGN_TABLE, int64(0), int64(0), int64(0), int64(0))
    return True


def _guard_report(identity: str, most: int, phases: int) -> Callable[..., int]:
    def guard(
        router: int, in_port: int, packet: Any, elapsed: int, net: Net, table: Any, memory: Any, note: Any
    ) -> int:
        if len(identity) == 0 or net.mistake != 0 or _foreign(net, table):
            return 0
        at = note_of(net)
        wanted, raised, size = _call_report(
            user_function, router, in_port, packet, elapsed, net,
            make_table(table, int64(table[_START]), int64(table[_ENTRIES]), at),
            make_memory(memory, int64(0), int64(table[_MEMORY]), at), note,
        )  # fmt: skip
        if raised != 0:
            note_exception(net, int64(table[_REPORT]), raised, size)
            note_place(net, router, in_port, int64(0), int64(packet.dst))
            return 0
        return wanted

    return guard


def _guard_learn(identity: str, most: int, phases: int) -> Callable[..., int]:
    def guard(router: int, out_port: int, out_vc: int, note: Any, net: Net, table: Any, memory: Any) -> int:
        if len(identity) == 0 or net.mistake != 0 or _foreign(net, table):
            return 0
        at = note_of(net)
        _, raised, size = _call_learn(
            user_function, router, out_port, out_vc, note, net,
            make_table(table, int64(table[_START]), int64(table[_ENTRIES]), at),
            make_memory(memory, int64(0), int64(table[_MEMORY]), at),
        )  # fmt: skip
        if raised != 0:
            note_exception(net, int64(table[_LEARN]), raised, size)
            note_place(net, router, out_port, out_vc, int64(note.key))
        return 0

    return guard


ROUTE = Role(
    ROUTE_ARGUMENTS, "router, in_port, in_vc, packet, net, table, memory, out", "relation(...)", _guard_relation,
    kernel(ROUTE_SIGNATURE), _narrow_route,
)  # fmt: skip
REPORT = Role(
    REPORT_ARGUMENTS, "router, in_port, packet, elapsed, net, table, memory, note", "reporter(...)", _guard_report,
    partial(c_function, REPORT_SIGNATURE),
)  # fmt: skip
LEARN = Role(
    LEARN_ARGUMENTS, "router, out_port, out_vc, note, net, table, memory", "learner(...)", _guard_learn,
    partial(c_function, LEARN_SIGNATURE),
)  # fmt: skip
