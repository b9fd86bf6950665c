"""How the calls of a trace become a program: collectives expanded, receives matched with sends."""

from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopforge.model.config.workload import CollectivesConfig
from hopforge.model.free_memory import refuse_beyond_memory
from hopforge.model.kernel.compile import kernel
from hopforge.model.workload.agreement import listed, same_calls
from hopforge.model.workload.calls import KINDS, LATER_POST, LATER_RECEIVE, UNKNOWN, CallTable, RankCalls
from hopforge.model.workload.collective_call import CollectiveCall, kept_transfers, only_kept
from hopforge.model.workload.collective_choice import OPERATIONS
from hopforge.model.workload.expanded_collectives import Transfers, expanded, is_large, transfers_of
from hopforge.model.workload.matched_receives import matched_sends
from hopforge.model.workload.operations import JOIN, POST, RECEIVE, SEND
from hopforge.model.workload.program import Program, RegularProgram
from hopforge.model.workload.trace import COLLECTIVES, Trace, TraceError
from hopforge.model.workload.unit_calls import UnitCall, UnitCalls, UnitGroups

__all__ = ["LEAST_BYTES", "compile_program"]

#: memory that a message of a collective needs at least; 176 were measured, most of them while everything is joined
LEAST_BYTES = 150


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
        if self.only is None:
            self._expand_all(collectives)

    def _collect_calls(self) -> list[CollectiveCall]:
        """Put the calls of the members of each communicator together, and note where each rank calls them."""
        trace = self.trace
        kinds = np.array([action.communicator if action.name in COLLECTIVES else -1 for action in trace.calls])
        found: list[CollectiveCall] = []
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
                actions = tuple(trace.calls[n] for n in numbers[:, column].tolist())
                found.append(CollectiveCall(actions, defaults, members))
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
        chosen, ranks = self.calls[0].chosen(collectives), self.trace.ranks
        if not is_large(chosen.parts, ranks) or chosen.skip_empty or self.calls[0].members != tuple(range(ranks)):
            return None
        return transfers_of(chosen.parts, ranks)

    def finish_only(self, transfers: Transfers) -> Program:
        """Return the program of `_only_large`."""
        ranks = self.trace.ranks
        sizes = transfers.sizes(self.calls[0].chosen(self.collectives).sizes(ranks))
        return RegularProgram.of(ranks, transfers, sizes, np.array([called[0][0] for called in self.called], np.int32))

    def _expand_all(self, collectives: CollectivesConfig) -> None:
        """Expand all calls; those that repeat are refused at the first if their messages do not fit in memory.

        Raises
        ------
        UserError
            They do not.
        """
        repeats, messages = Counter(id(call.actions[0]) for call in self.calls), 0
        for call in self.calls:
            before = self.collective_messages
            self._expand(call, collectives)
            again = repeats.pop(id(call.actions[0]), 0)
            if again > 1:
                messages += again * (self.collective_messages - before)
                what = f"workload: the {messages:,} messages of {len(self.calls):,} collectives"
                refuse_beyond_memory(messages * LEAST_BYTES, what)

    def _expand(self, call: CollectiveCall, collectives: CollectivesConfig) -> None:
        ranks = len(call.actions)
        operation = OPERATIONS[call.name]
        if operation in collectives.in_network:
            if self._join(call, operation):
                return
            other = getattr(collectives.by_hosts, operation)
            collectives = collectives.model_copy(update={operation: other})
        chosen = call.chosen(collectives)
        found = expanded(chosen.parts, ranks)
        transfers, operations = found.transfers, found.operations
        count = len(transfers.source)
        if count:
            sizes = transfers.sizes(chosen.sizes(ranks))
            kept = kept_transfers(transfers, chosen, sizes)
            source, destination = transfers.source, transfers.destination
            if kept is not None:
                operations, count = only_kept(operations, kept), int(kept.sum())
                source, destination, sizes = source[kept], destination[kept], sizes[kept]
            everybody = call.members == tuple(range(self.trace.ranks))
            members = np.array(call.members, np.int32)
            self.sources.append(source if everybody else members[source])
            self.destinations.append(destination if everybody else members[destination])
            self.sizes.append(sizes)
        base = self.collective_messages
        self.collective_messages += count
        self.call_operations.append(tuple(part + KINDS * base if base else part for part in operations))

    def _join(self, call: CollectiveCall, operation: str) -> bool:
        """Let units do a call if they can; return whether they do.

        Raises
        ------
        TraceError
            They cannot, and no algorithm of hosts is named.
        """
        assert self.groups is not None and self.host is not None, "asked before"
        group = self.groups.group_of(self.host[list(call.members)].tolist())
        problem = group if isinstance(group, str) else self.groups.problem(operation, call.datatypes)
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
        amount = call.amount(max(root, 0))
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
        matched = matched_sends(sends, receives)
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
