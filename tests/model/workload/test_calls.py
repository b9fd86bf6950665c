"""The kernel that expands a rank's calls, against a slow one that keeps queues of requests."""

from collections import deque

import numpy as np
import pytest

from hopforge.model.workload.calls import KINDS, LATER_POST, LATER_RECEIVE, CallTable
from hopforge.model.workload.operations import COMPUTE, SEND, SLEEP, WAIT_SENT
from hopforge.model.workload.trace import ANY_SOURCE, PROC_NULL, Action, Trace

FIRST = {"first_message": 100, "first_receive": 200, "first_amount": 300}
BARRIER = np.array([7, 15, 23], np.int64)


def slow(actions, rank, default_bytes):
    """Operations, their calls, sends, receives and amounts of a rank."""
    operations, sends, receives, amounts = [], [], [], []
    open_requests: list[tuple[tuple[int, int, int], int | None]] = []

    def send(peer, tag, action):
        if peer == PROC_NULL:
            return None
        element = default_bytes if action.datatype == -2 else 4
        sends.append([peer, tag, action.count * element])
        operations.append((KINDS * (99 + len(sends)) + SEND, index))
        return KINDS * (99 + len(sends)) + WAIT_SENT

    def post(source, tag, action):
        if source == PROC_NULL or any(ANY_SOURCE in (a.peer, a.source) for a in actions if a.name != "wait"):
            return None
        count, datatype = action.count, action.datatype
        if action.name == "sendRecv":
            count, datatype = action.recv_count, action.recv_datatype
        receives.append([source, tag, index, count * (default_bytes if datatype == -2 else 4)])
        operations.append((KINDS * (199 + len(receives)) + LATER_POST, index))
        return KINDS * (199 + len(receives)) + LATER_RECEIVE

    def wait(*wanted):
        operations.extend((operation, index) for operation in wanted if operation is not None)

    for index, action in enumerate(actions):
        match action.name:
            case "send":
                wait(send(action.peer, action.tag, action))
            case "recv":
                wait(post(action.peer, action.tag, action))
            case "sendRecv":
                received = post(action.source, 0, action)
                wait(received, send(action.peer, 0, action))
            case "isend":
                open_requests.append(((rank, action.peer, action.tag), send(action.peer, action.tag, action)))
            case "irecv":
                open_requests.append(((action.peer, rank, action.tag), post(action.peer, action.tag, action)))
            case "wait":
                queue = deque(r for r in open_requests if r[0] == (action.source, action.peer, action.tag))
                if queue:
                    request = queue.popleft()
                    del open_requests[next(i for i, r in enumerate(open_requests) if r is request)]
                    wait(request[1])
            case "waitall":
                for _, operation in open_requests:
                    wait(operation)
                open_requests.clear()
            case "barrier":
                wait(*BARRIER.tolist())
            case "compute" | "sleep" if action.amount > 0:
                amounts.append(action.amount)
                kind = COMPUTE if action.name == "compute" else SLEEP
                operations.append((KINDS * (299 + len(amounts)) + kind, index))
    return operations, sends, receives, amounts


def drawn(rng: np.random.Generator, rank: int, peers: list[int]) -> list[Action]:
    def one() -> Action:
        peer, tag, count = int(rng.choice(peers)), int(rng.integers(2)), int(rng.integers(3))
        datatype = int(rng.choice([-2, 1]))
        name = str(rng.choice(["send", "recv", "isend", "irecv", "wait", "waitall", "sendRecv", "compute", "barrier",
                               "test", "sleep"]))
        if name == "wait":
            source, peer = (rank, peer) if rng.random() < 0.5 else (peer, rank)
            return Action("wait", source=source, peer=peer, tag=tag)
        if name == "sendRecv":
            return Action(name, peer=peer, source=int(rng.choice(peers)), count=count, datatype=datatype)
        if name in ("compute", "sleep"):
            return Action(name, amount=float(count))
        return Action(name, peer=peer, tag=tag, count=count, datatype=datatype)

    return [one() for _ in range(60)]


@pytest.mark.parametrize("seed", range(30))
def test_as_the_slow_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rank, peers = 2, [0, 1, 2, 3, PROC_NULL]
    if seed % 5 == 4:
        peers.append(ANY_SOURCE)  # the rank does not wait for its receives
    actions = [Action("init"), *drawn(rng, rank, peers)]
    actions = [a for a in actions if a.peer != ANY_SOURCE or a.name not in ("send", "isend", "sendRecv")]
    trace = Trace.of("x", ((), (), tuple(actions)), ("", "", ""), (np.arange(len(actions), dtype=np.int32),) * 3)
    barriers = sum(action.name == "barrier" for action in actions)
    found = CallTable(trace).rank(rank, [BARRIER] * barriers, **FIRST)
    operations, sends, receives, amounts = slow(actions, rank, 1)
    assert list(zip(found.operation.tolist(), found.action.tolist(), strict=True)) == operations
    assert found.sends.tolist() == sends
    assert found.receives.tolist() == receives
    assert found.amounts.tolist() == amounts
    assert len(operations) > 20


def test_elements_without_a_datatype_have_the_size_that_init_says() -> None:
    calls = (Action("send", peer=0, count=3), Action("send", peer=0, count=3, datatype=1))
    for begin, sizes in ((Action("init"), [3, 12]), (Action("init", text="1"), [24, 12])):
        trace = Trace.of("x", ((begin, *calls),), ("",), (np.arange(3, dtype=np.int32),))
        assert CallTable(trace).rank(0, [], **FIRST).sends[:, 2].tolist() == sizes


def test_a_rank_without_calls() -> None:
    found = CallTable(Trace.of("x", ((),), ("",), (np.arange(0, dtype=np.int32),))).rank(0, [], **FIRST)
    assert [len(part) for part in found] == [0] * 5
