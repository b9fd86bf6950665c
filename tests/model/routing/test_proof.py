"""The proof of freedom from deadlock against an exhaustive search that shares no code with it.

Relations are generated: their classes depend on any field of the packet, they draw, adapt, have an escape or not. The
search below walks every state of a packet, field by field, in plain Python, and judges by the definitions: no cycle of
channels that wait for each other; or, where a packet can always take any candidate, no set of channels in which
packets can stand that ask for channels of the set alone.
"""

import importlib.util
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import networkx as nx
import numpy as np
import pytest

from hopforge.model.config import parse_config
from hopforge.model.network.core.user_code import UserCodeError
from hopforge.model.routing import RoutingPlan, Topology
from hopforge.model.routing.deadlock import DeadlockError, check_routing
from hopforge.model.routing.fields_read import fields_read
from hopforge.model.routing.interpreted_reachable import InterpretedExploration
from hopforge.model.routing.reachable import Exploration
from hopforge.model.topology.configured import network_topology
from hopforge.sim.run.simulation import Simulation

#: a relation; its table: 0 mask towards hosts, 1 routers, 2 classes, 3 rows, 4 mask of the escape (0: none), 5 … masks
#: [class, row], then ports as bit masks: of the escape [router, router], of the classes [class, router, router]
SOURCE = """
from hopforge.model.routing import candidate, draw_below, relation

def route(router, in_port, in_vc, packet, net, table, memory, out):
    if router == packet.dst:
        out[0] = candidate(0, table[0])
        return 1
    routers, classes, rows = table[1], table[2], table[3]
    {draw}
    {write}
    klass = ({klass}) % classes
    row = min({row}, rows - 1)
    mask = table[5 + klass * rows + row]
    start = 5 + classes * rows
    ways = table[start + ((klass + 1) * routers + router) * routers + packet.dst]
    n = 0
    for port in range(1, 6):
        if (ways >> port) & 1:
            out[n] = candidate(port, mask)
            n += 1
    if table[4] != 0:
        port = 1
        while (table[start + router * routers + packet.dst] >> port) & 1 == 0:
            port += 1
        out[n] = candidate(port, table[4], 1)
        n += 1
    return n

compiled = relation(route)
"""
#: states of packets beyond which the search gives up (packets that go round and count their hops have no end of them)
MOST_STATES = 20_000
NETWORKS = {
    "mesh": "{kind: mesh, radices: [3, 3]}",
    "wide": "{kind: mesh, radices: [3, 2]}",
    "torus": "{kind: torus, radices: [3, 3]}",
    "ring": "{kind: torus, radices: [5]}",
    "graph": "{kind: random_regular, routers: 6, degree: 3}",
}
#: (draw, write, class, VC row): expressions in the fields of the packet
SHAPES = [
    ("pass", "pass", "packet.dst + router", "0"),
    ("pass", "pass", "packet.src", "0"),
    ("pass", "pass", "packet.src + packet.dst", "packet.hops"),
    ("pass", "pass", "packet.length // 2", "0"),
    ("pass", "pass", "packet.hops", "packet.hops"),
    ("pass", "pass", "0", "packet.hops"),
    ("pass", "pass", "in_vc + in_port", "0"),
    ("pass", "pass", "1 if packet.hops == 0 else 0", "min(packet.hops, 2)"),
    ("pass", "packet.phase = packet.phase + 1 if packet.phase < 3 else 3", "packet.src", "packet.phase - 1"),
    ("pass", "if in_port == 0: packet.user0 = packet.src % 3", "packet.user0", "0"),
    ("pass", "if in_port == 0: packet.user1 = packet.length % 2 + packet.dst", "packet.user1", "packet.hops"),
    ("pass", "packet.user0 = (packet.user0 + in_port + packet.length) % 3", "packet.user0 + packet.src", "0"),
    ("pass", "packet.user0 += 1", "0", "packet.user0 - 1"),
    ("k = draw_below(net, router, 2)", "pass", "k", "0"),
    ("k = draw_below(net, router, 2) + draw_below(net, router, 2)", "pass", "k + packet.src", "packet.hops"),
    ("if packet.via < 0: packet.via = draw_below(net, router, 3)", "pass", "packet.via", "0"),
    ("if in_port == 0: packet.via = draw_below(net, router, 3)", "pass", "packet.via", "packet.hops"),
    ("if packet.hops == 0: packet.user0 = draw_below(net, router, 2)", "pass", "packet.user0 + packet.length", "0"),
]


@dataclass
class Network:
    """Routers with one host each on port 0."""

    peer: list[list[int]]
    back: list[list[int]]

    @property
    def routers(self) -> int:
        return len(self.peer)

    def links(self, router: int) -> Iterator[tuple[int, int]]:
        """Ports that lead to another router, with it."""
        return ((port, other) for port, other in enumerate(self.peer[router]) if other >= 0)


