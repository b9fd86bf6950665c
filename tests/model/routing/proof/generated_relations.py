"""Relations that are generated, and an exhaustive search that says of each whether it is safe.

The classes of a relation depend on any field of the packet; it draws, adapts, has an escape or not, looks at queues and
memory, calls functions with default arguments, learns.

The search walks every state of a packet, field by field, in plain Python, and judges by the definitions: no cycle of
channels that wait for each other; or, where a packet can always take any candidate, no set of channels in which packets
can stand that ask for channels of the set alone. What changes during a run may have any value at any time. It shares no
code with the proof.
"""

import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import networkx as nx
import numpy as np

from hopforge.model.config import parse_config
from hopforge.model.routing import Feedback, RoutingPlan, Topology
from hopforge.model.routing.proof.deadlock import DeadlockError, check_routing
from hopforge.model.topology.configured import network_topology
from hopforge.sim.run.simulation import Simulation

#: a relation; its table: 0 mask towards hosts, 1 routers, 2 classes, 3 rows, 4 mask of the escape (0: none), 5 … masks
#: [class, row], then ports as bit masks: of the escape [router, router], of the classes [class, router, router]
SOURCE = """
from numba import njit
from hopforge.model.routing import candidate, draw_below, learner, output_vc, relation, reporter

def of_source(packet, factor=1):
    return packet.src * factor

def first_hop(packet):
    return 1 if packet.hops == 0 else 0

of_source, first_hop = njit(of_source), njit(first_hop)

def by(packet, read=of_source):
    return read(packet) + 1

def full(net, number, limit=2):
    return output_vc(net, number).credits < limit

def worn(memory, at=0, limit=0.5):
    return memory[at] > limit

def report(router, in_port, packet, elapsed, net, table, memory, note):
    note.key = packet.src
    return 1

def learn(router, out_port, out_vc, note, net, table, memory):
    memory[0] += 1.0 if note.key % 2 == 0 else -1.0
    return 0

by, full, worn = njit(by), njit(full), njit(worn)

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
#: what a relation that learns has besides
LEARNING = "told, taught = reporter(report), learner(learn)\n"
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
#: the same, with helper functions and their default arguments, queues and memory; the last ones learn
CHANGING = [
    ("pass", "pass", "of_source(packet, 3)", "0"),
    ("pass", "pass", "by(packet)", "packet.hops"),
    ("pass", "pass", "by(packet, first_hop)", "first_hop(packet)"),
    ("k = 1 if full(net, router) else 0", "pass", "k", "0"),
    ("k = 1 if full(net, packet.dst, 3) else 0", "pass", "k + packet.src", "packet.hops"),
    ("k = 1 if output_vc(net, packet.dst).credits > output_vc(net, router).credits else 0", "pass", "k", "k"),
    ("if packet.hops == 0 and full(net, 0): packet.user0 = 1", "pass", "packet.user0", "packet.hops"),
    ("k = 1 if worn(memory) else 0", "memory[0] += 1.0", "k + packet.dst", "0"),
    ("k = draw_below(net, router, 2) if memory[1] < 0.5 else 0", "pass", "k + packet.src", "0"),
    ("if worn(memory, 1): packet.phase = 1", "pass", "of_source(packet)", "packet.phase"),
    ("k = 1 if worn(memory, limit=0.0) else 0", "pass", "by(packet) + k", "k"),
    ("k = 1 if worn(memory) and not full(net, 0) else 0", "packet.user1 += 1", "k", "packet.user1 - 1"),
]
#: how many of them, the last ones, learn
LEARNERS = 3
#: values that what changes can have in the search: a comparison with any number in between goes both ways
CREDITS, MEMORY = (0, 8), (-9.0, 9.0)


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


class Drawn:
    """Choices of one evaluation: those given, then the first one each."""

    def __init__(self) -> None:
        self.given: list[int] = []
        self.bounds: list[int] = []

    def choose(self, bound: int) -> int:
        """Take a number below `bound`."""
        self.bounds.append(bound)
        place = len(self.bounds) - 1
        return self.given[place] if place < len(self.given) else 0


class AnyMemory:
    """Memory in which anything may stand at any time."""

    def __init__(self, drawn: Drawn) -> None:
        self._drawn = drawn

    def __getitem__(self, _: int) -> float:
        return MEMORY[self._drawn.choose(len(MEMORY))]

    def __setitem__(self, _: int, value: float) -> None:
        pass


def decisions(function: Any, drawn: Drawn, arguments: tuple[Any, ...]) -> Iterator[tuple[Any, Any]]:
    """Every answer of the relation in one state, with the packet that it leaves."""
    todo: list[list[int]] = [[]]
    while todo:
        drawn.given, drawn.bounds = todo.pop(), []
        router, in_port, in_vc, fields, table = arguments
        packet = SimpleNamespace(**fields)
        out: dict[int, Any] = {}
        count = function(router, in_port, in_vc, packet, None, table, AnyMemory(drawn), out)
        for place in range(len(drawn.given), len(drawn.bounds)):
            todo += [[*drawn.given, *[0] * (place - len(drawn.given)), k] for k in range(1, drawn.bounds[place])]
        yield [out[k] for k in range(count)], packet


def safe_by_search(
    net: Network, source: str, table: list[int], vcs: int, lengths: list[int], *, takes: str
) -> bool | None:
    """Judge a relation. `takes`: "one" (tail), "credits" or "cut" (through): what a packet that waits can still take.

    None: packets go round for ever, or there are too many states.
    """
    drawn = Drawn()

    def output_vc(_net: Any, _number: int) -> SimpleNamespace:
        return SimpleNamespace(credits=CREDITS[drawn.choose(len(CREDITS))])

    plain: dict[str, Any] = {
        "candidate": lambda port, mask, level=0: (port, mask), "output_vc": output_vc, "njit": lambda one: one,
        "draw_below": lambda _net, _router, bound: drawn.choose(bound),
    }  # fmt: skip
    text = source[source.index("def of_source") : source.index("compiled =")]
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


class Shape(NamedTuple):
    """Source of a relation, and what is compiled of it."""

    source: str
    relation: Any
    feedback: Feedback | None


def compiled_shapes(folder: Path, shapes: list[tuple[str, str, str, str]], learners: int = 0) -> list[Shape]:
    """Write and compile relations; the last `learners` of them learn."""
    found = []
    for number, (draw, write, klass, row) in enumerate(shapes):
        learns = number >= len(shapes) - learners
        path = folder / f"shape{number}.py"
        path.write_text(SOURCE.format(draw=draw, write=write, klass=klass, row=row) + (LEARNING if learns else ""))
        spec = importlib.util.spec_from_file_location(f"hopforge_test_shape{number}", path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        feedback = Feedback(module.told, module.taught) if learns else None
        found.append(Shape(path.read_text(), module.compiled, feedback))
    return found


def generated(number: int, shape: Shape, *, lengths: list[int]) -> tuple[Simulation, str]:
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
        shape.relation, np.array(table, np.int32), max_candidates=8, phases=4,
        obligation="escape" if escape else "acyclic", memory=np.zeros(2), feedback=shape.feedback,
    )  # fmt: skip
    return Simulation(config, 0.1, 1, topology, check=False, plan=plan), release


def network(topology: Topology) -> Network:
    """Neighbours of the routers, and by which port a link comes in there."""
    peer = topology.peer_router.tolist()
    return Network(peer, topology.peer_port.tolist())


def judge(number: int, shapes: list[Shape]) -> tuple[bool, bool | None, str]:
    """Verdicts of the proof and of the search on relation `number`, and what the proof says."""
    shape = shapes[number % len(shapes)]
    source = shape.source
    lengths = [1, 4] if "length" in source else [3]
    run, release = generated(number, shape, lengths=lengths)
    said = ""
    try:
        check_routing(run.topology, run.plan, run.state, "generated")
    except DeadlockError as error:
        said = str(error)
    takes = {"vc_release: tail": "one", "vc_release: credits": "credits"}.get(release, "cut")
    table = run.plan.table.tolist()
    safe = safe_by_search(network(run.topology), source, table, int(run.state["vcs"]), lengths, takes=takes)
    return said == "", safe, said


def check_many(numbers: range, shapes: list[Shape]) -> int:
    """Every relation of `numbers`: none falsely proved, few safe ones refused, and enough of both kinds.

    Returns how many were judged.
    """
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
    return judged
