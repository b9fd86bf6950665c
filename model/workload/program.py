"""A recorded MPI program as messages between ranks, and the order in which their packets enter the network.

The network simulator runs the operations by the times at which messages arrive (`model.network.parts.programs`). The
replay through caches has no times; its order (guides/workloads.md): time goes in turns. In each turn every rank, in
increasing number, sends one packet of the message it is at; a rank that waits for a message waits until all packets of
that message have been sent, and sends nothing until then. Sending never waits. Computation takes no time.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopforge.model.config.workload import CollectivesConfig
from hopforge.model.kernel.compile import kernel
from hopforge.model.workload.agreement import ROOTED, listed, same_calls
from hopforge.model.workload.calls import KINDS, LATER_POST, LATER_RECEIVE, UNKNOWN, CallTable, RankCalls
from hopforge.model.workload.collective_choice import OPERATIONS, Chosen, choose
from hopforge.model.workload.collective_sizes import VECTORS, Amount, Sizes
from hopforge.model.workload.expanded_collectives import Transfers, alike_operations, expanded, is_large, transfers_of
from hopforge.model.workload.operations import JOIN, POST, RECEIVE, SEND
from hopforge.model.workload.trace import COLLECTIVES, DATATYPES, Action, Trace, TraceError
from hopforge.model.workload.unit_calls import UnitCall, UnitCalls, UnitGroups

MAX_PACKETS = 1 << 30
#: ranks that wait for ever which an error names
NAMED_RANKS = 8


@dataclass(frozen=True, eq=False)
class Program:
    """What every rank does, in its order.

    Attributes
    ----------
    ranks : int
        Number of ranks.
    first : ndarray, int64[rank + 1]
        Where the operations of a rank start.
    kind : ndarray, int8[operation]
        SEND, WAIT_SENT, POST, RECEIVE, COMPUTE, SLEEP or JOIN (`model.workload.operations`).
    operand : ndarray, int64[operation]
        Number of the message; of COMPUTE and SLEEP: of the amount.
    action : ndarray, int32[operation]
        Action of the rank's trace that the operation belongs to.
    amount : ndarray, float64[...]
        Flops of COMPUTE, seconds of SLEEP.
    source, destination : ndarray, int32[message]
        Ranks.
    size_bytes : ndarray, int64[message]
        Payload.
    units : UnitCalls, optional
        Collectives that collective units do; the operand of JOIN is a part of them.
    """

    ranks: int
    first: NDArray[np.int64]
    kind: NDArray[np.int8]
    operand: NDArray[np.int64]
    action: NDArray[np.int32]
    amount: NDArray[np.float64]
    source: NDArray[np.int32]
    destination: NDArray[np.int32]
    size_bytes: NDArray[np.int64]
    units: UnitCalls | None = None

    @property
    def messages(self) -> int:
        """Number of messages, those of a rank to itself included."""
        return len(self.source)


class RegularProgram(Program):
    """One collective in whose rounds every rank sends one message and receives one, and nothing else.

    In a round a rank posts its receive, sends, waits for what it receives and until what it sent has left. What rank r
    sends in round i is message i · ranks + r. `kind` and `operand`, most of the memory, are made when they are asked
    for.

    Attributes
    ----------
    in_rounds : bool
        Whether that still holds: not of one that `dataclasses.replace` makes.
    """

    in_rounds = False

    @classmethod
    def of(
        cls, ranks: int, transfers: Transfers, size_bytes: NDArray[np.int64], call: NDArray[np.int32]
    ) -> "RegularProgram":
        """Return the program of transfers of `REGULAR`.

        Parameters
        ----------
        ranks : int
            Number of ranks.
        transfers : Transfers
            Its messages.
        size_bytes : ndarray, int64[message]
            Payload.
        call : ndarray, int32[rank]
            Where each rank calls it in its trace.
        """
        operations = 4 * len(transfers.source)
        each = operations // ranks
        found = cls.__new__(cls)
        alike = bool((call == call[0]).all())
        vars(found).update(
            ranks=ranks, first=np.arange(ranks + 1, dtype=np.int64) * each,
            action=np.broadcast_to(call[0], operations) if alike else np.repeat(call, each), amount=np.empty(0),
            source=transfers.source, destination=transfers.destination, size_bytes=size_bytes, units=None,
            in_rounds=True,
        )  # fmt: skip
        return found

    def __getattr__(self, name: str) -> NDArray[Any]:
        """Make the operations."""
        if name not in ("kind", "operand") or "destination" not in vars(self):
            raise AttributeError(name)
        kind, operand = alike_operations(self.ranks, self.destination)
        vars(self).update(kind=kind, operand=operand)
        return kind if name == "kind" else operand


def _kept(transfers: Transfers, chosen: Chosen, sizes: Sizes) -> NDArray[np.bool_] | None:
    """Return bool[transfer], which are sent; None: all."""
    if not chosen.skip_empty and not transfers.optional.any():
        return None
    kept = sizes > 0
    if len(transfers.silent):
        kept |= transfers.silent
    if not chosen.skip_empty:
        kept |= ~transfers.optional
    return None if kept.all() else kept


def _without(operations: tuple[NDArray[np.int64], ...], kept: NDArray[np.bool_]) -> tuple[NDArray[np.int64], ...]:
    """Return the operations of the transfers that are kept, numbered anew."""
    number = np.cumsum(kept) - 1
    found = []
    for program in operations:
        here = program[kept[program // KINDS]]
        found.append(KINDS * number[here // KINDS] + here % KINDS)
    return tuple(found)


class _Call(NamedTuple):
    """One collective as all members of its communicator called it: by rank in it."""

    actions: tuple[Action, ...]
    defaults: tuple[int, ...]
    members: tuple[int, ...]


def _datatype_bytes(datatype: int, default: int) -> int:
    return DATATYPES[default if datatype == -2 else datatype][1]


def _own_blocks(call: _Call) -> Sizes:
    """Return what each rank contributes."""
    pairs = zip(call.actions, call.defaults, strict=True)
    return np.array([action.count * _datatype_bytes(action.datatype, default) for action, default in pairs], np.int64)


def _amount(call: _Call, root: int) -> Amount:
    """Return what a call moves."""
    name, ranks = call.actions[0].name, len(call.actions)
    operation = OPERATIONS[name]
    action = call.actions[root]
    element = _datatype_bytes(action.datatype, call.defaults[root])
    if operation in VECTORS:
        return Amount(0 if operation == "barrier" else action.count, element)
    if operation in ("gather", "allgather"):
        return Amount(action.count, element, _own_blocks(call))
    if operation == "alltoall":
        rows = [
            np.array(each.counts or (each.count,) * ranks, np.int64) * _datatype_bytes(each.datatype, default)
            for each, default in zip(call.actions, call.defaults, strict=True)
        ]
        return Amount(action.count, element, np.concatenate(rows))
    return Amount(action.count, element, np.array(action.counts or (action.count,) * ranks, np.int64) * element)


def _chosen(call: _Call, collectives: CollectivesConfig) -> Chosen:
    """Return how a call is done."""
    name = call.actions[0].name
    root = call.actions[0].root if name in ROOTED else 0
    return choose(collectives, name, len(call.actions), root, _amount(call, root))


def waiting_text(program: Program, trace: Trace, waiting: NDArray[np.integer], at: NDArray[np.integer]) -> str:
    """Say which ranks wait for what: ``2 of 4 ranks wait: rank 0 waits for …``.

    Parameters
    ----------
    program, trace : Program, Trace
        What they run, and where that stands.
    waiting : ndarray, int[...]
        The ranks.
    at : ndarray, int[rank]
        The operation at which each rank is.
    """
    parts = []
    for rank in waiting[:NAMED_RANKS].tolist():
        m, action = int(program.operand[at[rank]]), int(program.action[at[rank]])
        if program.kind[at[rank]] == JOIN:
            what = "for the other ranks"
        elif program.kind[at[rank]] == RECEIVE:
            what = f"for a message from rank {program.source[m]}"
        else:
            what = f"until rank {program.destination[m]} takes its message"
        parts.append(f"rank {rank} waits {what} ({trace.action(rank, action).name}, {trace.where(rank, action)})")
    more = f"; and {len(waiting) - NAMED_RANKS} more ranks" if len(waiting) > NAMED_RANKS else ""
    return f"{len(waiting)} of {program.ranks} ranks wait: {'; '.join(parts)}{more}"


def compile_program(
    trace: Trace, collectives: CollectivesConfig, groups: UnitGroups | None = None,
    host: NDArray[np.int32] | None = None,
) -> Program:
    """Expand the collectives of a trace and match its receives with its sends.

    Receives match sends of the same (source, destination, tag) in order, as MPI promises. A rank that receives from any
    source or with any tag does not wait for its receives at all: which message it got is not recorded.

    Parameters
    ----------
    trace : Trace
        The program.
    collectives : CollectivesConfig
        Algorithm of each collective. `alltoallv` takes the pairwise algorithm where `alltoall` is ``bruck``, which is
        for equal blocks.
    groups : UnitGroups, optional
        Of the collective units that do what is ``in_network``.
    host : ndarray, int32[rank], optional
        With `groups`: where the ranks are.

    Raises
    ------
    TraceError
        Ranks disagree on a collective or its root, or wait for a message that is never sent (with file and line);
        a collective that should be done by units and cannot.
    """
    if collectives.in_network and (groups is None or host is None):
        raise TraceError(
            f"workload.collectives.{collectives.in_network[0]}: in_network is for hopforge app (engines flow, by "
            "hopforge itself, and packet) and net with one program; here it needs an algorithm of hosts"
        )
    builder = _Builder(trace, collectives, groups, host)
    if builder.only is not None:
        return builder.finish_only(builder.only)
    for rank in range(trace.ranks):
        builder.add_rank(rank)
    return builder.finish()


class _Builder:
    """Collects operations rank by rank. A message number below 0 stands for a receive that is not matched yet."""

    def __init__(
        self, trace: Trace, collectives: CollectivesConfig, groups: UnitGroups | None, host: NDArray[np.int32] | None
    ) -> None:
        self.trace, self.collectives = trace, collectives
        self.groups, self.host = groups, host
        self.unit_calls: list[UnitCall] = []
        self.unit_parts = 0
        self.defaults = tuple(trace.default_datatype(rank) for rank in range(trace.ranks))
        self.table = CallTable(trace)
        self.parts: list[RankCalls] = []  # per rank
        self.sends = self.received = self.timed = 0  # how many there are
        self.calls = self._collect_calls()
        self.sources: list[NDArray[np.int32]] = []
        self.destinations: list[NDArray[np.int32]] = []
        self.sizes: list[NDArray[np.int64]] = []
        self.call_operations: list[tuple[NDArray[np.int64], ...]] = []
        self.collective_messages = 0
        self.only = self._only_large(collectives)
        for call in self.calls if self.only is None else ():
            self._expand(call, collectives)

    def _collect_calls(self) -> list[_Call]:
        """Put the calls of the members of each communicator together, and note where each rank calls them."""
        trace = self.trace
        kinds = np.array([action.communicator if action.name in COLLECTIVES else -1 for action in trace.calls])
        found: list[_Call] = []
        self.called: list[list[tuple[int, int, int]]] = [[] for _ in range(trace.ranks)]  # action, call, rank in it
        for communicator in np.unique(kinds[kinds >= 0]).tolist():
            everybody = communicator == 0
            members = tuple(range(trace.ranks)) if everybody else trace.communicators[communicator]
            where = [np.flatnonzero(kinds[numbers] == communicator) for numbers in trace.numbers]
            for rank in set(range(trace.ranks)).difference(members):
                if len(where[rank]):
                    name = trace.action(rank, where[rank][0]).name
                    raise TraceError(
                        f"{trace.where(rank, where[rank][0])}: rank {rank} calls {name} in communicator {communicator},"
                        f" which has the ranks {listed(members)}"
                    )
            same_calls(trace, communicator, members, where)
            defaults = tuple(self.defaults[rank] for rank in members)
            numbers = np.stack([trace.numbers[rank][where[rank]] for rank in members])
            for column in range(numbers.shape[1]):
                for place, rank in enumerate(members):
                    self.called[rank].append((int(where[rank][column]), len(found), place))
                found.append(_Call(tuple(trace.calls[n] for n in numbers[:, column].tolist()), defaults, members))
        for called in self.called:
            called.sort()
        return found

    def _only_large(self, collectives: CollectivesConfig) -> Transfers | None:
        """Return the messages of the one large collective that is all that happens, if that is so.

        Its operations are written once, in their place: memory that is new costs more time than what fills it.
        """
        names = [action.name for action in self.trace.calls if action.name not in ("init", "finalize")]
        if len(self.calls) != 1 or len(names) != 1 or any(action.amount > 0 for action in self.trace.calls):
            return None
        if OPERATIONS[names[0]] in collectives.in_network:
            return None
        chosen, ranks = _chosen(self.calls[0], collectives), self.trace.ranks
        if not is_large(chosen.parts, ranks) or chosen.skip_empty or self.calls[0].members != tuple(range(ranks)):
            return None
        return transfers_of(chosen.parts, ranks)

    def finish_only(self, transfers: Transfers) -> Program:
        """Return the program of `_only_large`."""
        ranks = self.trace.ranks
        sizes = transfers.sizes(_chosen(self.calls[0], self.collectives).sizes(ranks))
        return RegularProgram.of(ranks, transfers, sizes, np.array([called[0][0] for called in self.called], np.int32))

    def _expand(self, call: _Call, collectives: CollectivesConfig) -> None:
        ranks = len(call.actions)
        operation = OPERATIONS[call.actions[0].name]
        if operation in collectives.in_network:
            if self._join(call, operation):
                return
            other = getattr(collectives.by_hosts, operation)
            collectives = collectives.model_copy(update={operation: other})
        chosen = _chosen(call, collectives)
        found = expanded(chosen.parts, ranks)
        transfers, operations = found.transfers, found.operations
        count = len(transfers.source)
        if count:
            sizes = transfers.sizes(chosen.sizes(ranks))
            kept = _kept(transfers, chosen, sizes)
            source, destination = transfers.source, transfers.destination
            if kept is not None:
                operations, count = _without(operations, kept), int(kept.sum())
                source, destination, sizes = source[kept], destination[kept], sizes[kept]
            everybody = call.members == tuple(range(self.trace.ranks))
            members = np.array(call.members, np.int32)
            self.sources.append(source if everybody else members[source])
            self.destinations.append(destination if everybody else members[destination])
            self.sizes.append(sizes)
        base = self.collective_messages
        self.collective_messages += count
        self.call_operations.append(tuple(part + KINDS * base if base else part for part in operations))

    def _join(self, call: _Call, operation: str) -> bool:
        """Let units do a call if they can; return whether they do.

        Raises
        ------
        TraceError
            They cannot, and no algorithm of hosts is named.
        """
        assert self.groups is not None and self.host is not None, "asked before"
        group = self.groups.group_of(self.host[list(call.members)].tolist())
        datatypes = [
            default if action.datatype == -2 else action.datatype
            for action, default in zip(call.actions, call.defaults, strict=True)
        ]
        problem = group if isinstance(group, str) else self.groups.problem(operation, datatypes)
        if isinstance(group, str) or problem:
            if getattr(self.collectives.by_hosts, operation) is None:
                rank = call.members[0]
                index = next(at for at, number, _ in self.called[rank] if self.calls[number] is call)
                raise TraceError(
                    f"{self.trace.where(rank, index)}: rank {rank} calls {operation} in_network: {problem}; "
                    f"workload.collectives.by_hosts.{operation} names an algorithm of hosts for such calls"
                )
            return False
        root = call.actions[0].root if operation == "bcast" else -1
        amount = _amount(call, max(root, 0))
        words = self.groups.words(0 if operation == "barrier" else amount.bytes)
        self.unit_calls.append(UnitCall(operation, group, words, call.members, root))
        places = range(self.unit_parts, self.unit_parts + len(call.members))
        self.call_operations.append(tuple(np.array([KINDS * part + JOIN], np.int64) for part in places))
        self.unit_parts += len(call.members)
        return True

    def add_rank(self, rank: int) -> None:
        """Collect the operations of one rank."""
        found = self.table.rank(
            rank, [self.call_operations[number][place] for _, number, place in self.called[rank]],
            first_message=self.collective_messages + self.sends, first_receive=self.received, first_amount=self.timed,
        )
        self.parts.append(found)
        self.sends += len(found.sends)
        self.received += len(found.receives)
        self.timed += len(found.amounts)

    def _check_room(
        self, sends: NDArray[np.int64], receives: NDArray[np.int64], matched: NDArray[np.int64]
    ) -> None:
        """Refuse a receive that has no room for its message."""
        room = receives[:, 4]
        small = np.flatnonzero((matched >= 0) & (room != UNKNOWN) & (room < sends[:, 3][matched]))
        mixed = {pair: self._mixed(*pair) for pair in {(int(r[0]), int(r[1])) for r in receives[small] if not r[2]}}
        small = small[[not mixed.get((int(r[0]), int(r[1])), False) or r[2] != 0 for r in receives[small]]]
        if not len(small):
            return
        source, rank, tag, index, bytes_ = receives[small[0]].tolist()
        message = int(matched[small[0]])
        part = self.parts[source]
        call = part.action[np.flatnonzero(part.operation == KINDS * (self.collective_messages + message) + SEND)[0]]
        more = f"; {len(small) - 1} more receives are too small" if len(small) > 1 else ""
        raise TraceError(
            f"{self.trace.where(rank, index)}: rank {rank} receives at most {bytes_} bytes, the message from rank"
            f" {source} with tag {tag} has {sends[message, 3]} ({self.trace.where(source, call)}){more}"
        )

    def _mixed(self, source: int, rank: int) -> bool:
        """Whether exchanges meet other messages of tag 0: which is whose a trace does not tell."""
        used = [[self.trace.calls[n] for n in np.unique(self.trace.numbers[r])] for r in (source, rank)]
        exchanges = any(a.name == "sendRecv" and a.peer == rank for a in used[0]) or any(
            a.name == "sendRecv" and a.source == source for a in used[1]
        )
        return exchanges and (
            any(a.name in ("send", "isend") and (a.peer, a.tag) == (rank, 0) for a in used[0])
            or any(a.name in ("recv", "irecv") and (a.peer, a.tag) == (source, 0) for a in used[1])
        )

    @staticmethod
    def _other_ranks(waiting: NDArray[np.int64], rank: int) -> str:
        """Say which other ranks wait for messages that are never sent."""
        others = [str(other) for other in np.unique(waiting) if other != rank]
        if not others:
            return ""
        more = f" and {len(others) - 8} more" if len(others) > 8 else ""
        return f"; so {'does rank' if len(others) == 1 else 'do ranks'} {', '.join(others[:8])}{more}"

    def finish(self) -> Program:
        """Match receives with sends and join everything."""
        ranks = np.arange(len(self.parts))
        sends = np.concatenate([part.sends for part in self.parts])  # destination, tag, bytes
        sends = np.insert(sends, 0, np.repeat(ranks, [len(part.sends) for part in self.parts]), axis=1)
        receives = np.concatenate([part.receives for part in self.parts])  # source, tag, action, bytes
        receives = np.insert(receives, 1, np.repeat(ranks, [len(part.receives) for part in self.parts]), axis=1)
        matched = _match(sends, receives)
        if len(sends):
            self._check_room(sends, receives, matched)
        first = np.concatenate([[0], np.cumsum([len(part.operation) for part in self.parts])]).astype(np.int64)
        kind, operand = np.empty(first[-1], np.int8), np.empty(first[-1], np.int64)
        action = np.empty(first[-1], np.int32)
        self.call_operations.clear()
        for rank, part in enumerate(self.parts):
            chosen = slice(first[rank], first[rank + 1])
            _part(part.operation, kind[chosen], operand[chosen])
            action[chosen] = part.action
        if len(receives):
            first, kind, operand, action = self._matched(receives, matched, first, kind, operand, action)
        return Program(
            ranks=self.trace.ranks, first=first, kind=kind, operand=operand, action=action,
            amount=np.concatenate([part.amounts for part in self.parts]),
            source=_joined([*self.sources, sends[:, 0].astype(np.int32)], np.int32),
            destination=_joined([*self.destinations, sends[:, 1].astype(np.int32)], np.int32),
            size_bytes=_joined([*self.sizes, sends[:, 3]], np.int64),
            units=UnitCalls.of(self.unit_calls) if self.unit_calls else None,
        )

    def _matched(
        self, receives: NDArray[np.int64], matched: NDArray[np.int64], first: NDArray[np.int64],
        kind: NDArray[np.int8], operand: NDArray[np.int64], action: NDArray[np.int32],
    ) -> tuple[NDArray[np.int64], NDArray[np.int8], NDArray[np.int64], NDArray[np.int32]]:
        """Put the messages that receives get in their place."""
        waited = operand[kind == LATER_RECEIVE]
        lost = waited[matched[waited] < 0]
        if len(lost):
            source, rank, tag, index, _ = receives[lost[0]]
            raise TraceError(
                f"{self.trace.where(rank, index)}: rank {rank} waits for a message from rank {source} with tag {tag}"
                f" that is never sent{self._other_ranks(receives[lost, 1], rank)}"
            )
        for later, meant in ((LATER_POST, POST), (LATER_RECEIVE, RECEIVE)):
            chosen = kind == later
            partner = matched[operand[chosen]]
            operand[chosen] = np.where(partner < 0, -1, self.collective_messages + partner)
            kind[chosen] = meant
        # a receive that nobody sends may be posted as long as nobody waits for it
        keep = operand >= 0
        first = np.concatenate([[0], np.cumsum(keep)])[first].astype(np.int64)
        return first, kind[keep], operand[keep], action[keep]


def _joined(parts: list[NDArray[Any]], dtype: Any) -> NDArray[Any]:
    """Concatenate, without a copy if there is but one part with elements."""
    filled = [part for part in parts if len(part)]
    return filled[0] if len(filled) == 1 else np.concatenate([np.empty(0, dtype), *filled])


@kernel
def _part(operation, kind, operand):  # type: ignore[no-untyped-def]
    for at in range(len(operation)):
        kind[at], operand[at] = operation[at] & (KINDS - 1), operation[at] // KINDS


def _match(sends: NDArray[np.int64], receives: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return int64[receive], the send it gets: the k-th of its (source, destination, tag); -1 if there is none."""
    both = np.concatenate([sends[:, :3], receives[:, :3]])
    if not len(receives):
        return np.empty(0, np.int64)
    tags, tag = np.unique(both[:, 2], return_inverse=True)
    key = (both[:, 0] << 20 | both[:, 1]) * len(tags) + tag
    code = numbered(key[:len(sends)]), numbered(key[len(sends):])
    order = np.lexsort((code[0], key[:len(sends)]))
    sorted_key, sorted_count = key[:len(sends)][order], code[0][order]
    # sends of one key are neighbours in `order`, numbered 0, 1, …
    start = np.searchsorted(sorted_key, key[len(sends):])
    at = start + code[1]
    inside = at < len(order)
    safe = np.where(inside, at, 0)
    if not len(order):
        return np.full(len(receives), -1, np.int64)
    good = inside & (sorted_key[safe] == key[len(sends):]) & (sorted_count[safe] == code[1])
    return np.where(good, order[safe], -1)