def distances(net: Network) -> list[list[int]]:
    graph = nx.DiGraph([(a, b) for a in range(net.routers) for _, b in net.links(a)])
    far = dict(nx.all_pairs_shortest_path_length(graph))
    return [[far[a][b] for b in range(net.routers)] for a in range(net.routers)]


def ways_table(net: Network, kind: str, rng: np.random.Generator) -> list[list[int]]:
    """Bit mask of ports, [router][destination], by some rule."""
    far, n = distances(net), net.routers
    ways = [[0] * n for _ in range(n)]
    order = [[int(x) for x in rng.permutation(8)] for _ in range(n)]
    parent = {a: min(b for _, b in net.links(a) if far[b][0] < far[a][0]) for a in range(1, n)}

    def tree_next(a: int, d: int) -> int:
        chain = [d]
        while chain[-1] != 0:
            chain.append(parent[chain[-1]])
        return chain[chain.index(a) - 1] if a in chain else parent[a]

    for a, d in product(range(n), range(n)):
        if a == d:
            continue
        short = [port for port, b in net.links(a) if far[b][d] == far[a][d] - 1]
        if kind == "tree":
            short = [min(port for port, b in net.links(a) if b == tree_next(a, d))]
        elif kind == "first":
            short = short[:1]
        elif kind == "last":
            short = short[-1:]
        elif kind == "any":
            short = [short[int(rng.integers(len(short)))]]
        elif kind == "ordered":
            short = [min(short, key=lambda port: order[0][port % 8])]
        ways[a][d] = sum(1 << port for port in short)
    return ways


def decisions(function: Any, drawn: SimpleNamespace, arguments: tuple[Any, ...]) -> Iterator[tuple[Any, Any]]:
    """Every answer of the relation in one state, with the packet that it leaves."""
    todo: list[list[int]] = [[]]
    while todo:
        drawn.given, drawn.bounds = todo.pop(), []
        router, in_port, in_vc, fields, table = arguments
        packet = SimpleNamespace(**fields)
        out: dict[int, Any] = {}
        count = function(router, in_port, in_vc, packet, None, table, None, out)
        for place in range(len(drawn.given), len(drawn.bounds)):
            todo += [[*drawn.given, *[0] * (place - len(drawn.given)), k] for k in range(1, drawn.bounds[place])]
        yield [out[k] for k in range(count)], packet


def safe_by_search(
    net: Network, source: str, table: list[int], vcs: int, lengths: list[int], *, takes: str
) -> bool | None:
    """Judge a relation. `takes`: "one" (tail), "credits" or "cut" (through): what a packet that waits can still take.

    None: packets go round for ever, or there are too many states.
    """
    drawn = SimpleNamespace(given=[], bounds=[])

    def draw_below(_net: Any, _router: int, bound: int) -> int:
        drawn.bounds.append(bound)
        place = len(drawn.bounds) - 1
        return drawn.given[place] if place < len(drawn.given) else 0

    plain: dict[str, Any] = {"candidate": lambda port, mask, level=0: (port, mask), "draw_below": draw_below}
    text = source[source.index("def route") : source.index("compiled =")]
    exec(text, plain)
    route: Any = plain["route"]
    # a state: where the packet stands (router, port, VC; its channel), and all its fields
    asks: dict[Any, list[tuple[frozenset[Any], bool, list[Any]]]] = {}
    todo: list[Any] = []
    for src, dst, length, vc in product(range(net.routers), range(net.routers), lengths, range(vcs)):
        fields = {
            "src": src, "dst": dst, "length": length, "hops": 0, "phase": 0, "via": -1, "user0": 0, "user1": 0
        }  # fmt: skip
        todo.append((None, src, 0, vc, tuple(fields.items())))
    while todo:
        state = todo.pop()
        if state in asks:
            continue
        if len(asks) > MOST_STATES:
            return None
        _, router, in_port, in_vc, values = state
        asks[state] = []
        for found, packet in decisions(route, drawn, (router, in_port, in_vc, dict(values), table)):
            channels, leaves, after = set(), False, []
            packet.hops += 1
            for port, mask in found:
                for vc in range(vcs):
                    if not mask >> vc & 1:
                        continue
                    if port == 0:
                        leaves = True
                        continue
                    channel = (router, port, vc)
                    channels.add(channel)
                    step = (channel, net.peer[router][port], net.back[router][port], vc)
                    after.append((*step, tuple(vars(packet).items())))
            asks[state].append((frozenset(channels), leaves, after))
            todo += after
    waits = nx.DiGraph(
        (state[0], channel) for state, found in asks.items() if state[0] for one in found for channel in one[0]
    )
    if nx.is_directed_acyclic_graph(waits):
        return True
    if takes == "one":
        return False
    closed = set(waits)
    while closed:
        heads = {
            state
            for state, found in asks.items()
            if any(not leaves and channels <= closed for channels, leaves, _ in found)
        }
        if takes == "credits":  # the flits behind a head may stand in any channel that it can have come by
            came = nx.DiGraph(
                (after, state)
                for state, found in asks.items()
                for _, _, following in found
                for after in following
                if after[0] in closed
            )
            heads |= {before for head in heads if head in came for before in nx.descendants(came, head)}
        still = closed & {state[0] for state in heads}
        if still == closed:
            return False
        closed = still
    return True


