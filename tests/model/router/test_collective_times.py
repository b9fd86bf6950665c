"""Times of words in collective units, against the golden plane cycle by cycle."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopforge.model.config import parse_config
from hopforge.model.router.collective_params import OPERATIONS, Flit
from hopforge.model.router.collective_plane import PlaneDesign, configured_plane
from hopforge.model.router.collective_times import GroupTimes


def plane(topology: str, flits: int, latency: int, hosts: str = "") -> PlaneDesign:
    group = f"{{hosts: {hosts}}}" if hosts else "{}"
    return configured_plane(
        parse_config(
            f"name: x\ntopology: {topology}\nrouter: {{link_latency_cycles: {latency}}}\n"
            f"collective_plane: {{groups: [{group}], buffer_flits: {flits}}}\n"
        )
    )


class Member:
    """A host that does its operations one after the other, each so many cycles after the last result."""

    def __init__(self, place: int, todo: list[tuple[int, int, int]], flits: int) -> None:
        self.place, self.todo, self.credits = place, list(todo), flits
        self.finished: list[int] = []
        self.number, self.sent, self.got = 0, 0, 0
        self.enters = self.todo[0][2]

    def flit(self, now: int) -> Flit | None:
        if self.number == len(self.todo) or now < self.enters or not self.credits:
            return None
        words, source, _ = self.todo[self.number]
        if self.sent == words or source not in (-1, self.place):
            return None
        self.sent += 1
        self.credits -= 1
        code = OPERATIONS.index("sum" if source < 0 else "multicast")
        return Flit(0, code, self.number % 16, int(self.sent == words), 0, 1)

    def take(self, now: int) -> None:
        self.got += 1
        if self.got == self.todo[self.number][0]:
            # a member that has not entered yet takes the words, but goes on when it has
            self.finished.append(now + 1)
            self.number, self.sent, self.got = self.number + 1, 0, 0
            if self.number < len(self.todo):
                self.enters = now + 1 + self.todo[self.number][2]


def golden(design: PlaneDesign, program: list[tuple[int, int, list[int]]], host_cycles: int) -> list[list[int]]:
    """Return the cycles after the last results, by operation and member, from the first free cycle on."""
    network, hosts = design.golden(host_cycles), design.trees[0].hosts
    for write in design.writes:
        network.outputs()
        network.cycle({}, {}, write)
    began = network.now
    members = {
        host: Member(
            place, [(words, source, began * (not number) + waits[place]) for number, (words, source, waits) in
                    enumerate(program)], design.params.buffer_flits,
        )
        for place, host in enumerate(hosts)
    }  # fmt: skip
    while any(member.number < len(program) for member in members.values()):
        assert network.now < 100_000
        results, back = network.outputs()
        for host, groups in back.items():
            members[host].credits += groups & 1
        flits = {host: flit for host, member in members.items() if (flit := member.flit(network.now)) is not None}
        for host, flit in results.items():
            assert not flit.error
            members[host].take(network.now)
        network.cycle(flits, dict.fromkeys(results, 1))
    return [[members[host].finished[number] - began for host in hosts] for number in range(len(program))]


def quick(design: PlaneDesign, program: list[tuple[int, int, list[int]]], host_cycles: int) -> list[list[int]]:
    times, found = GroupTimes(design, 0, host_cycles), []
    ready = np.zeros(len(times.hosts), np.int64)
    for words, source, waits in program:
        ready = times.finish(words, ready + np.array(waits), source)
        found.append(ready.tolist())
    return found


DESIGNS = {
    "mesh": plane("{kind: mesh, radices: [3, 2]}", 2, 1),
    "mesh, long links": plane("{kind: mesh, radices: [4, 2]}", 3, 4),
    "part of a torus": plane("{kind: torus, radices: [4, 4]}", 4, 2, "[0, 3, 5, 9, 10]"),
    "one router": plane("{kind: mesh, radices: [1, 1], hosts_per_router: 4}", 1, 1),
    "one host": plane("{kind: mesh, radices: [2, 2]}", 4, 1, "[3]"),
    "fat tree": plane("{kind: fat_tree, k: 2, n: 3}", 5, 3),
}  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_the_cycles_are_those_of_the_golden_plane(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(DESIGNS)))
    design, members = DESIGNS[name], len(DESIGNS[name].trees[0].hosts)
    waits = st.lists(st.integers(0, 25), min_size=members, max_size=members)
    operation = st.tuples(st.integers(1, 12), st.integers(-1, members - 1), waits)
    program = data.draw(st.lists(operation, min_size=1, max_size=4))
    host_cycles = data.draw(st.integers(1, 3))
    assert quick(design, program, host_cycles) == golden(design, program, host_cycles)


@pytest.mark.parametrize("source", [-1, 2])
def test_a_late_member_by_hand(source: int) -> None:
    """Routers 0 - 1 - 2 in a row, root 1; links of a cycle: host 2 is 20 cycles late."""
    design = plane("{kind: mesh, radices: [3, 1]}", 4, 1)
    assert (design.trees[0].root, design.trees[0].depth) == (1, 1)
    found = GroupTimes(design, 0).finish(1, np.array([0, 0, 20]), source)
    # its word stands at unit 2 in 20, at unit 1 in 24, at the outputs of unit 1 in 28; of units 0 and 2 in 30
    assert found.tolist() == [31, 29, 31]
