"""Elaboration parameters of a router. The hardware and the golden router are both built from them."""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Literal

from hopforge.model.config.limits import AHEAD_ASKERS_MAX, asker_bits
from hopforge.model.config.router import VcArbiter, choice_ahead_problem, hidden_cycles_problem
from hopforge.model.lookup.params import LookupParams
from hopforge.model.numbers.code_word import PROTECTIONS, Protection
from hopforge.model.router.quality import Quality

__all__ = [
    "CLASS_BITS",
    "CYCLES_PER_FLIT_MAX",
    "INPUT_VCS_MAX",
    "PORT_BITS",
    "Behind",
    "LookAhead",
    "Route",
    "RouterParams",
    "check_input_vcs",
    "output_port_bits",
]

PORT_BITS = 6
"""Bits of a looked-up output that are the port (``output_kind: port``)."""

CLASS_BITS = 4
"""Bits above them that are the class."""

INPUT_VCS_MAX = {"wavefront": 512, "matrix": 256, "iterations": 256}
"""Input VCs of a router (ports · VCs) up to which these are built; what else there is takes any number."""

CYCLES_PER_FLIT_MAX = 1024
"""Cycles from a flit to the next one at an output."""

ITERATIONS_MAX = 16
"""Iterations of iSLIP in a cycle."""

SPREAD_ROUTER_BITS = 32
"""Bits of a router's number in the hash that chooses a port."""

_LIMITS = {
    "ports": (2, 64),
    "vcs": (1, 16),
    "buffer_flits": (1, 1024),
    "rc_cycles": (0, 255),
    "entropy_bits": (0, 31),
    "va_iterations": (1, ITERATIONS_MAX),
    "sa_iterations": (1, ITERATIONS_MAX),
    "credit_delay_cycles": (0, 255),
    "width_bits": (1, 4096),
    "address_bits": (1, 48),
    "tag_bits": (0, 64),
    "length_bits": (1, 16),
}
_CHOICES = {
    "switching": ("wormhole", "vct"),
    "rc": ("table", "lookup"),
    "va": ("input_first", "output_first", "wavefront", "max_size", "free_queue"),
    "sa": ("input_first", "output_first", "wavefront", "max_size", "input_ahead"),
    "arbiter": ("round_robin", "matrix"),
    "va_arbiter": (None, "round_robin", "matrix"),
    "vc_release": ("tail", "credits"),
    "output_kind": ("port", "port_set"),
    "ports_per_engine": (1, 2, 4),
    "flit_buffers": ("memory", "latches", "flip_flops"),
    "protection": (None, *PROTECTIONS),
}
_NEIGHBOUR_FLITS = (1, 65535)

Rule = tuple[tuple[tuple[tuple[int, ...], ...], ...], ...]
"""Mask of output VCs, by class, input port, input VC and output port."""


def output_port_bits(ports: int) -> int:
    """Return the bits of the port in what a lookup answers: 6, more for more than 64 ports; the class stands above."""
    return max(PORT_BITS, (ports - 1).bit_length())


def check_input_vcs(
    ports: int, vcs: int, kind: str, arbiter: str, key: str = "arbiter", iterations: int = 1
) -> None:
    """Refuse a VC allocator of which the hardware is too large to be generated, before any of it is made.

    A wavefront has a cell for each of the (ports·vcs)² pairs, several iterations have a choice among ports·vcs for each
    output VC and iteration, the matrix arbiters have about (ports·vcs)³ / 2 flip-flops.

    Parameters
    ----------
    ports, vcs, kind, arbiter, iterations
        As in `RouterParams`, `kind` is its ``va``, `arbiter` its ``vc_arbiter``, `iterations` its ``va_iterations``.
    key : str
        Where that was given.

    Raises
    ------
    ValueError
        Naming the parameter, its limit and its value.
    """
    if kind == "free_queue":
        return
    name, value, other = (key, arbiter, "round_robin")
    limit = INPUT_VCS_MAX.get(arbiter)
    if kind == "wavefront":
        name, value, other, limit = "va", kind, "another va", INPUT_VCS_MAX[kind]
    elif iterations > 1:
        name, value, other, limit = "va_iterations", str(iterations), "1", INPUT_VCS_MAX["iterations"]
    if limit is not None and ports * vcs > limit:
        raise ValueError(
            f"{name}: {value} takes at most {limit} input VCs (ports · vcs), not {ports} · {vcs} = {ports * vcs}; "
            f"{other} takes all"
        )


