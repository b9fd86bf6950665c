"""The proof of freedom from deadlock: what it proves, what it refuses, and why.

Generated relations are judged against an exhaustive search in `test_generated_relations.py`.
"""

import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hopforge.model.config import parse_config
from hopforge.model.network.core.user_code import UserCodeError
from hopforge.model.routing.contract.fields_read import fields_read
from hopforge.model.routing.proof.deadlock import DeadlockError
from hopforge.model.routing.proof.interpreted_reachable import InterpretedExploration
from hopforge.model.routing.proof.reachable import Exploration
from hopforge.sim.run.simulation import Simulation

ORDER = """
from hopforge.model.routing import RoutingPlan, candidate, draw_below, relation, output_vc
import numpy as np
from numba import int8

def steps(router, dst, width, x_first):
    dx, dy = dst % width - router % width, dst // width - router // width
    if dx == 0 and dy == 0:
        return 0
    if (x_first and dx != 0) or dy == 0:
        return 1 if dx > 0 else 2
    return 3 if dy > 0 else 4

steps = __import__("numba").njit(steps)

def odd(packet):
    return packet.src % 2

odd = __import__("numba").njit(odd)
FIELD, FIELDS, RULES = "src", ("src",), (odd, 1)

def route(router, in_port, in_vc, packet, net, table, memory, out):
    BODY

def by_default(packet, read=odd):
    return read(packet)

def by_place(table):
    return table[2]

def last(memory, at=0):
    return memory[at]

by_default, by_place, last = (__import__("numba").njit(one) for one in (by_default, by_place, last))

from hopforge.model.kernel.memory import int64s
from hopforge.model.network.core.draws import draw_below as draws
def prepare(topology, vcs, options):
    return RoutingPlan(
        relation(route), np.array([topology.params["radices"][0]], np.int32), max_candidates=3, phases=2, MORE
    )
"""
MESH = "topology: {kind: mesh, radices: [3, 3]}\nrouter: {vcs: 2, VCS}\ntraffic: {packet_flits: 4}\n"


def prove(
    folder: Path, body: str, *, router: str = "vc_release: tail", more: str = "", mesh: str = MESH, head: str = ""
) -> Simulation:
    """Build a simulation with a relation of a user's own, which is checked."""
    indented = "\n    ".join(body.strip().split("\n"))
    (folder / "own.py").write_text(head + ORDER.replace("BODY", indented).replace("MORE", more))
    text = "name: x\n" + mesh.replace("VCS", router) + "routing: {algorithm: file, file: own.py}\n"
    return Simulation(parse_config(text, folder=folder), 0.1, 1)


FIXED = "out[0] = candidate(steps(router, packet.dst, table[0], {}), {})\nreturn 1"
AT_SOURCE = "if in_port == 0:\n    packet.{0} = {1}\n"
ADAPTIVE = """
n = 0
for first in range(2):
    port = steps(router, packet.dst, table[0], first == 0)
    out[n] = candidate(port, {})
    n += 1
out[2] = candidate(steps(router, packet.dst, table[0], True), 1, 1)
return 3
"""
ROMM = """
if in_port == 0:
    packet.via = draw_below(net, router, 9)
if router == packet.via:
    packet.phase = 1
goal = packet.dst if packet.phase == 1 else packet.via
mask = {}
out[0] = candidate(steps(router, goal, table[0], True), mask if goal != router else 3)
return 1
"""


@pytest.mark.parametrize(
    ("body", "router"),
    [
        (FIXED.format("True", "3"), "vc_release: tail"),
        (FIXED.format("packet.src % 2 == 0", "1 << packet.src % 2"), "vc_release: tail"),
        (AT_SOURCE.format("user0", "packet.src % 2") + FIXED.format("packet.user0 == 0", "1 << packet.user0"),
         "vc_release: tail"),
        (AT_SOURCE.format("user1", "draw_below(net, router, 2)")
         + FIXED.format("packet.user1 == 0", "1 << packet.user1"), "vc_release: tail"),
        (ADAPTIVE.format("2"), "vc_release: credits"),
        (ADAPTIVE.format("2"), "switching: vct"),
        (ROMM.format("1 << packet.phase"), "vc_release: tail"),
        (FIXED.format("memory[0] < 1.0 or True", "3"), "vc_release: tail"),
    ],
)  # fmt: skip
def test_safe_relations_of_a_user_are_proved(tmp_path: Path, body: str, router: str) -> None:
    run = prove(tmp_path, body, router=router)
    run.advance(300)  # and it does run
    assert int(run.state["flits_injected"]) > 0