@pytest.fixture(scope="module")
def shapes(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, Any]]:
    """Source and compiled relation of every shape."""
    folder, found = tmp_path_factory.mktemp("shapes"), []
    for number, (draw, write, klass, row) in enumerate(SHAPES):
        path = folder / f"shape{number}.py"
        path.write_text(SOURCE.format(draw=draw, write=write, klass=klass, row=row))
        spec = importlib.util.spec_from_file_location(f"hopforge_test_shape{number}", path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        found.append((path.read_text(), module.compiled))
    return found


def generated(number: int, relation: Any, *, lengths: list[int]) -> tuple[Simulation, str]:
    """Relation `number` on its network, and what a waiting packet can still take there."""
    rng = np.random.default_rng((2026, number))
    vcs = int(rng.integers(1, 4))
    release = str(rng.choice(["vc_release: tail", "vc_release: credits", "switching: vct"], p=[0.5, 0.3, 0.2]))
    text = (
        f"name: x\ntopology: {NETWORKS[str(rng.choice(list(NETWORKS)))]}\n"
        f"router: {{vcs: {vcs}, {release}, buffer_flits: 8}}\n"
        f"traffic: {{packet_lengths: {lengths}, packet_weights: {[1] * len(lengths)}}}\n"
    )
    config = parse_config(text + "routing: {algorithm: up_down}\n")
    topology = network_topology(config)
    net = network(topology)
    classes, rows = int(rng.integers(1, 4)), int(rng.integers(1, 5))
    whole = (1 << vcs) - 1
    escape = int(rng.choice([0, 1, whole])) if vcs > 1 and release != "vc_release: tail" else 0
    split = rng.random() < 0.5
    masks = [
        [(1 << (k + h) % vcs) if split else int(rng.integers(1, whole + 1)) for h in range(rows)]
        for k in range(classes)
    ]
    if rows > vcs > 1 and rng.random() < 0.5:
        masks = [[1 << min(h, vcs - 1) for h in range(rows)] for _ in range(classes)]
    kinds = ["tree", "first", "last", "ordered", "any", "all"]
    same = str(rng.choice(kinds))
    tables = [ways_table(net, "tree" if rng.random() < 0.7 else "first", rng)]
    tables += [ways_table(net, same if rng.random() < 0.6 else str(rng.choice(kinds)), rng) for _ in range(classes)]
    table = [whole, net.routers, classes, rows, escape, *np.ravel(masks), *np.ravel(tables)]
    plan = RoutingPlan(
        relation, np.array(table, np.int32), max_candidates=8, phases=4, obligation="escape" if escape else "acyclic"
    )
    return Simulation(config, 0.1, 1, topology, check=False, plan=plan), release


def network(topology: Topology) -> Network:
    """Neighbours of the routers, and by which port a link comes in there."""
    peer = topology.peer_router.tolist()
    return Network(peer, topology.peer_port.tolist())


def judge(number: int, shapes: list[tuple[str, Any]]) -> tuple[bool, bool | None, str]:
    """Verdicts of the proof and of the search on relation `number`, and what the proof says."""
    source, relation = shapes[number % len(shapes)]
    lengths = [1, 4] if "length" in source else [3]
    run, release = generated(number, relation, lengths=lengths)
    said = ""
    try:
        check_routing(run.topology, run.plan, run.state, "generated")
    except DeadlockError as error:
        said = str(error)
    takes = {"vc_release: tail": "one", "vc_release: credits": "credits"}.get(release, "cut")
    table = run.plan.table.tolist()
    safe = safe_by_search(network(run.topology), source, table, int(run.state["vcs"]), lengths, takes=takes)
    return said == "", safe, said


def check_many(numbers: range, shapes: list[tuple[str, Any]]) -> None:
    """Every relation of `numbers`: none falsely proved, few safe ones refused, and enough of both kinds."""
    judged = safe = missed = 0
    for number in numbers:
        ours, truly, said = judge(number, shapes)
        if truly is None:
            continue
        judged += 1
        assert truly or not ours, f"relation {number} is proved and is not safe"
        assert ours or "can deadlock" in said or "not proved" in said
        safe, missed = safe + truly, missed + (truly and not ours)
    assert missed <= 0.05 * safe
    assert judged > 0.7 * len(numbers)
    assert 0.2 * judged < safe < 0.8 * judged, "not a sample of both kinds"


def test_generated_relations_are_judged_as_by_an_exhaustive_search(shapes: list[tuple[str, Any]]) -> None:
    check_many(range(2 * len(SHAPES)), shapes)


@pytest.mark.study
@pytest.mark.timeout(3600)
def test_many_generated_relations(shapes: list[tuple[str, Any]]) -> None:
    check_many(range(1000, 1000 + 40 * len(SHAPES)), shapes)


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