def numbered(key: NDArray[np.int64]) -> NDArray[np.int64]:
    """Count, for each element, how many equal ones stand before it."""
    order = np.argsort(key, kind="stable")
    ordered = key[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=-1))  # keys are not negative
    length = np.diff(np.concatenate([starts, [len(key)]]))
    number = np.empty(len(key), np.int64)
    number[order] = np.arange(len(key)) - np.repeat(starts, length)
    return number


@kernel
def _interleave(first, kind, operand, source, destination, packets, local, at, out_src, out_dst):  # type: ignore[no-untyped-def]
    ranks = len(first) - 1
    left = np.zeros(ranks, np.int64)
    sent = np.zeros(len(source), np.bool_)
    written = 0
    while True:
        moved = False
        running = False
        for rank in range(ranks):
            if left[rank] == 0:
                while at[rank] < first[rank + 1]:
                    number = operand[at[rank]]
                    if kind[at[rank]] == RECEIVE:
                        if not sent[number]:
                            break
                    elif kind[at[rank]] == SEND:
                        if not local[number]:
                            left[rank] = packets[number]
                            break
                        sent[number] = True
                    at[rank] += 1
                    moved = True
            if at[rank] < first[rank + 1]:
                running = True
            if left[rank] > 0:
                number = operand[at[rank]]
                out_src[written] = source[number]
                out_dst[written] = destination[number]
                written += 1
                left[rank] -= 1
                moved = True
                if left[rank] == 0:
                    sent[number] = True
                    at[rank] += 1
        if not running:
            return True
        if not moved:
            return False
    return True