def test_a_relation_finds_zeros_where_it_answers(tmp_path: Path) -> None:
    run = prove(tmp_path, "if out[0] != 0:\n    return 0  # what an earlier packet got\n" + FIXED.format("True", "3"))
    run.advance(2000)
    assert int(run.state["flits_ejected"]) > 1000 and int(run.state["flits_dropped"]) == 0


@pytest.mark.parametrize(
    ("body", "router"),
    [
        (FIXED.format("packet.src % 2 == 0", "3"), "vc_release: tail"),
        (FIXED.format("packet.hops % 2 == 0", "3"), "vc_release: tail"),
        (AT_SOURCE.format("user0", "packet.src % 2") + FIXED.format("packet.user0 == 0", "3"), "vc_release: tail"),
        (FIXED.format("draw_below(net, router, 1000) != 777", "3"), "vc_release: tail"),
        (FIXED.format("memory[0] < 1.0", "3"), "vc_release: tail"),
        (FIXED.format("RULES[0](packet) == 0", "3"), "vc_release: tail"),
        (FIXED.format("by_default(packet) == 0", "3"), "vc_release: tail"),
        (FIXED.format("last(memory) < 1.0", "3"), "vc_release: tail"),
        (FIXED.format("output_vc(net, router * net.ports * net.vcs).credits > 0", "3"), "vc_release: tail"),
        (FIXED.format("int8(packet.src * 64) < output_vc(net, 0).credits * 0", "3"), "vc_release: tail"),
        (ADAPTIVE.format("3"), "vc_release: credits"),
        (ADAPTIVE.format("2"), "vc_release: tail"),
        (ROMM.format("3"), "vc_release: tail"),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:.*First-class function type feature")  # a tuple of functions
def test_relations_that_can_deadlock_are_refused(tmp_path: Path, body: str, router: str) -> None:
    with pytest.raises(DeadlockError, match="can deadlock on the 5x5 mesh with 2 VCs; cycle of channels: "):
        prove(tmp_path, body, router=router, mesh=MESH.replace("3, 3", "5, 5"))


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (FIXED.format("np.random.randint(0, 2) == 0", "3"), "not proved free of deadlock: it uses np, which the proof"),
        (FIXED.format("True", "1 + int(memory[0])"), "it uses memory, and not all of its answers .* a candidate"),
        ("packet.dst = 3\n" + FIXED.format("True", "3"),
         "own.py:23: route cannot be compiled: a kernel must not write the field 'dst'"),
        ("packet.phase += 1\n" + FIXED.format("packet.phase < 9", "3"),
         r"own.py:22: route: left packet.phase at 2; it must be 0 to 1 \(phases = 2\)"),
        ("packet.user0 = packet.hops\nout[0] = candidate(1 if router % 3 < 2 else 2, 1 + packet.user0 % 2)\nreturn 1",
         "more than 400,000,000 evaluations, or 1,048,576 states .*it reads packet.dst, packet.hops, packet.user0"),
        *((FIXED.format(f"{text} % 2 == 0", "3"), "own.py:[0-9]*: route cannot be compiled: a field of a record .*name")
          for text in ('packet["hops"]', "packet[FIELD]", "packet[FIELDS[0]]", "packet[2]", "int(net[0])",
                       "by_place(packet)", "output_vc(net, 0)[2]")),
        ("p = packet\nnumber = p[2]\n" + FIXED.format("number % 2 == 0", "3"), "own.py.*: a field of a rec"),
        ("packet[7] = 1\n" + FIXED.format("True", "3"), "own.py.*: a field of a record is read and written by"),
        (FIXED.format("int64s(net.output_vc)[1] > 0", "3"), "it uses int64s, which the proof cannot look into"),
        (FIXED.format("draws(net, router, 9) > 0", "3"), "it uses draws, a part of the kernel"),
        (FIXED.format("(packet.src + 1) * 0x4000000000000001 < output_vc(net, 0).credits * 0", "3"),
         r"it uses credits of a router.* it computes a number of 63 bits, which machine code may hold other"),
        ("out[0] = candidate(9, 3)\nreturn 1", r"own.py:23: route: out\[0\] names port 9; ports are 0 to 4 \(router"),
    ],
)  # fmt: skip
def test_what_is_not_proved_says_why(tmp_path: Path, body: str, said: str) -> None:
    with pytest.raises((DeadlockError, UserCodeError), match=said):
        prove(tmp_path, body)


