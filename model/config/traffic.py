"""Section `traffic`: packets, classes of traffic, entropy and reorder buffers, and what routers can do for them."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Field

from hopforge.model.config.base import ConfigPath, Problem, Section
from hopforge.model.config.router import RouterConfig
from hopforge.model.config.routing import RoutingConfig
from hopforge.model.config.tables import TablesConfig

_OTHER_COLUMNS = ("acknowledge", "message", "network", "reply", "request", "round_trip")

CLASSES_MAX = 8
"""Classes of traffic of a network."""


class TrafficClassConfig(Section):
    """A class of traffic: a source of its own at every host, and virtual channels of its own if it has `vcs`."""

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$", max_length=32)]
    """Prefix of its columns in results."""
    share: Annotated[float, Field(gt=0, le=1)] | None = None
    """Part of the load that it offers; those of all classes that have one are 1 together."""
    load: Annotated[float, Field(ge=0, le=1)] | None = None
    """In place of `share`: flits per host and cycle, whatever the load of the run is."""
    vcs: Annotated[int, Field(ge=1, le=16)] | None = None
    """Virtual channels that it alone uses (default: all classes share all of them)."""
    priority: Annotated[int, Field(ge=0, le=15)] = 0
    """`router.qos: strict`: a class goes before all that have a lower number."""
    weight: Annotated[int, Field(ge=1, le=255)] = 1
    """`router.qos: weighted`: flits of a class in a round."""
    pattern: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")] | None = None
    """Where its packets go (default: `traffic.pattern`, of which the other keys hold here, too)."""
    packet_flits: Annotated[int, Field(ge=1, le=65535)] | None = None
    """Length of its packets (default: `traffic.packet_flits`)."""

    def problems(self) -> Iterator[Problem]:
        """Check that it says how much it offers."""
        if (self.share is None) == (self.load is None):
            yield Problem("share", f"or load must be given, not {'both' if self.share is not None else 'none of them'}")


def class_problems(traffic: Any) -> Iterator[Problem]:
    """Return what is wrong with the classes of a `TrafficConfig`; keys are from that section."""
    classes = traffic.classes
    if not classes:
        return
    if not 2 <= len(classes) <= CLASSES_MAX:
        yield Problem("classes", f"must be 2 to {CLASSES_MAX}, not {len(classes)}")
    names = [each.name for each in classes]
    for number, name in enumerate(names):
        if name in names[:number]:
            yield Problem(f"classes[{number}].name", f"{name} is the name of class {names.index(name)}, too")
        if name in _OTHER_COLUMNS:
            yield Problem(f"classes[{number}].name", f"{name} is the beginning of other columns of results")
    shares = [each.share for each in classes if each.share is not None]
    if shares and abs(sum(shares) - 1) > 1e-6:
        yield Problem("classes", f"shares must be 1 together, not {sum(shares):.6g}")
    own = [each.name for each in classes if each.vcs is not None]
    if own and len(own) < len(classes):
        without = next(name for name in names if name not in own)
        yield Problem("classes", f"vcs must be given for all classes or none, not for {own[0]} and not for {without}")
    for key, limit, value in (
        ("source", "bernoulli", traffic.source),
        ("message_packets", 1, traffic.message_packets),
        ("reply", None, traffic.reply),
        ("acknowledge", None, traffic.acknowledge),
        ("packet_range", None, traffic.packet_range),
        ("packet_lengths", (), traffic.packet_lengths),
    ):
        if value != limit:
            given = "it" if isinstance(value, Section | tuple) else value
            wanted = f"must be {limit}" if key in ("source", "message_packets") else "cannot stand together"
            ending = f", not {given}" if key in ("source", "message_packets") else ""
            yield Problem(key, f"{wanted} with traffic.classes{ending}")
    if "file" in (traffic.pattern, *(each.pattern for each in classes)):
        yield Problem("classes", "pattern file is not for classes of traffic; patterns with a name are")


class EntropyConfig(Section):
    """A number in packets by which `routing.spread: entropy` takes ways (docs/definitions/spraying.md)."""

    per: Literal["flow", "message", "packet", "flowlet"] = "packet"
    """What has a number of its own: all packets between two hosts, a message, a packet, or a run of packets between two
    hosts without a long gap."""
    values: Annotated[int, Field(ge=1, le=(1 << 31) - 1)] = 65536
    """Different numbers that there are."""
    gap_cycles: Annotated[int, Field(ge=1, le=10**9)] | None = None
    """`flowlet`: cycles from the tail of a packet to the next packet from which on this begins a new flowlet."""

    def problems(self) -> Iterator[Problem]:
        """Check that flowlets have a gap."""
        if self.per == "flowlet" and self.gap_cycles is None:
            yield Problem("gap_cycles", "missing; per=flowlet needs it")
        if self.per != "flowlet" and self.gap_cycles is not None:
            yield Problem("gap_cycles", f"is for per=flowlet only, not per={self.per}")


class ReorderConfig(Section):
    """What hosts do with packets that come before their turn; it is measured, too (docs/definitions/spraying.md)."""

    deliver: Literal["in_order", "at_once"] = "in_order"
    """They wait in a reorder buffer; or count when they come."""
    buffer_packets: Annotated[int, Field(ge=0, le=(1 << 31) - 1)] | None = None
    """`in_order`: places for the packets of each source; a source sends no packet that may find none (default: no
    limit)."""

    def problems(self) -> Iterator[Problem]:
        """Check that a buffer has packets that wait."""
        if self.deliver == "at_once" and self.buffer_packets is not None:
            yield Problem("buffer_packets", "is for deliver=in_order only, not deliver=at_once")


def spraying_problems(
    router: RouterConfig, routing: RoutingConfig, entropy: EntropyConfig | None, given: dict[str, bool]
) -> Iterator[Problem]:
    """Return what of the entropy and of reorder buffers does not fit; keys are from the root of the file.

    Parameters
    ----------
    router, routing, entropy
        Sections.
    given : dict
        Key of section `traffic` → whether the file asks for it.
    """
    if routing.spread == "entropy" and entropy is None:
        yield Problem("traffic.entropy", "missing; routing.spread=entropy needs it")
    if routing.spread != "entropy" and entropy is not None:
        reader = "null" if routing.spread is None else routing.spread
        yield Problem("traffic.entropy", f"needs routing.spread=entropy, which reads it, not {reader}")
    for key in ("entropy", "reorder"):
        if not given[key]:
            continue
        if router.model != "input_queued":
            yield Problem(f"traffic.{key}", f"needs router.model=input_queued, not {router.model}")
        for other in ("reply", "acknowledge", "classes"):
            if given[other]:
                yield Problem(f"traffic.{key}", f"cannot stand together with traffic.{other}")


def path_problems(routing: RoutingConfig, tables: TablesConfig) -> Iterator[Problem]:
    """Return what of tables with several paths and of their choice does not fit; keys are from the root of the file."""
    several = tables.scheme == "k_shortest"
    if routing.algorithm != "tables":
        return
    if several and routing.spread is None:
        yield Problem("routing.spread", "missing; tables.scheme=k_shortest needs it: it says who chooses a path")
    if several and routing.links in ("hash", "adaptive"):
        yield Problem("routing.links", f"{routing.links} is not for tables.scheme=k_shortest: each path has one link")
    if routing.spread is not None and not several:
        yield Problem(
            "routing.spread",
            f"needs tables.scheme=k_shortest with algorithm=tables, not {tables.scheme}, which has one path",
        )


Count = Annotated[int, Field(ge=1, le=65535)]


class ReplyConfig(Section):
    """A packet that a host sends back to the source of every packet that reaches it (docs/definitions/replies.md)."""

    flits: Count = 1
    """Length of a reply."""
    lengths: tuple[Count, ...] = ()
    """Length of the reply to a request of each of `packet_lengths` instead."""
    delay_cycles: Annotated[int, Field(ge=0, le=65535)] = 1
    """Cycles from the arrival of a request's tail to the creation of its reply; with 0 it leaves a cycle later, too."""
    vcs: Literal["own", "shared"] = "own"
    """Requests use the lower half of the virtual channels and replies the upper one, or both use all."""
    sender: Literal["own", "shared"] = "own"
    """Replies have a sender of their own, and go first; or a host sends packet by packet, replies before requests."""
    queue: Count | None = None
    """Replies that a host can keep; a request whose reply has no place waits outside (default: no limit)."""


