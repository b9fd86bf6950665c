"""Collectives as arrays, beside their rounds."""

import numpy as np
import pytest

from hopforge.model import free_memory
from hopforge.model.config.workload import CollectivesConfig
from hopforge.model.errors import UserError
from hopforge.model.workload import compiled_program, expanded_collectives
from hopforge.model.workload.calls import KINDS
from hopforge.model.workload.collective_choice import Part
from hopforge.model.workload.collectives import ALGORITHMS, schedule
from hopforge.model.workload.compiled_program import compile_program
from hopforge.model.workload.expanded_collectives import REGULAR, expanded, transfers_of
from hopforge.model.workload.operations import POST, RECEIVE, SEND, WAIT_SENT
from hopforge.model.workload.trace import Action, Trace

ALL = [(operation, algorithm) for operation, known in ALGORITHMS.items() for algorithm in known]


@pytest.mark.parametrize("name", ALL, ids=" ".join)
@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 7, 8, 13, 70])
def test_messages_are_those_of_the_rounds(name, ranks):
    rounds = schedule(*name, ranks, 0)
    flat = [transfer for part in rounds for transfer in part]
    found = transfers_of((Part(*name, 0),), ranks)
    assert np.diff(found.round_first).tolist() == [len(part) for part in rounds]
    assert found.source.tolist() == [transfer.src for transfer in flat]
    assert found.destination.tolist() == [transfer.dst for transfer in flat]
    assert found.blocks.tolist() == [block for transfer in flat for block in transfer.blocks]
    if flat:
        block_bytes = np.append(np.arange(1, ranks * ranks + 1) ** 2, 0)  # the last one is of those without a block
        expected = [sum(int(block_bytes[b]) for b in transfer.blocks) for transfer in flat]
        assert found.sizes(block_bytes).tolist() == expected


@pytest.mark.parametrize("name", ALL, ids=" ".join)
@pytest.mark.parametrize("ranks", [2, 5, 8, 70])
def test_operations_of_a_rank(name, ranks):
    """Per round: post what it receives, send, wait for what it receives, wait until what it sent has left."""
    expected = [[] for _ in range(ranks)]
    number = 0
    for part in schedule(*name, ranks, 0):
        numbered = list(enumerate(part, number))
        for kind, end in ((POST, "dst"), (SEND, "src"), (RECEIVE, "dst"), (WAIT_SENT, "src")):
            for index, transfer in numbered:
                expected[getattr(transfer, end)].append(KINDS * index + kind)
        number += len(part)
    assert [operations.tolist() for operations in expanded((Part(*name, 0),), ranks).operations] == expected


@pytest.mark.parametrize("name", sorted(REGULAR), ids=" ".join)
@pytest.mark.parametrize("calls", [("init", "call", "finalize"), ("call",), ("init", "call", "call")])
def test_large_collectives_make_the_same_program(monkeypatch, name, calls):
    operation, algorithm = name
    ranks, collectives = 6, CollectivesConfig(**{operation: algorithm})
    counts = (100,) * ranks if operation == "reduce_scatter" else ()
    call = Action(operation.replace("_", ""), count=100, recv_count=100, counts=counts)
    program = tuple(call if each == "call" else Action(each) for each in calls)
    number = np.arange(len(program), dtype=np.int32)
    trace = Trace.of("x", (program,) * ranks, tuple(f"rank {r}" for r in range(ranks)), (number,) * ranks)
    usual = compile_program(trace, collectives)
    assert usual.messages
    monkeypatch.setattr(expanded_collectives, "KEPT_TRANSFERS", 3)
    large = compile_program(trace, collectives)
    for field in ("first", "kind", "operand", "action", "amount", "source", "destination", "size_bytes"):
        assert getattr(large, field).tolist() == getattr(usual, field).tolist(), field


def test_more_repeats_than_memory_are_refused_at_the_first(monkeypatch):
    """The other calls are not expanded: a million of them took minutes before memory ended."""
    call = Action("alltoall", count=8, recv_count=8)
    program = (Action("init"), *[call] * 1000, Action("barrier"), Action("finalize"))
    trace = Trace.of("x", (program,) * 4, ("",) * 4, (np.arange(len(program), dtype=np.int32),) * 4)
    expanded_calls = []
    monkeypatch.setattr(compiled_program, "expanded", lambda *given: expanded_calls.append(given) or expanded(*given))
    assert compile_program(trace, CollectivesConfig()).messages > 12_000
    assert len(expanded_calls) == 1001
    expanded_calls.clear()
    monkeypatch.setattr(free_memory, "free_memory", lambda: 12_000 * compiled_program.LEAST_BYTES - 1)
    with pytest.raises(UserError, match=r"the 12,000 messages of 1,001 collectives need .* GiB of memory; there are"):
        compile_program(trace, CollectivesConfig())
    assert len(expanded_calls) == 1