HIDDEN = """
from numba.extending import overload

@overload(abs)
def source_of(record):
    if "Record" in str(record):
        return lambda record: record.src % 2
"""


def test_a_field_that_the_scan_does_not_find_does_not_exist(tmp_path: Path) -> None:
    """Whatever way there is: here what a function of Python's means for a record."""
    with pytest.raises(UserCodeError, match=r"own.py:.*compiled: (there is no field 'src'|no such op)"):
        prove(tmp_path, FIXED.format("abs(packet) == 0", "3"), head=HIDDEN)


def test_a_narrow_every_and_checked_of_a_user_are_not_believed(tmp_path: Path) -> None:
    unsafe = FIXED.format("draw_below(net, router, 2) == 0", "3")
    every = "every=relation(lambda router, in_port, in_vc, packet, net, table, memory, out: 0)"
    for more in ('obligation="checked"', every.replace("0)", "steps(router, packet.dst, table[0], True) * 0)")):
        with pytest.raises(DeadlockError, match="can deadlock"):
            prove(tmp_path, unsafe, more=more)


def test_a_relation_that_reads_the_source_on_an_8_x_8_mesh_is_proved_in_time(tmp_path: Path) -> None:
    begin = time.process_time()
    prove(tmp_path, FIXED.format("packet.src % 2 == 0", "1 << packet.src % 2"), mesh=MESH.replace("3, 3", "8, 8"))
    assert time.process_time() - begin < 10


@pytest.mark.parametrize(
    ("algorithm", "vcs", "topology"),
    [
        *((name, 5, "dragonfly, p: 2, a: 2, h: 1") for name in ("ugal_group", "ugal_node", "par", "q_adaptive")),
        ("q_routing", 6, "dragonfly, p: 2, a: 2, h: 1"),
        ("anca", 1, "fat_tree, k: 2, n: 3"),
        ("nca, ties: random", 1, "fat_tree, k: 2, n: 3"),
    ],
)
def test_every_of_our_algorithms_gives_all_that_route_gives(algorithm: str, vcs: int, topology: str) -> None:
    text = f"name: x\ntopology: {{kind: {topology}}}\nrouter: {{vcs: {vcs}}}\nrouting: {{algorithm: {algorithm}}}\n"
    run = Simulation(parse_config(text), 0.1, 1, check=False)
    plan, hosts, one = replace(run.plan, phases=9), list(range(run.topology.hosts)), np.ones(1, np.int64)
    assert plan.every is not None
    answers = InterpretedExploration(plan, plan.route, run.state, fields_read(plan.route), hosts, one)
    declared = Exploration(plan, plan.every, run.state, fields_read(plan.every), hosts, one)
    assert answers.walk() is None
    assert declared.walk() is None
    found, allowed = (set(zip(*(a.tolist() for a in one.edges()), strict=True)) for one in (answers, declared))
    assert found
    assert found <= allowed


def test_what_a_relation_reads() -> None:
    run = Simulation(parse_config("name: x\ntopology: {kind: mesh, radices: [3, 3]}\n"), 0.1, 1)
    reads = fields_read(run.plan.route)
    assert (reads.fields, reads.written, reads.in_port, reads.in_vc) == (set(), set(), False, False)
    assert not reads.changing
    assert not reads.unseen