class AcknowledgeConfig(Section):
    """What routers send back for packets that have arrived, hop by hop (docs/definitions/acknowledges.md)."""

    flits: Count = 3
    """Length of an acknowledge."""
    ratio: Annotated[int, Field(ge=0, le=65535)] = 1
    """Every so many packets of a host ask for one; 0: none does."""
    delay_cycles: Count = 1
    """Cycles from the arrival of a tail to the creation of the acknowledge that it causes."""
    vcs: Literal["shared", "own"] = "shared"
    """Acknowledges use the escape channels of the routing algorithm, all VCs if it has none; or the last VC, which
    nothing else uses."""
    queue: Count | None = None
    """Acknowledges on their way that a router can keep; more are dropped (default: no limit)."""
    own_queue: Count | None = None
    """Acknowledges of packets that have arrived here that a router can keep; no more are made (default: no limit)."""
    table: Annotated[int, Field(ge=1, le=1 << 20)] = 1024
    """Entries of packets under way that a router can keep; no entry is made in a full table."""
    age_limit_cycles: Annotated[int, Field(ge=1, le=1 << 60)] | None = None
    """Cycles that an entry lives (default: no limit)."""
    skew_cycles: Annotated[int, Field(ge=0, le=10**9)] = 0
    """The clock of each router is wrong by up to so many cycles, drawn from the seed: times of entries and stamps."""


