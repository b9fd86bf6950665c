"""Which traffic and which routing a run has, in words."""

from collections.abc import Callable, Mapping

from hopforge.model.config import Config
from hopforge.model.config.uses import key_words
from hopforge.model.routing.combined.configured import routing_plan
from hopforge.model.topology.configured import network_topology

__all__ = ["class_rows", "failure_plan_rows", "run_rows"]


#: algorithms whose classes of virtual channels have several schemes (`model.routing.ways.channel_classes`)
_OF_CLASSES = ("minimal", "valiant", "valiant_compact")
_PROGRAM = "the program of section workload"


def run_rows(variants: Mapping[str, Config], *, programs: bool = False) -> list[tuple[str, str]]:
    """Say which traffic and routing a run has, or each variant of a sweep by its name: subject and words.

    Parameters
    ----------
    variants : mapping
        Name → configuration; one without a name: a run.
    programs : bool
        They run programs by the engine of section `app`, which may know no routing.
    """
    rows = [("traffic", _PROGRAM if programs else _by_variant(variants, _traffic))]
    routed = {name: each for name, each in variants.items() if not (programs and each.app.engine == "loggops")}
    if routed:
        rows.append(("routing", _by_variant(routed, _routing)))
    looked_up = {name: each for name, each in routed.items() if each.router.route_computation == "lookup"}
    return rows + ([("keys", _by_variant(looked_up, key_words))] if looked_up else [])


def class_rows(variants: Mapping[str, Config]) -> list[tuple[str, str]]:
    """Say which variants of a sweep could have more classes of virtual channels than they have: subject and words."""
    found = {name: words for name, each in variants.items() if (words := _class_advice(each))}
    if not found:
        return []
    if len(variants) == 1:
        return [("classes", next(iter(found.values())))]
    names: dict[str, list[str]] = {}
    for name, words in found.items():
        names.setdefault(words, []).append(name)
    return [("classes", "; ".join(f"{', '.join(some)}: {words}" for words, some in names.items()))]


def failure_plan_rows(variants: Mapping[str, Config]) -> list[tuple[str, str]]:
    """Say which variants of a sweep have failures in the middle of every run: subject and words."""
    if not any(each.simulation.failures for each in variants.values()):
        return []
    return [("failures", _by_variant(variants, _failures))]


def _failures(config: Config) -> str:
    times = sorted({failure.cycle for failure in config.simulation.failures})
    return f"in every run, from cycle {', '.join(map(str, times))} on" if times else "none"


def _class_advice(config: Config) -> str:
    """Return the advice of the routing plan; nothing where none can be, without making the plan."""
    routing = config.routing
    if config.router.model == "packet" or routing.classes is not None or routing.algorithm not in _OF_CLASSES:
        return ""
    if not config.failed.none:
        return ""
    return routing_plan(config, network_topology(config)).advice


def _by_variant(variants: Mapping[str, Config], words: Callable[[Config], str]) -> str:
    names: dict[str, list[str]] = {}
    for name, config in variants.items():
        names.setdefault(words(config), []).append(name)
    if len(names) == 1:
        return next(iter(names))
    return "; ".join(f"{', '.join(some)}: {text}" for text, some in names.items())


def _traffic(config: Config) -> str:
    traffic = config.traffic
    if traffic.source == "program":
        return _PROGRAM
    pattern = traffic.file.name if traffic.file is not None else traffic.pattern
    if config.router.model == "packet":
        return f"{pattern}, {_count(traffic.message_packets, 'packet')} of {config.packet.packet_bytes} bytes a message"
    if traffic.classes:
        classes = "; ".join(_class(config, number) for number in range(len(traffic.classes)))
        return f"source {traffic.source}; {classes}"
    lengths = _count(traffic.packet_flits, "flit")
    if traffic.packet_lengths:
        lengths = f"{', '.join(map(str, traffic.packet_lengths))} flits"
    elif traffic.packet_range is not None:
        lengths = f"{traffic.packet_range[0]} to {traffic.packet_range[1]} flits"
    messages = f", {traffic.message_packets} packets a message" if traffic.message_packets > 1 else ""
    return f"{pattern}, source {traffic.source}, packets of {lengths}{messages}"


def _class(config: Config, number: int) -> str:
    """Say what a class of traffic is, and what it is due."""
    traffic, each = config.traffic, config.traffic.classes[number]
    offers = f"{each.load:g} flits" if each.share is None else f"{100 * each.share:.4g} % of the load"
    vcs = "all VCs" if each.vcs is None else _count(each.vcs, "VC")
    due = {"none": "", "strict": f", priority {each.priority}", "weighted": f", weight {each.weight}"}
    lengths = _count(each.packet_flits or traffic.packet_flits, "flit")
    words = f"{each.name}: {each.pattern or traffic.pattern}, {offers}, packets of {lengths}, {vcs}"
    return words + due[config.router.qos]


def _routing(config: Config) -> str:
    routing = config.routing
    algorithm = routing.file.name if routing.file is not None else routing.algorithm
    if config.router.model == "packet":
        return algorithm
    if algorithm == "tables":
        algorithm = f"tables ({config.tables.scheme}, {config.tables.layers})"
    looked_up = ", looked up" if config.router.route_computation == "lookup" else ""
    return f"{algorithm}, {_count(config.router.vcs, 'virtual channel')}{looked_up}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