class RankPackets(NamedTuple):
    """Packets in the order in which they enter the network.

    Attributes
    ----------
    source, destination : ndarray, int32[packet]
        Ranks.
    local_messages : int
        Messages between ranks of one host, which never enter the network.
    """

    source: NDArray[np.int32]
    destination: NDArray[np.int32]
    local_messages: int


def interleave(
    program: Program, host: NDArray[np.integer], mtu_bytes: int, trace: Trace,
    ends: tuple[NDArray[np.int32], NDArray[np.int32]] | None = None,
) -> RankPackets:
    """Run all ranks and record the order of their packets (see the module's text).

    Parameters
    ----------
    program : Program
        What to run.
    host : ndarray, int[rank]
        Host of each rank; messages between ranks of one host make no packets.
    mtu_bytes : int
        Payload of a packet; a message of 0 bytes is one packet.
    trace : Trace
        Where the operations stand.
    ends : tuple of (ndarray, int32[message]), optional
        Hosts at both ends of each message, in place of `host`; packets are then between them, not between ranks.

    Raises
    ------
    TraceError
        Ranks that wait for each other for ever (which, for what, and where that stands), or more than `MAX_PACKETS`
        packets.
    """
    packets = np.maximum(1, -(-program.size_bytes // mtu_bytes))
    source, destination = (program.source, program.destination) if ends is None else ends
    local = host[source] == host[destination] if ends is None else source == destination
    total = int(packets[~local].sum())
    if total > MAX_PACKETS:
        raise TraceError(f"workload.mtu_bytes: {mtu_bytes} makes {total} packets, more than {MAX_PACKETS}")
    out_src, out_dst = np.empty(total, np.int32), np.empty(total, np.int32)
    at = program.first[:-1].copy()
    ended = _interleave(
        program.first, program.kind, program.operand, source, destination, packets, local, at, out_src, out_dst,
    )
    if not ended:
        waiting = np.flatnonzero(at < program.first[1:])
        raise TraceError(f"workload: the program cannot end: {waiting_text(program, trace, waiting, at)}")
    return RankPackets(out_src, out_dst, int(local.sum()))