class TrafficConfig(Section):
    """Pattern, source and packet lengths; the load stands in section `simulation`."""

    pattern: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")] = "uniform"
    """uniform, bit_complement, bit_reverse, bit_rotation, transpose, transpose3d, shuffle, butterfly, butterfly_stages,
    tornado, neighbour, permutation, hotspot, local, adversarial, stencil, many_to_many, random_neighbours,
    all_to_all, diagonal, asymmetric, taper64, badperm_yarc; on HyperX and grids dimension_complement_reverse,
    dimension_tornado, swap2, uniform_random_bisection; destinations; or `file`."""
    file: ConfigPath | None = None
    """For `pattern: file`: Python file with a function `prepare`; relative to this configuration file."""
    prepare_limit_s: Annotated[float, Field(gt=0)] = 600.0
    """For `pattern: file`: longest processor time of the file and its `prepare`."""
    include_self: bool = True
    """`uniform`: the sender is one of the destinations."""
    share: Annotated[float, Field(ge=0, le=1)] = 0.5
    """`hotspot`, `local`: probability of a hot or near destination; the rest is uniform."""
    targets: tuple[Annotated[int, Field(ge=0)], ...] = ()
    """`hotspot`: hot hosts (default: the last one)."""
    destinations: tuple[Annotated[int, Field(ge=0, le=(1 << 31) - 1)], ...] = ()
    """`destinations`: the destination of every host."""
    shift: int = 1
    """`adversarial`: i of ADV+i."""
    dimension: Annotated[int, Field(ge=0)] = 0
    """`uniform_random_bisection`: the dimension that is complemented."""
    grid: tuple[Annotated[int, Field(ge=1)], ...] = ()
    """`stencil`: sizes of the grid of hosts, x first."""
    line: Annotated[int, Field(ge=0)] = 0
    """`many_to_many`: hosts of a line."""
    low: Annotated[int, Field(ge=1)] = 6
    """`random_neighbours`: fewest partners."""
    high: Annotated[int, Field(ge=1)] = 20
    """`random_neighbours`: most partners."""
    partners: Literal["once", "each_round"] = "once"
    """`random_neighbours`: drawn at the beginning, each packet for one of them; or anew for each round."""
    order: Literal["cyclic", "random"] = "cyclic"
    """`all_to_all`: order of the destinations."""
    source: Literal["bernoulli", "on_off", "interval", "rounds", "program"] = "bernoulli"
    """A message with the same probability in every cycle; in bursts; in fixed intervals, all hosts at the same time
    (`input_output_queued`); the same, and each time a packet for every partner of the pattern; or hosts run the program
    of section `workload`."""
    nic_packets: Annotated[int, Field(ge=1, le=65535)] = 20
    """`interval`, `rounds`: packets that wait in a host; the source stands still while they are so many."""
    burst_cycles: Annotated[float, Field(ge=1)] = 100.0
    """`on_off`: mean length of a burst. A pause lasts a cycle or more, so that loads above `burst_load` ·
    `burst_cycles` / (`burst_cycles` + 1) are refused."""
    burst_load: Annotated[float, Field(gt=0, le=1)] = 1.0
    """`on_off`: flits per cycle inside a burst."""
    message_packets: Count = 1
    """Packets of a message: created together, for one destination."""
    reply: ReplyConfig | None = None
    """Every packet is a request, and its destination sends a reply (default: none does)."""
    acknowledge: AcknowledgeConfig | None = None
    """Routers acknowledge packets over the routers that these have visited (default: none does)."""
    classes: tuple[TrafficClassConfig, ...] = ()
    """Classes of traffic, each with a source at every host (default: one for all)."""
    entropy: EntropyConfig | None = None
    """What hosts write into packets for `routing.spread: entropy` (default: nothing)."""
    reorder: ReorderConfig | None = None
    """Packets of a source in order, and how far from it they come (default: they count when they come)."""
    packet_flits: Count = 1
    """Length of packets."""
    packet_range: Annotated[tuple[Count, ...], Field(min_length=2, max_length=2)] | None = None
    """Lengths uniform between these two instead."""
    packet_lengths: tuple[Count, ...] = ()
    """Lengths with different probabilities instead."""
    packet_weights: tuple[Annotated[float, Field(gt=0, le=1e12)], ...] = ()
    """Relative frequency of each of `packet_lengths`."""
    flit_bytes: Annotated[int, Field(ge=1, le=65536)] = 16
    """`program`: payload of a flit."""
    eager_bytes: Annotated[int, Field(ge=0)] = 0
    """`program`: the sender of a smaller message goes on at once, of another when it has left the host."""
    rendezvous_bytes: Annotated[int, Field(ge=0)] | None = None
    """`program`: messages of more bytes than that are sent when their receive is posted, which they ask for (default:
    none)."""
    matched_bytes: Annotated[int, Field(ge=0)] | None = None
    """`program`: of the others, those of so many bytes and more are, too, but know it at once (default: none)."""
    injection: Literal["messages", "packets"] = "messages"
    """`program`: a host sends one message after the other, or packets of all that it has in turn."""
    cycles_per_flop: Annotated[float, Field(ge=0)] = 0.0
    """`program`: cycles that computing takes for each recorded flop; 0 = no time."""
    cycles_per_second: Annotated[float, Field(ge=0)] = 0.0
    """`program`: cycles that sleeping takes for each recorded second; 0 = no time."""

    def problems(self) -> Iterator[Problem]:
        """Check what concerns several keys."""
        if self.pattern == "file" and self.file is None:
            yield Problem("file", "missing; pattern=file needs it")
        if self.pattern != "file" and self.file is not None:
            yield Problem("file", f"is for pattern=file only, not pattern={self.pattern}")
        patterns = {self.pattern, *(each.pattern for each in self.classes)}
        if "destinations" in patterns and not self.destinations:
            yield Problem("destinations", "missing; pattern=destinations needs it")
        if "destinations" not in patterns and self.destinations:
            yield Problem("destinations", f"is for pattern=destinations only, not pattern={self.pattern}")
        if "uniform_random_bisection" not in patterns and self.dimension:
            yield Problem("dimension", f"is for pattern=uniform_random_bisection only, not pattern={self.pattern}")
        if self.packet_range is not None and self.packet_range[0] > self.packet_range[1]:
            yield Problem("packet_range", f"must go from short to long, not {list(self.packet_range)}")
        if self.packet_range is not None and self.packet_lengths:
            yield Problem("packet_lengths", "cannot stand together with packet_range")
        if "random_neighbours" in patterns and (self.source == "rounds") != (self.partners == "each_round"):
            yield Problem("partners", f"must be each_round with source=rounds, else once, not {self.partners}")
        if self.source == "program" and self.pattern != "uniform":
            yield Problem("pattern", f"is for source=bernoulli or on_off only, not source={self.source}")
        if self.source not in ("bernoulli", "on_off") and self.message_packets != 1:
            yield Problem("message_packets", f"is for source=bernoulli or on_off only, not source={self.source}")
        if self.reply is not None and self.source not in ("bernoulli", "on_off"):
            yield Problem("reply", f"is for source=bernoulli or on_off only, not source={self.source}")
        if self.reply is not None and self.message_packets != 1:
            yield Problem("reply", f"is for message_packets=1 only, not {self.message_packets}")
        if self.reply is not None and self.acknowledge is not None:
            yield Problem("acknowledge", "cannot stand together with reply")
        if self.reply is not None and self.reply.sender == "shared" and self.reply.queue is not None:
            yield Problem("reply.queue", "cannot stand together with sender=shared: replies wait behind requests there")
        if self.reply is not None and self.reply.lengths:
            yield from _reply_length_problems(self.reply, self.packet_lengths)
        if len(self.packet_lengths) != len(self.packet_weights):
            reason = f"must be as many as packet_lengths={len(self.packet_lengths)}, not {len(self.packet_weights)}"
            yield Problem("packet_weights", reason)
        yield from class_problems(self)

    def mean_flits(self) -> float:
        """Mean length of a message in flits."""
        return self.message_packets * self._mean_packet_flits()

    @property
    def highest_load(self) -> float:
        """Most flits per host and cycle that the source offers: `on_off` pauses between bursts for a cycle or more."""
        return self.burst_load * self.burst_cycles / (self.burst_cycles + 1) if self.source == "on_off" else 1.0

    def reply_lengths(self) -> dict[int, int]:
        """Length of a request → length of its reply, in flits; empty: all replies have `reply.flits`."""
        lengths = () if self.reply is None else self.reply.lengths
        return dict(zip(self.packet_lengths, lengths, strict=True)) if lengths else {}

    def longest_flits(self) -> int:
        """Length of the longest packet of a source in flits."""
        if self.classes:
            return max(each.packet_flits or self.packet_flits for each in self.classes)
        return max(self.packet_lengths or (self.packet_range or (self.packet_flits,))[-1:])

    @property
    def shortest_packet(self) -> int:
        """Flits of the shortest packet that a host can send."""
        if self.source == "program":
            return 1
        if self.classes:
            return min(each.packet_flits or self.packet_flits for each in self.classes)
        return min(self.packet_lengths or (self.packet_range or (self.packet_flits,))[:1])

    def _mean_packet_flits(self) -> float:
        if self.packet_lengths:
            pairs = zip(self.packet_lengths, self.packet_weights, strict=True)
            return sum(length * weight for length, weight in pairs) / sum(self.packet_weights)
        low, high = self.packet_range or (self.packet_flits, self.packet_flits)
        return (low + high) / 2


