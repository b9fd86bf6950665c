"""NPB DT, data traffic: vectors flow through a graph of sources, comparators and sinks, one node a rank."""

from dataclasses import dataclass, field
from functools import lru_cache

from hopforge.model.apps.calls import DOUBLE, INT, Calls
from hopforge.model.apps.npb_random import SEED

#: class → samples, deviation, sources
SIZES = {
    "S": (1728, 128, 4), "W": (1728 * 8, 256, 8), "A": (1728 * 64, 512, 16), "B": (1728 * 512, 1024, 32),
    "C": (1728 * 4096, 2048, 64), "D": (1728 * 32768, 4096, 128),
}
GRAPHS = ("BH", "WH", "SH")
FIELDS, DEGREE = 4, 4
#: operations that compare and weigh one value of a vector (dt.c, WindowFilter: three distances of four fields)
OPERATIONS_PER_VALUE = 9


@dataclass
class Node:
    """A node of the graph; arcs are (number, node at the other end) in the order in which they were attached."""

    kind: str
    incoming: list[tuple[int, int]] = field(default_factory=list)
    outgoing: list[tuple[int, int]] = field(default_factory=list)
    length: int = 0


def legal(problem: str, ranks: int, graph: str) -> bool:
    """Tell whether the graph has at most so many nodes."""
    return ranks >= len(graph_nodes(problem, graph)[0])


@lru_cache(maxsize=8)
def graph_nodes(problem: str, graph: str) -> tuple[list[Node], int]:
    """Return the nodes in their order, with the length of what each sends, and the number of arcs.

    BH: a tree with fan-in 4 from the sources to one sink (black hole); WH: the same turned around (white hole); SH:
    layers of comparators, each with two arcs at distance 1, 2, 4, … (shuffle).
    """
    samples, deviation, sources = SIZES[problem]
    kinds, arcs = _shuffle(sources) if graph == "SH" else _tree(sources)
    if graph == "WH":
        last = len(kinds) - 1
        turned = {"source": "sink", "sink": "source"}
        kinds = [turned.get(kind, kind) for kind in reversed(kinds)]
        arcs = [(last - head, last - tail) for tail, head in arcs]
    nodes = [Node(kind) for kind in kinds]
    for number, (tail, head) in enumerate(arcs):
        nodes[tail].outgoing.append((number, head))
        nodes[head].incoming.append((number, tail))
    for number, node in enumerate(nodes):
        if node.kind == "source":
            node.length = FIELDS * _features(number, samples, deviation)
        else:  # the longest of what comes in, at least a vector of its own
            node.length = max([FIELDS * samples, *(nodes[tail].length for _, tail in node.incoming)])
    return nodes, len(arcs)


def _tree(sources: int) -> tuple[list[str], list[tuple[int, int]]]:
    kinds, arcs = ["source"] * sources, []
    start, width = 0, sources
    while width > DEGREE:
        upper = -(-width // DEGREE)
        for index in range(upper):
            for child in range(index * DEGREE, min((index + 1) * DEGREE, width)):
                arcs.append((start + child, len(kinds)))
            kinds.append("comparator")
        start, width = start + width, upper
    arcs += [(start + child, len(kinds)) for child in range(width)]
    return [*kinds, "sink"], arcs


def _shuffle(sources: int) -> tuple[list[str], list[tuple[int, int]]]:
    kinds, arcs = ["source"] * sources, []
    layers = sources.bit_length() - 2
    for layer in range(layers + 1):
        mask, start = 1 << layer, layer * sources
        for index in range(sources):
            for below in (index & ~mask, index | mask):
                arcs.append((start + below, len(kinds)))
            kinds.append("comparator" if layer < layers else "sink")
    return kinds, arcs


def _features(number: int, samples: int, deviation: int) -> int:
    """Return how many features a source has (dt.c, GetFeatureNum)."""
    factor = 2 * number + 1
    share = SEED * factor % (1 << 46) / (1 << 46)
    return samples - deviation + abs(_power(int(1 / share) * ord("S"), factor, 2 * deviation))


def _power(base: int, exponent: int, modulus: int) -> int:
    """Return base^exponent as dt.c calculates it (ipowMod): 32-bit products that wrap, remainders with their sign."""

    def product(a: int, b: int) -> int:
        wrapped = (a * b + (1 << 31)) % (1 << 32) - (1 << 31)
        rest = abs(wrapped) % modulus
        return rest if wrapped >= 0 else -rest

    odd = 1
    while exponent > 1:
        if exponent % 2:
            odd = product(odd, base)
            exponent -= 1
        else:
            base = product(base, base)
            exponent //= 2
    return product(odd, base)


def write(calls: Calls, problem: str, ranks: int, graph: str) -> None:
    """Append the calls of one rank; ranks beyond the graph's nodes are idle."""
    nodes, arcs = graph_nodes(problem, graph)
    if calls.rank < len(nodes):
        node = nodes[calls.rank]
        for number, tail in node.incoming:
            calls.recv(tail, number, 1, INT)
            calls.recv(tail, number, nodes[tail].length)
            calls.compute(OPERATIONS_PER_VALUE * nodes[tail].length)
        for number, head in node.outgoing:
            calls.send(head, number, 1, INT)
            calls.send(head, number, node.length)
        if node.kind == "sink":
            calls.send(0, arcs + calls.rank, 1, DOUBLE)
    if calls.rank == 0:  # reports
        for number, node in enumerate(nodes):
            if node.kind == "sink":
                calls.recv(number, arcs + number, 1, DOUBLE)
