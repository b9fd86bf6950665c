"""The calls of a rank as operations on messages: sends, receives and waits, request by request."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopforge.model.kernel.compile import kernel
from hopforge.model.workload.operations import COMPUTE, JOIN, SEND, SLEEP, WAIT_SENT
from hopforge.model.workload.trace import ANY_SOURCE, ANY_TAG, COLLECTIVES, DATATYPES, PROC_NULL, Action, Trace

#: an operation under construction is operand · KINDS + kind
KINDS = 16
#: their operand is a receive that is not matched with its send yet
LATER_POST, LATER_RECEIVE = 6, 7
_NO_CALL, _SEND, _ISEND, _RECV, _IRECV, _WAIT, _WAITALL, _BOTH, _COMPUTE, _SLEEP, _COLLECTIVE = range(11)
_CODES = {
    "send": _SEND, "isend": _ISEND, "recv": _RECV, "irecv": _IRECV, "wait": _WAIT, "waitall": _WAITALL,
    "sendRecv": _BOTH, "compute": _COMPUTE, "sleep": _SLEEP, **dict.fromkeys(COLLECTIVES, _COLLECTIVE),
}
#: most operations, sends and receives that a call makes, by its code (collectives' messages beside)
_OPERATIONS = np.array([0, 2, 1, 2, 1, 1, 0, 4, 1, 1, 1])
_NULL = -1
#: bytes of a receive whose room is not known
UNKNOWN = -1

_CALL = np.dtype([
    ("code", np.int8), ("peer", np.int64), ("source", np.int64), ("tag", np.int64), ("count", np.int64),
    ("element", np.int64), ("room", np.int64), ("recv_element", np.int64), ("amount", np.float64), ("key", np.int64),
])


class RankCalls(NamedTuple):
    """Operations of one rank, and the messages of its own calls.

    Attributes
    ----------
    operation : ndarray, int64[operation]
        operand · KINDS + kind. LATER_POST and LATER_RECEIVE have the number of a receive, others that of a message or
        an amount.
    action : ndarray, int32[operation]
        The call that it belongs to.
    sends : ndarray, int64[send, 3]
        Destination, tag and bytes.
    receives : ndarray, int64[receive, 4]
        Source, tag, call, and bytes that it has room for (`UNKNOWN`: any).
    amounts : ndarray, float64[...]
        Flops or seconds.
    """

    operation: NDArray[np.int64]
    action: NDArray[np.int32]
    sends: NDArray[np.int64]
    receives: NDArray[np.int64]
    amounts: NDArray[np.float64]


class CallTable:
    """The different calls of a trace as records, so that ranks can be expanded without a look at the objects.

    Parameters
    ----------
    trace : Trace
        The program.
    """

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._calls = np.zeros(len(trace.calls), _CALL)
        for number, action in enumerate(trace.calls):
            self._calls[number] = _record(action)

    def rank(
        self, rank: int, collectives: list[NDArray[np.int64]], *, first_message: int, first_receive: int,
        first_amount: int,
    ) -> RankCalls:
        """Return the operations of one rank.

        Parameters
        ----------
        rank : int
            Which one.
        collectives : list of ndarray
            Operations of each collective that it calls, in their order.
        first_message, first_receive, first_amount : int
            Numbers of its first send, receive and amount.
        """
        used, numbers = np.unique(self._trace.numbers[rank], return_inverse=True)
        calls = self._calls[used]
        default = DATATYPES[self._trace.default_datatype(rank)][1]
        for element in ("element", "recv_element"):
            calls[element] = np.where(calls[element] < 0, default, calls[element])
        keys = _number_requests(calls, rank)
        codes = np.bincount(calls["code"][numbers], minlength=len(_OPERATIONS))
        if len(collectives) == 1 and codes.sum() == codes[_NO_CALL] + 1 and not (calls["amount"] > 0).any():
            return _only_collective(collectives[0], int(np.flatnonzero(calls["code"][numbers] == _COLLECTIVE)[0]))
        own = sum(map(len, collectives))
        size = int(codes @ _OPERATIONS) + int(codes[[_ISEND, _IRECV]].sum()) + own
        first = np.concatenate([[0], np.cumsum([len(part) for part in collectives])]).astype(np.int64)
        operation, action = np.empty(size, np.int64), np.empty(size, np.int32)
        sends = np.empty((int(codes[[_SEND, _ISEND, _BOTH]].sum()), 3), np.int64)
        receives = np.empty((int(codes[[_RECV, _IRECV, _BOTH]].sum()), 4), np.int64)
        amounts = np.empty(int(codes[[_COMPUTE, _SLEEP, _COLLECTIVE]].sum()))
        requests = int(codes[[_ISEND, _IRECV]].sum())
        receiving = np.isin(calls["code"], (_RECV, _IRECV, _BOTH))
        where = np.where(calls["code"] == _BOTH, calls["source"], calls["peer"])
        wild = bool((receiving & ((where == ANY_SOURCE) | (calls["tag"] == ANY_TAG))).any())
        head, tail = np.full(keys, _NULL, np.int64), np.full(keys, _NULL, np.int64)
        following = np.full(requests, _NULL, np.int64)
        awaited = np.empty(requests, np.int64)  # operation that a wait for a request stands for, or _NULL
        ends = _expand(
            numbers, calls, head, tail, following, awaited, np.zeros(requests, np.bool_), wild,
            np.concatenate([np.empty(0, np.int64), *collectives]), first, first_message, first_receive, first_amount,
            operation, action, sends, receives, amounts,
        )
        return RankCalls(
            operation[: ends[0]], action[: ends[0]], sends[: ends[1]], receives[: ends[2]], amounts[: ends[3]]
        )


def _only_collective(operation: NDArray[np.int64], call: int) -> RankCalls:
    """Return the operations of a rank that calls one collective, however many they are, without a copy."""
    return RankCalls(
        operation, np.broadcast_to(np.int32(call), len(operation)), np.empty((0, 3), np.int64),
        np.empty((0, 4), np.int64), np.empty(0),
    )


def _record(action: Action) -> tuple[int, int, int, int, int, int, int, int, float, int]:
    code = _CODES.get(action.name, _NO_CALL)
    element = -1 if action.datatype == -2 else DATATYPES[action.datatype][1]
    tag = 0 if code == _BOTH else action.tag
    count = action.count if code in (_SEND, _ISEND, _BOTH) else 0
    room, datatype = (action.recv_count, action.recv_datatype) if code == _BOTH else (action.count, action.datatype)
    if room < 0 or (datatype != -2 and DATATYPES[datatype][1] == 0):
        room = UNKNOWN
    recv_element = -1 if datatype == -2 else DATATYPES[datatype][1]
    return code, action.peer, action.source, tag, count, element, room, recv_element, action.amount, 0


def _number_requests(calls: NDArray[np.void], rank: int) -> int:
    """Give (source, destination, tag), by which a wait finds its request, numbers in `key`; return how many."""
    source, peer, tag = calls["source"].copy(), calls["peer"].copy(), calls["tag"]
    sending, receiving = calls["code"] == _ISEND, calls["code"] == _IRECV
    source[sending] = rank
    source[receiving], peer[receiving] = peer[receiving], rank
    chosen = sending | receiving | (calls["code"] == _WAIT)
    if not chosen.any():
        return 0
    names, key = np.unique(np.stack([source, peer, tag], axis=1)[chosen], axis=0, return_inverse=True)
    calls["key"][chosen] = key.reshape(-1)
    return len(names)


@kernel
def _expand(  # type: ignore[no-untyped-def]
    numbers, calls, head, tail, following, awaited, done, wild, collective, collective_first, first_message,
    first_receive, first_amount, operation, action, sends, receives, amounts,
):
    opened, oldest = 0, 0
    at, sent, received, timed, called = 0, 0, 0, 0, 0
    for index in range(len(numbers)):
        call = calls[numbers[index]]
        code = call.code
        before, takes = at, call.amount > 0
        wait_send, wait_receive = _NULL, _NULL
        source = call.source if code == _BOTH else call.peer
        if code in (_RECV, _IRECV, _BOTH) and not wild and source != PROC_NULL:
            receives[received, 0], receives[received, 1], receives[received, 2] = source, call.tag, index
            receives[received, 3] = call.room * call.recv_element if call.room >= 0 else UNKNOWN
            operation[at] = KINDS * (first_receive + received) + LATER_POST
            wait_receive = KINDS * (first_receive + received) + LATER_RECEIVE
            received += 1
            at += 1
        if code in (_SEND, _ISEND, _BOTH) and call.peer != PROC_NULL:
            sends[sent, 0], sends[sent, 1], sends[sent, 2] = call.peer, call.tag, call.count * call.element
            operation[at] = KINDS * (first_message + sent) + SEND
            wait_send = KINDS * (first_message + sent) + WAIT_SENT
            sent += 1
            at += 1
        if code in (_ISEND, _IRECV):
            awaited[opened] = wait_send if code == _ISEND else wait_receive
            if tail[call.key] >= 0:
                following[tail[call.key]] = opened
            else:
                head[call.key] = opened
            tail[call.key] = opened
            opened += 1
        elif code in (_SEND, _RECV, _BOTH):
            for wanted in (wait_receive, wait_send):
                if wanted != _NULL:
                    operation[at] = wanted
                    at += 1
        elif code == _WAIT:
            request = head[call.key]
            if request >= 0:
                head[call.key] = following[request]
                if head[call.key] < 0:
                    tail[call.key] = _NULL
                done[request] = True
                if awaited[request] != _NULL:
                    operation[at] = awaited[request]
                    at += 1
        elif code == _WAITALL:
            for request in range(oldest, opened):
                if not done[request] and awaited[request] != _NULL:
                    operation[at] = awaited[request]
                    at += 1
            oldest = opened
            for key in range(len(head)):
                head[key] = tail[key] = _NULL
        elif code == _COLLECTIVE:
            low, high = collective_first[called], collective_first[called + 1]
            for place in range(low, high):
                operation[at] = collective[place]
                at += 1
            called += 1
            takes = takes and not (high > low and collective[low] & (KINDS - 1) == JOIN)  # units reduce
        if takes and code in (_COMPUTE, _SLEEP, _COLLECTIVE):  # of a reduction, too
            operation[at] = KINDS * (first_amount + timed) + (SLEEP if code == _SLEEP else COMPUTE)
            amounts[timed] = call.amount
            timed += 1
            at += 1
        for place in range(before, at):
            action[place] = index
    return at, sent, received, timed