def _reply_length_problems(reply: ReplyConfig, packet_lengths: tuple[int, ...]) -> Iterator[Problem]:
    """Return why the length of a request does not say how long its reply is."""
    if "flits" in reply.model_fields_set:
        yield Problem("reply.flits", "cannot stand together with lengths")
    if not packet_lengths:
        yield Problem("packet_lengths", "missing; reply.lengths needs it: the length of a request says its reply's")
    elif len(reply.lengths) != len(packet_lengths):
        reason = f"must be as many as packet_lengths={len(packet_lengths)}, not {len(reply.lengths)}"
        yield Problem("reply.lengths", reason)
    twice = [length for length in packet_lengths if packet_lengths.count(length) > 1]
    if twice:
        yield Problem("packet_lengths", f"must differ with reply.lengths; {twice[0]} stands there twice")


def quality_problems(router: RouterConfig, routing: RoutingConfig, traffic: TrafficConfig) -> Iterator[Problem]:
    """Return what the routers cannot do for the classes of traffic; keys are from the root of the file."""
    classes = traffic.classes
    if router.qos != "none" and not classes:
        yield Problem("router.qos", f"{router.qos} needs traffic.classes")
    if not classes:
        return
    if router.model != "input_queued":
        yield Problem("traffic.classes", f"needs router.model=input_queued, not {router.model}")
        return
    if routing.decision == "host":
        yield Problem("routing.decision", "host is for traffic without classes")
    counts = [each.vcs for each in classes if each.vcs is not None]
    if counts and sum(counts) != router.vcs:
        together = " + ".join(map(str, counts))
        yield Problem("router.vcs", f"must be those of traffic.classes, {together} = {sum(counts)}, not {router.vcs}")
    longest = max(each.packet_flits or traffic.packet_flits for each in classes)
    if router.switching != "wormhole" and longest > router.buffer_flits:
        yield Problem(
            "traffic.classes",
            f"packet_flits must be at most router.buffer_flits={router.buffer_flits} with "
            f"router.switching={router.switching}, not {longest}",
        )
    if router.qos == "none":
        return
    if not counts:
        yield Problem("router.qos", f"{router.qos} needs classes with vcs of their own (traffic.classes.vcs)")
    if router.qos == "strict" and len({each.priority for each in classes}) == 1:
        yield Problem("router.qos", f"strict needs classes of different priority, not all of {classes[0].priority}")
    for key, wrong in (
        ("speculation", router.speculation is not False),
        ("hold_switch", router.hold_switch),
        ("sa", router.sa == "input_ahead"),
    ):
        if wrong:
            value = str(getattr(router, key)).lower()
            yield Problem(f"router.{key}", f"cannot be {value} with router.qos={router.qos}")
