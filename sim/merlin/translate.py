"""A configuration of SST/Merlin, as ``sst --output-json`` writes it, becomes one of ours."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from hopforge.model.config.translated_file import TranslatedFile
from hopforge.sim.merlin.component_graph import Component, ComponentGraph, read_graph
from hopforge.sim.merlin.networks import Network, translate_network
from hopforge.sim.merlin.units import bits, bits_per_second, nanoseconds

OFFERED_LOAD = "merlin.offered_load"
#: (kind of ours or of the routing, name of Merlin) → algorithm of ours and virtual channels that its proof needs
_ALGORITHMS: dict[tuple[str, str], tuple[str, int]] = {
    ("mesh", ""): ("dor", 1), ("torus", ""): ("dor", 2),
    ("hyperx", "DOR"): ("dor", 1), ("hyperx", "MIN-A"): ("minimal", 4), ("hyperx", "valiant"): ("valiant", 4),
    ("dragonfly", "minimal"): ("dragonfly_min", 3), ("dragonfly", "valiant"): ("valiant_group", 5),
    ("dragonfly", "ugal"): ("ugal_group", 5),
    ("fattree", "deterministic"): ("d_mod_k", 1), ("fattree", "adaptive"): ("nca", 1),
    ("polarfly", "MINIMAL"): ("minimal", 4), ("polarfly", "VALIANT"): ("valiant", 8), ("polarfly", "UGAL"): ("ugal", 8),
}  # fmt: skip
_DEFAULTS = {"hyperx": "DOR", "dragonfly": "minimal", "fattree": "deterministic"}
#: on a graph without a kind: algorithm and virtual channels
_ON_GRAPHS = ("minimal", 8)
_ROUTER_KEYS = {
    "id", "num_ports", "link_bw", "flit_size", "xbar_bw", "input_latency", "output_latency", "input_buf_size",
    "output_buf_size", "topology",
}  # fmt: skip

_SOURCE_KEYS = {"id", "offered_load", "message_size", "link_bw", "warmup_time", "collect_time", "num_peers"}
#: what the links say, or what chooses the algorithm
_METHOD_KEYS = {
    "shape", "width", "local_ports", "algorithm", "routing_alg", "adaptive_threshold", "hosts_per_router",
    "routers_per_group", "intergroup_links", "intergroup_per_router", "intragroup_links", "num_groups",
    "global_routes", "global_route_mode", "global_link_map", "network_name", "q", "num_routers", "connectivity",
    "num_R2N_ports", "num_R2R_ports", "endpoint_to_port_map", "port_to_endpoint_map",
}  # fmt: skip


@dataclass(frozen=True)
class Translation(TranslatedFile):
    """What a file of SST is here.

    Attributes
    ----------
    found : list of (str, str)
        What became of it, for people.
    """

    found: list[tuple[str, str]]

    def rows(self) -> list[tuple[str, str]]:
        """Return (subject, words) for people."""
        return self.found


def translate(path: Path, packet: str | None = None) -> Translation:
    """Translate a file.

    Parameters
    ----------
    path : Path
        JSON of SST.
    packet : str, optional
        Size of a packet, such as ``128B``, where the endpoints do not say it.

    Raises
    ------
    MerlinError
        A file, component or value that cannot be followed: each with its place.
    """
    graph = read_graph(path)
    network = translate_network(graph)
    router = _common(graph, network.routers, "routers")
    sources = _sources(network)
    packet_bits, packet_words = _packet(graph, sources, packet)
    flit = _positive(graph, router, "flit_size", bits)
    message_bits, packet_bits = packet_bits, -(-packet_bits // flit) * flit
    link = _positive(graph, router, "link_bw", bits_per_second)
    flit_ns = packet_bits / link * 10**9
    algorithm, vcs, routed = _routing(graph, network)
    inside = _time(graph, router, "input_latency", "0ns") + _time(graph, router, "output_latency", "0ns")
    section: dict[str, Any] = {
        "model": "input_output_queued", "vcs": vcs, "idle_ports": "flit_later",
        "flit_ns": _number(flit_ns),
        "crossbar_ns": _number(packet_bits / _positive(graph, router, "xbar_bw", bits_per_second) * 10**9),
        "end_ns": 0, "link_ns": _number(network.link_ns + inside),
        "host_ns": _number(network.host_ns + inside / 2),
    }  # fmt: skip
    if network.global_ns is not None:
        section["global_ns"] = _number(network.global_ns + inside)
    for key, ours in (("input_buf_size", "buffer_flits"), ("output_buf_size", "output_buffer_flits")):
        section[ours] = max(int(_positive(graph, router, key, bits) // packet_bits), 1)
    traffic, simulation, driven = _traffic(graph, network, sources, message_bits / flit_ns)
    sections: dict[str, Any] = {"name": _name(path.stem), "topology": network.topology}
    sections |= {"router": section, "routing": {"algorithm": algorithm}}
    sections |= {"traffic": traffic, "simulation": simulation}
    kind = network.topology["kind"]
    here = "a graph, written beside it" if kind == "edge_list" else f"kind {kind}, link by link the same"
    rows = [
        ("network", f"{network.method.type}, {len(network.routers)} routers, {len(network.homes)} endpoints: {here}"),
        ("packets", f"{packet_words}, one flit of the router model: {float(flit_ns):g} ns on a link"),
        ("routing", routed), *driven,
    ]  # fmt: skip
    _refuse_other_rates(graph, network, link)
    rows += _left_out(network, sources)
    return Translation(sections, network.files, f"SST (docs/guides/compare-with-merlin.md): {path}", rows)


def _refuse_other_rates(graph: ComponentGraph, network: Network, link: Fraction) -> None:
    """Refuse links of endpoints that are not as fast as those between routers, and links that have failed."""
    for _, endpoint in network.homes:
        inner = list(endpoint.slots.values())
        while inner:
            each = inner.pop()
            inner += each.slots.values()
            text = each.value("link_bw")
            if each.type.endswith("linkcontrol") and text is not None:
                rate = _positive(graph, each, "link_bw", bits_per_second)
                if rate != link:
                    raise graph.refuse(f"component {each.name}", f"link_bw is {text}; hopforge has links of one rate")
    for router in network.routers:
        method = router.slots["topology"]
        failed = re.findall(r"\d+:\d+:\d+", method.value("failed_links") or "")
        if failed and (method.value("config_failed_links") or "").lower() in ("1", "true"):
            raise graph.refuse(f"component {router.name}", f"failed_links {', '.join(failed)}: write section failed")


def _left_out(network: Network, sources: list[Component]) -> list[tuple[str, str]]:
    """Return what was given and plays no part, as a row for people."""
    found = []
    groups = (
        ("routers", network.routers, _ROUTER_KEYS), ("endpoints", sources, _SOURCE_KEYS),
        ("topology", [router.slots["topology"] for router in network.routers], _METHOD_KEYS),
    )  # fmt: skip
    for what, components, known in groups:
        given = {re.split(r"[.:]", key)[-1] if what == "topology" else key for one in components for key in one.params}
        if given - known:
            found.append(f"of the {what} {', '.join(sorted(given - known))}")
    return [("not translated", "; ".join(found))] if found else []


def _number(value: Fraction) -> float | int:
    return int(value) if value.denominator == 1 else float(value)


def _name(stem: str) -> str:
    name = re.sub(r"[^a-z0-9_]+", "_", stem.lower())
    return name if re.match(r"[a-z]", name) else f"sst_{name}"


def _common(graph: ComponentGraph, components: list[Component], what: str) -> Component:
    """Return the first of components, all of which have the same parameters but for their numbers."""
    own = {"id", "num_ports"}
    first = components[0]
    for other in components[1:]:
        for key in sorted((first.params.keys() | other.params.keys()) - own):
            if first.params.get(key) != other.params.get(key):
                words = f"{key} is {first.params.get(key)} in {first.name} and {other.params.get(key)} in {other.name}"
                raise graph.refuse(what, f"{words}; hopforge has {what} of one kind")
    return first


def _positive(graph: ComponentGraph, component: Component, key: str, read: Callable[[str], Fraction]) -> Fraction:
    """Return a value greater than 0."""
    where = f"component {component.name}, params.{key}"
    text = component.value(key)
    if text is None:
        raise graph.refuse(where, "is missing")
    try:
        value = read(text)
    except ValueError as error:
        raise graph.refuse(where, str(error)) from error
    if value <= 0:
        raise graph.refuse(where, f"must be above 0, not {text}")
    return value


def _time(graph: ComponentGraph, component: Component, key: str, default: str) -> Fraction:
    """Return a time in ns."""
    try:
        return nanoseconds(component.value(key, default) or "")
    except ValueError as error:
        raise graph.refuse(f"component {component.name}, params.{key}", str(error)) from error


def _sources(network: Network) -> list[Component]:
    """Return the endpoints that send a load, if all do."""
    found = [component for _, component in network.homes]
    return found if all(component.type == OFFERED_LOAD for component in found) else []


def _packet(graph: ComponentGraph, sources: list[Component], given: str | None) -> tuple[Fraction, str]:
    if given is not None:
        try:
            size = bits(given)
        except ValueError as error:
            raise graph.refuse("--packet", str(error)) from error
        if size <= 0:
            raise graph.refuse("--packet", f"must be above 0, not {given}")
        return size, f"{given} (--packet)"
    if not sources:
        raise graph.refuse("endpoints", f"are not all {OFFERED_LOAD}: say the size of a packet, --packet 128B")
    words = sources[0].value("message_size", "64b") or ""
    _common(graph, sources, "endpoints")
    if sources[0].value("message_size") is None:
        return Fraction(64), "64b (default of message_size)"
    return _positive(graph, sources[0], "message_size", bits), words


def _routing(graph: ComponentGraph, network: Network) -> tuple[str, int, str]:
    """Return the algorithm, its virtual channels, and words on both."""
    method, kind = network.method, network.topology["kind"]
    theirs = method.type.rpartition(".")[2]
    key = "routing_alg" if theirs == "fattree" else "algorithm"
    words = re.findall(r"[\w-]+", method.value(key) or _DEFAULTS.get(theirs, ""))
    name = words[0] if words else ""
    others = f"; {', '.join(words[1:])} of further virtual networks left out" if words[1:] else ""
    if kind == "edge_list":
        algorithm, vcs = _ON_GRAPHS
        said = f"{theirs} {name}".strip()
        return algorithm, vcs, f"minimal over all shortest paths, {vcs} virtual channels, in place of {said}{others}"
    found = _ALGORITHMS.get((theirs, name))
    if found is None:
        known = ", ".join(sorted(each for where, each in _ALGORITHMS if where == theirs))
        raise graph.refuse(f"component {network.routers[0].name}, topology {key}", f"hopforge has {known}, not {name}")
    threshold = method.value("adaptive_threshold")
    more = f"; adaptive_threshold {threshold} has no counterpart" if threshold and found[0] == "ugal_group" else ""
    channels = f"{found[1]} virtual channel{'s' * (found[1] > 1)}"
    return *found, f"{found[0]}, {channels}, for {name or 'dimension order'}{others}{more}"


def _traffic(
    graph: ComponentGraph, network: Network, sources: list[Component], bits_per_ns: Fraction
) -> tuple[dict[str, Any], dict[str, Any], list[tuple[str, str]]]:
    """Return the sections of traffic and runs, and words on both; `bits_per_ns`: of messages, at a load of 1."""
    traffic: dict[str, Any] = {"source": "interval", "pattern": "uniform", "include_self": False}
    if not sources:
        kinds = ", ".join(sorted({component.type for _, component in network.homes}))
        return traffic, {}, [("traffic", f"uniform, the default: endpoints of type {kinds} are not translated")]
    source = _common(graph, sources, "endpoints")
    peers = source.value("num_peers", str(len(network.homes)))
    if peers != str(len(network.homes)):
        raise graph.refuse("endpoints", f"num_peers is {peers}, of {len(network.homes)}; hopforge sends to all of them")
    rows = []
    target = source.slots.get("pattern")
    pattern = "missing" if target is None else target.type.rpartition(".")[2]
    hosts = len(network.homes)
    goals: list[int] = []
    if pattern == "bit_complement":
        goals = list(range(hosts - 1, -1, -1))
    elif pattern == "shift" and target is not None and (target.value("shift") or "").isdecimal():
        shift = int(target.value("shift") or 0)
        goals = [(host + shift) % hosts for host in range(hosts)]
    elif pattern != "uniform":
        raise graph.refuse("endpoints", f"pattern must be uniform, bit_complement or shift for hopforge, not {pattern}")
    for host, goal in enumerate(goals):
        if host == goal:
            raise graph.refuse("endpoints", f"{pattern} sends from endpoint {host} to itself: Merlin hangs")
        number = sources[host].value("id", str(host))
        if number != str(host):
            words = f"host {host} of the network has id {number}; hopforge has {pattern} by the order of the ports only"
            raise graph.refuse(f"component {sources[host].name}", words)
    if goals:
        traffic = {"source": "interval", "pattern": "destinations", "destinations": goals}
    rate = _positive(graph, source, "link_bw", bits_per_second) / 10**9 / bits_per_ns
    loads = [_number(load * rate) for load in _loads(graph, source)]
    rows.append(("traffic", f"{pattern}, {len(loads)} load{'s' * (len(loads) > 1)}"))
    runs: dict[str, Any] = {"load": loads[0]} if len(loads) == 1 else {"loads": loads}
    for key, default, ours in (("warmup_time", "5us", "warmup_us"), ("collect_time", "20us", "measure_us")):
        runs[ours] = _number(_time(graph, source, key, default) / 1000)
    return traffic, runs, rows


def _loads(graph: ComponentGraph, source: Component) -> list[Fraction]:
    text = source.value("offered_load") or ""
    try:
        value = json.loads(text)
        loads = [Fraction(str(each)) for each in (value if isinstance(value, list) else [value])]
    except (ValueError, RecursionError, OverflowError):
        loads = []
    if not loads or min(loads) <= 0:
        where = f"component {source.name}, params.offered_load"
        raise graph.refuse(where, f"must be a number above 0 or a list of such, not {text or 'missing'}")
    return loads