@dataclass(frozen=True)
class Route:
    """Entry of the routing table.

    Parameters
    ----------
    ports : int
        Mask of the ports that are equally good; 0: unroutable.
    route_class : int
        Row of the VC rule.
    escape : int, optional
        Port to take if none of them has a free VC.
    """

    ports: int
    route_class: int = 0
    escape: int | None = None


@dataclass(frozen=True)
class Behind:
    """The router behind an output, where routers spread packets: its number, and its table."""

    router: int
    routes: tuple[Route, ...]


@dataclass(frozen=True)
class LookAhead:
    """What a router knows of the routers behind it (docs/definitions/router.md, Look-ahead).

    Parameters
    ----------
    carried_inputs : int
        Mask of the inputs where heads bring their route along.
    next_routes : tuple of int
        Mode table: field `route` of heads that leave, by destination (`RouterParams.route_field`); 0 behind its end.
        In mode lookup the engines of outputs answer it.
    behind : tuple of Behind
        In place of it where a packet takes one of several ports: the router behind each output; None: a host, nothing.
        In mode lookup without tables, and one at every carried port.
    """

    carried_inputs: int = 0
    next_routes: tuple[int, ...] = ()
    behind: tuple[Behind | None, ...] = ()


@dataclass(frozen=True, kw_only=True)
class RouterParams(VcArbiter):
    """One router, everything decided (docs/definitions/router.md).

    Parameters
    ----------
    ports, vcs : int
        Ports P, virtual channels V of a port.
    buffer_flits : int
        Depth B of an input VC.
    neighbour_flits : tuple of int
        Depth behind each output, the credits at reset; empty: `buffer_flits` everywhere.
    cycles_per_flit : tuple of int
        Cycles from a flit to the next one at each output; empty: 1 everywhere.
    switching : str
        ``wormhole`` or ``vct``.
    rc : str
        ``table`` or ``lookup``.
    rc_cycles : int
        Cycles of RC in mode table.
    lookahead : LookAhead, optional
        Heads bring their route along, and leave with that of the next router.
    va, sa : str
        ``input_first``, ``output_first``, ``wavefront`` or ``max_size`` (golden routers only); va also ``free_queue``:
        no VC allocator, and with it sa also ``input_ahead``: inputs choose a cycle ahead.
    arbiter : str
        ``round_robin`` or ``matrix``.
    va_arbiter : str, optional
        That of the VC allocator, if it is another one.
    va_iterations, sa_iterations : int
        Iterations of va and sa ``output_first`` in a cycle.
    speculation : bool
        Heads ask for the switch while they ask for a VC.
    vc_release : str
        ``tail`` or ``credits``.
    credit_delay_cycles : int
        Additional cycles before a returned credit counts.
    width_bits, address_bits, tag_bits, length_bits : int
        Data of a flit; in a head, from bit 0 on: destination, source, tag, (vct) number of flits.
    routes : tuple of Route
        Table by destination; a destination behind its end is unroutable.
    spread_router : int, optional
        The router's number: a packet takes one of the ports of its route, by the hash of source, destination and this
        number (docs/definitions/any-routing.md, Spread).
    entropy_bits : int
        Bits of the entropy behind all else in a head, which enters this hash, too; 0: there is none.
    vc_rule, escape_rule : tuple
        Mask of output VCs by class, input port, input VC, output port, for the ports of a route and for its
        escape; empty: one class, all VCs.
    lookup : LookupParams, optional
        Every lookup engine in mode lookup.
    output_kind : str
        What the engine answers: ``port`` or ``port_set``.
    ports_per_engine : int
        Input ports that share a lookup engine: 1, 2 or 4; the last engine serves what is left over.
    flit_buffers : str
        ``memory`` (macros, or flip-flops), ``latches`` or ``flip_flops`` (standard cells).
    protection : str, optional
        Check bits of the flits in the buffers: ``parity`` or ``secded``.
    quality : Quality, optional
        What classes of traffic are due at the switch.

    Raises
    ------
    ValueError
        Naming the parameter, its limit and its value.
    """

    ports: int
    vcs: int
    buffer_flits: int
    neighbour_flits: tuple[int, ...] = ()
    cycles_per_flit: tuple[int, ...] = ()
    switching: Literal["wormhole", "vct"] = "wormhole"
    rc: Literal["table", "lookup"] = "table"
    rc_cycles: int = 0
    lookahead: LookAhead | None = None
    va: Literal["input_first", "output_first", "wavefront", "max_size", "free_queue"] = "output_first"
    sa: Literal["input_first", "output_first", "wavefront", "max_size", "input_ahead"] = "output_first"
    arbiter: Literal["round_robin", "matrix"] = "round_robin"
    va_arbiter: Literal["round_robin", "matrix"] | None = None
    va_iterations: int = 1
    sa_iterations: int = 1
    speculation: bool = False
    vc_release: Literal["tail", "credits"] = "tail"
    credit_delay_cycles: int = 0
    width_bits: int = 64
    address_bits: int = 24
    tag_bits: int = 8
    length_bits: int = 8
    routes: tuple[Route, ...] = ()
    spread_router: int | None = None
    entropy_bits: int = 0
    vc_rule: Rule = ()
    escape_rule: Rule = ()
    lookup: LookupParams | None = None
    output_kind: Literal["port", "port_set"] = "port"
    ports_per_engine: Literal[1, 2, 4] = 1
    flit_buffers: Literal["memory", "latches", "flip_flops"] = "memory"
    protection: Protection | None = None
    quality: Quality | None = None

    def __post_init__(self) -> None:
        for problem in self._problems():
            raise ValueError(problem)

    @property
    def protected(self) -> tuple[Protection, ...]:
        """The protection, if there is one."""
        return () if self.protection is None else (self.protection,)

    @property
    def longest_packet(self) -> int:
        """Most flits of a packet whose length a head can tell; where heads tell none, more than any packet has."""
        return (1 << (self.length_bits if self.switching == "vct" else 32)) - 1

    @property
    def header_bits(self) -> int:
        """Bits of a head that mean something to routers and hosts."""
        return self.entropy_at + self.entropy_bits

    @property
    def entropy_at(self) -> int:
        """Lowest bit of the entropy in a head."""
        return self.route_at + self.route_bits

    @property
    def route_at(self) -> int:
        """Lowest bit of field `route` of a head."""
        return 2 * self.address_bits + self.tag_bits + (self.length_bits if self.switching == "vct" else 0)

    @property
    def route_bits(self) -> int:
        """Bits of field `route` of a head; 0 without look-ahead."""
        return 0 if self.lookahead is None else self.port_field_bits + CLASS_BITS

    @property
    def port_field_bits(self) -> int:
        """Bits of the port in field `route`: the numbers of the ports, and one more for none."""
        return self.ports.bit_length()

    def route_field(self, route: Route) -> int:
        """Field `route` that stands for an entry of one port or none."""
        port = route.ports.bit_length() - 1 if route.ports else self.ports
        return port | route.route_class << self.port_field_bits

    def rc_cycles_at(self, port: int) -> int:
        """Cycles of RC in mode table of heads that come to an input port."""
        return 0 if self.carries(port) else self.rc_cycles

    def carries(self, port: int) -> bool:
        """Whether heads bring their route along to an input port; in mode lookup its engine is at the output then."""
        return self.lookahead is not None and bool(self.lookahead.carried_inputs >> port & 1)

    @property
    def answer_bits(self) -> int:
        """Bits of what the engine of an output answers: a set of ports with a spread, else field `route`."""
        return self.route_bits if self.spread_router is None else self.ports

    @property
    def asks_ahead(self) -> bool:
        """Whether heads ask a lookup engine for their route in the next router."""
        return self.rc == "lookup" and self.lookahead is not None

    @property
    def classes(self) -> int:
        """Number of classes of routes."""
        return len(self.vc_rule) or 1

    @property
    def engines(self) -> int:
        """Number of lookup engines; 0 in mode table."""
        return -(-self.ports // self.ports_per_engine) if self.rc == "lookup" else 0

    def engine_ports(self, engine: int) -> range:
        """Return the input ports that a lookup engine serves, its members."""
        first = engine * self.ports_per_engine
        return range(first, min(first + self.ports_per_engine, self.ports))

    @property
    def adaptive(self) -> bool:
        """Whether a packet can have several ports to choose from."""
        if self.spread_router is not None:
            return False
        if self.rc == "lookup":
            return self.output_kind == "port_set"
        return any(route.ports & (route.ports - 1) for route in self.routes)

    @property
    def escapes(self) -> bool:
        """Whether a route can have an escape port."""
        return self.rc == "table" and any(route.escape is not None for route in self.routes)

    @property
    def structure(self) -> tuple[object, ...]:
        """All parameters but routes, rules and neighbours, with what of these decides how parts are built.

        Parts of routers with the same structure differ only by their own routes, rules and credits.
        """
        own = {
            "routes", "spread_router", "lookahead", "vc_rule", "escape_rule", "neighbour_flits", "cycles_per_flit",
        }  # fmt: skip
        common = tuple(getattr(self, field.name) for field in fields(self) if field.name not in own)
        deepest = max(self.credits(port) for port in range(self.ports))
        carried = None if self.lookahead is None else self.lookahead.carried_inputs
        return (*common, self.adaptive, self.escapes, self.classes, deepest, carried)

    def credits(self, port: int) -> int:
        """Depth behind an output, in flits."""
        return self.neighbour_flits[port] if self.neighbour_flits else self.buffer_flits

    @property
    def slow_ports(self) -> tuple[int, ...]:
        """Outputs whose channels take more than a cycle for a flit."""
        return tuple(port for port, cycles in enumerate(self.cycles_per_flit) if cycles > 1)

    def vc_mask(self, route_class: int, in_port: int, in_vc: int, out_port: int) -> int:
        """Output VCs that a packet may take; a class without a rule has none."""
        return self._mask(self.vc_rule, route_class, in_port, in_vc, out_port)

    def escape_mask(self, route_class: int, in_port: int, in_vc: int, out_port: int) -> int:
        """Output VCs that a packet may take on its escape port."""
        return self._mask(self.escape_rule, route_class, in_port, in_vc, out_port)

    def _mask(self, rule: Rule, route_class: int, in_port: int, in_vc: int, out_port: int) -> int:
        if route_class >= self.classes:
            return 0
        return rule[route_class][in_port][in_vc][out_port] if rule else (1 << self.vcs) - 1

    def _problems(self) -> Iterator[str]:
        for name, (low, high) in _LIMITS.items():
            value = getattr(self, name)
            if not low <= value <= high:
                yield f"{name} must be in {low} to {high}, not {value}"
        for name, known in _CHOICES.items():
            value = getattr(self, name)
            if value not in known:
                yield f"{name} must be one of {', '.join(map(str, known))}, not {value!r}"
        yield from self._lookahead_problems()
        yield from self._spread_problems()
        yield from self._iteration_problems()
        if self.quality is not None:
            yield from self.quality.problems(self.vcs)
            for name, refused in (("speculation", True), ("sa", "input_ahead")):
                if getattr(self, name) == refused:
                    yield f"{name} cannot be {refused} with quality.kind={self.quality.kind}"
        if self.sa == "input_ahead":
            problem = choice_ahead_problem(self.va, self.rc, self.rc_cycles, self.switching)
            if problem:
                yield f"sa: {problem}"
            if self.adaptive or self.escapes:
                yield "routes must have one port and no escape with sa='input_ahead'"
        if self.va == "free_queue" and self.speculation:
            yield "speculation must be False with va='free_queue' (heads ask for the switch anyway), not True"
        if self.sa == "input_ahead" and self.slow_ports:
            yield "sa must be another than 'input_ahead' with cycles_per_flit above 1 (its inputs choose a cycle ahead)"
        yield from self._of_outputs_problems("neighbour_flits", _NEIGHBOUR_FLITS)
        yield from self._of_outputs_problems("cycles_per_flit", (1, CYCLES_PER_FLIT_MAX))
        if self.width_bits < self.header_bits:
            yield f"width_bits must be at least {self.header_bits} (the header), not {self.width_bits}"
        for name in ("vc_rule", "escape_rule"):
            yield from self._rule_problems(name)
        if self.rc == "table":
            yield from self._table_problems()
        else:
            yield from self._lookup_problems()

    def _iteration_problems(self) -> Iterator[str]:
        for name, kind, arbiter_key, arbiter in (
            ("va", self.va, self.vc_arbiter_key, self.vc_arbiter), ("sa", self.sa, "arbiter", self.arbiter),
        ):  # fmt: skip
            count = getattr(self, f"{name}_iterations")
            if count == 1:
                continue
            if kind != "output_first":
                yield f"{name} must be output_first with {name}_iterations={count}, not {kind}"
            if arbiter != "round_robin":
                yield f"{arbiter_key} must be round_robin with {name}_iterations={count}, not {arbiter}"
            if self.quality is not None:
                yield f"quality must be None with {name}_iterations={count}, not {self.quality.kind}"
            if self.va == "free_queue":
                yield f"va must be an allocator with {name}_iterations={count}, not free_queue"

    def _of_outputs_problems(self, name: str, limits: tuple[int, int]) -> Iterator[str]:
        values = getattr(self, name)
        if values and len(values) != self.ports:
            yield f"{name} must have ports={self.ports} numbers, not {len(values)}"
        for port, value in enumerate(values):
            if not limits[0] <= value <= limits[1]:
                yield f"{name}[{port}] must be in {limits[0]} to {limits[1]}, not {value}"

    def _spread_problems(self) -> Iterator[str]:
        if self.spread_router is None:
            if self.entropy_bits:
                yield f"entropy_bits must be 0 without spread_router, not {self.entropy_bits}"
            return
        if not 0 <= self.spread_router < 1 << SPREAD_ROUTER_BITS:
            yield f"spread_router must be below 2**{SPREAD_ROUTER_BITS}, not {self.spread_router}"
        if self.rc == "lookup" and self.output_kind != "port_set":
            yield f"spread_router must be None with output_kind={self.output_kind!r}, not {self.spread_router}"
        if self.escapes:
            yield f"spread_router must be None with escapes in routes, not {self.spread_router}"

    def _lookahead_problems(self) -> Iterator[str]:
        ahead = self.lookahead
        if ahead is None:
            return
        if not 0 <= ahead.carried_inputs < 1 << self.ports:
            yield f"lookahead.carried_inputs must be below 2**ports={1 << self.ports}, not {ahead.carried_inputs}"
        if self.rc == "lookup":
            yield from self._engines_ahead_problems(ahead)
            return
        hidden = hidden_cycles_problem(self.rc_cycles, self.va, self.speculation)
        if hidden:
            yield f"rc_cycles {hidden}"
        if self.adaptive or self.escapes:
            yield "routes must have one port and no escape with lookahead"
        if ahead.behind and (self.spread_router is None or len(ahead.behind) != self.ports):
            yield f"lookahead.behind must have ports={self.ports} routers, with spread_router, not {len(ahead.behind)}"
        if len(ahead.next_routes) > len(self.routes):
            yield f"lookahead.next_routes must be at most {len(self.routes)}, as routes, not {len(ahead.next_routes)}"
        for dst, value in enumerate(ahead.next_routes):
            if not 0 <= value < 1 << self.route_bits:
                yield f"lookahead.next_routes[{dst}] must be below {1 << self.route_bits}, not {value}"

    def _engines_ahead_problems(self, ahead: LookAhead) -> Iterator[str]:
        """Check that the engine of an output can answer for the next router."""
        if ahead.next_routes:
            yield f"lookahead.next_routes must be empty with rc='lookup', not {len(ahead.next_routes)} routes"
        if self.output_kind != "port" and self.spread_router is None:
            yield f"output_kind must be port with lookahead without spread_router, not {self.output_kind}"
        if self.spread_router is not None:
            behind = ahead.behind or (None,) * self.ports
            missing = [o for o in range(self.ports) if self.carries(o) and (o >= len(behind) or behind[o] is None)]
            if missing or len(behind) != self.ports:
                yield f"lookahead.behind must have a router at every carried port, not {len(ahead.behind)} entries"
        if self.ports_per_engine != 1:
            yield f"ports_per_engine must be 1 with lookahead, not {self.ports_per_engine}"
        askers = self.ports * self.vcs
        if askers > AHEAD_ASKERS_MAX:
            yield f"ports · vcs must be at most {AHEAD_ASKERS_MAX} with lookahead and rc='lookup', not {askers}"
        elif self.lookup is not None and asker_bits(askers, 1) > self.lookup.request_tag_bits:
            limit = f"must number ports · vcs={askers} with lookahead, not {self.lookup.request_tag_bits} bits"
            yield f"lookup.request_tag_bits {limit}"

    def _rule_problems(self, name: str) -> Iterator[str]:
        rule = getattr(self, name)
        if not rule:
            return
        if len(rule) > 1 << CLASS_BITS or len(rule) != self.classes:
            yield f"{name} must have {min(self.classes, 1 << CLASS_BITS)} classes, not {len(rule)}"
        for k, of_class in enumerate(rule):
            shape = f"{name}[{k}] must have {self.ports} ports of {self.vcs} VCs of {self.ports} masks"
            if [[len(row) for row in of_port] for of_port in of_class] != [[self.ports] * self.vcs] * self.ports:
                yield shape
            for mask in (mask for of_port in of_class for row in of_port for mask in row):
                if not 0 <= mask < 1 << self.vcs:
                    yield f"{name}[{k}]: a mask must be below 2**vcs={1 << self.vcs}, not {mask}"

    def _table_problems(self) -> Iterator[str]:
        if len(self.routes) > 1 << self.address_bits:
            yield f"routes must be at most 2**address_bits={1 << self.address_bits}, not {len(self.routes)}"
        for dst, route in enumerate(self.routes):
            if not 0 <= route.ports < 1 << self.ports:
                yield f"routes[{dst}].ports must be below 2**ports={1 << self.ports}, not {route.ports}"
            if not 0 <= route.route_class < self.classes:
                yield f"routes[{dst}].route_class must be below classes={self.classes}, not {route.route_class}"
            if route.escape is not None and not 0 <= route.escape < self.ports:
                yield f"routes[{dst}].escape must be below ports={self.ports}, not {route.escape}"

    def _lookup_problems(self) -> Iterator[str]:
        if self.lookup is None:
            yield "lookup must be given with rc='lookup'"
            return
        if self.lookup.address_bits != self.address_bits:
            yield f"lookup.address_bits must be address_bits={self.address_bits}, not {self.lookup.address_bits}"
        if asker_bits(self.vcs, self.ports_per_engine) > self.lookup.request_tag_bits:
            whose = f" of ports_per_engine={self.ports_per_engine} ports" if self.ports_per_engine > 1 else ""
            yield f"lookup.request_tag_bits must number vcs={self.vcs}{whose}, not {self.lookup.request_tag_bits} bits"
        if self.output_kind == "port_set" and self.lookup.output_bits < self.ports:
            yield f"lookup.output_bits must be at least ports={self.ports} for port sets, not {self.lookup.output_bits}"
        if self.output_kind == "port" and 1 << self.lookup.output_bits < self.ports:
            yield f"lookup.output_bits must number ports={self.ports}, not {self.lookup.output_bits} bits"
