"""Blocks of a router, and a fixed table of arbiters and allocators."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from amaranth.lib.wiring import Component

from hopforge.gen.design.blocks import Block, Registered
from hopforge.gen.design.configured import check_interfaces, network_design
from hopforge.hw.allocation.allocator import ALLOCATORS
from hopforge.hw.allocation.crossbar import Crossbar
from hopforge.hw.allocation.switch_allocator import SwitchAllocator
from hopforge.hw.allocation.vc_allocator import VcAllocator
from hopforge.hw.network.interface import NetworkInterface
from hopforge.hw.parts.arbiter import RoundRobinArbiter, TwoLevelRoundRobinArbiter
from hopforge.hw.ports.input_ports import flit_layout, label_bits
from hopforge.hw.ports.input_unit import InputUnit
from hopforge.hw.ports.next_lookup import NextLookup
from hopforge.hw.ports.next_route import NextChoice, NextRoute
from hopforge.hw.ports.output_unit import OutputUnit
from hopforge.hw.ports.shared_lookup import SharedLookup
from hopforge.hw.ports.spread_choice import SpreadChoice, spread_counts
from hopforge.hw.router.router import Router
from hopforge.model.config import Config
from hopforge.model.router.params import RouterParams
from hopforge.model.router.reply_rules import reply_rules

__all__ = ["allocator_blocks", "busiest_router", "router_blocks"]

_RECIPES = ("lut-buffered", "lut-fast")
"""Those that are among the best for routers and allocators of all sizes and finish within minutes."""

_AIMS_UM2_NS = {(5, 4, 64, 4): (55174.0, 0.9)}
"""Area and period by ports, VCs, bits and flits per VC (spec/router.md, the smaller public router)."""

_PORTS = (5, 8, 16)
_VCS = (1, 2, 4)
_ITERATIONS = (2, 4)
_LARGEST_ITERATED = 20
"""Output VCs of a VC allocator of several iterations; with 32 a recipe takes longer than its limit."""
_LARGEST_VC_ALLOCATOR = {"input_first": 64, "output_first": 64, "wavefront": 20}
"""Output VCs up to which a VC allocator is in the table: its gates grow with the square."""
_LARGEST_BY_DEFAULT = 32
"""Output VCs of a VC allocator beyond which a recipe takes longer than the limit."""


def busiest_router(params: tuple[RouterParams, ...]) -> int:
    """Return the number of the first of the routers whose table leads to the most ports."""

    def used(router: RouterParams) -> int:
        ports = 0
        for route in router.routes:
            ports |= route.ports
        return ports.bit_count()

    return max(range(len(params)), key=lambda n: (used(params[n]), -n))


def router_blocks(config: Config) -> dict[str, Block]:
    """Return the router of a configuration and its parts; of its routers the one whose table uses the most ports.

    Flit buffers of the kind ``memory`` are outside, like every other memory; of the kind ``latches`` they are a part.

    Parameters
    ----------
    config : Config
        Checked configuration.

    Raises
    ------
    UserError
        A network, routing or router that the hardware cannot be.
    """
    design = network_design(config)
    number = busiest_router(design.params)
    p = design.params[number]
    area, period = _AIMS_UM2_NS.get((p.ports, p.vcs, p.width_bits, p.buffer_flits), (None, None))
    kinds = {"va": p.va, "sa": p.sa}
    what = f"{p.ports} ports, {p.vcs} VCs, {p.width_bits} bits, {p.buffer_flits} flits, va {p.va}, sa {p.sa}"
    block = partial(Block, clocked=True, recipes=_RECIPES, efforts=False, clock_gates=True)
    found = [
        block(
            name="router", what=f"router {number}: {what}", build=lambda: Router(params=p), aim_ns=period, aim_um2=area
        ),
        block(name="input_unit", what="input side of port 0", build=lambda: InputUnit(params=p, port=0)),
        block(name="output_unit", what="output side of port 0", build=lambda: OutputUnit(params=p, port=0)),
        block(
            name="crossbar",
            what="crossbar, registers behind it",
            build=lambda: Registered(
                Crossbar(inputs=p.ports, outputs=p.ports, width_bits=flit_layout(p).size), inputs=False
            ),
        ),
        block(
            name="switch_allocator",
            what=f"switch allocator, {kinds['sa']}",
            build=lambda: SwitchAllocator(
                ports=p.ports,
                vcs=p.vcs,
                kind=p.sa,
                arbiter=p.arbiter,
                iterations=p.sa_iterations,
                speculation=p.speculation,
                label_bits=label_bits(p),
            ),
        ),
    ]
    found += _choice_blocks(p)
    if p.lookup is not None:
        found += [_engine_block(p, engine) for engine in sorted({0, p.engines - 1})]
    rules = reply_rules(config)
    if rules is not None:
        check_interfaces(design)
        found.append(
            block(
                name="network_interface", what=f"interface of a host, {rules.places} replies, own VCs",
                build=lambda: NetworkInterface(params=p, rules=rules), on_request=True,
            )
        )  # fmt: skip
    if p.va != "free_queue":
        found.append(
            block(
                name="vc_allocator",
                what=f"VC allocator, {kinds['va']}",
                build=lambda: VcAllocator(
                    ports=p.ports, vcs=p.vcs, kind=p.va, arbiter=p.vc_arbiter, iterations=p.va_iterations
                ),
            )
        )
    return {each.name: each for each in found}


def _choice_blocks(p: RouterParams) -> list[Block]:
    """Return what chooses one of several ports, and what a head takes along; without flip-flops."""
    found = []
    if p.spread_router is not None:
        what = f"choice of one port among {p.ports}" + (f", entropy of {p.entropy_bits} bits" if p.entropy_bits else "")
        found.append(
            Block(
                name="spread_choice", what=what, build=lambda: SpreadChoice(params=p, counts=spread_counts(p)),
                recipes=_RECIPES,
            )
        )  # fmt: skip
    if p.lookahead is not None and p.rc == "table":
        unit = NextChoice if p.lookahead.behind else NextRoute
        found.append(
            Block(
                name="next_route", what="route of a head in the next router", build=lambda: unit(params=p),
                recipes=_RECIPES,
            )
        )  # fmt: skip
    return found


def _engine_block(p: RouterParams, engine: int) -> Block:
    """Return a lookup engine with the choice between those that it serves; memories and TCAM outside.

    With look-ahead these are all input VCs of the router if the engine is at an output.
    """
    assert p.lookup is not None
    outside = replace(p, lookup=replace(p.lookup, tcam_kind="external"))
    ports = len(p.engine_ports(engine))
    ahead = p.carries(engine)
    served = f"{p.ports * p.vcs} VCs, at an output" if ahead else f"{ports} port{'s' if ports > 1 else ''}"
    return Block(
        name=f"engine{engine}", what=f"lookup engine {engine}, for {served}",
        build=partial(NextLookup, params=outside) if ahead else partial(SharedLookup, params=outside, members=ports),
        clocked=True, recipes=_RECIPES, efforts=False, clock_gates=True, on_request=True,
    )  # fmt: skip


def allocator_blocks() -> dict[str, Block]:
    """Return round-robin arbiters, and allocators of every kind for 5, 8 and 16 ports with 1, 2 and 4 VCs.

    ``arbiterN``: prefix arbiter of N, ``arbiterGxN``: two levels. ``va_KIND_PxV``, ``sa_KIND_PxV``: P ports, V VCs.
    Inputs and outputs are those of registers outside, which do not count in the area.
    """
    block = partial(Block, clocked=True, recipes=_RECIPES, efforts=False, clock_gates=True)
    found = [
        block(name=f"arbiter{width}", what=f"round-robin arbiter of {width}", build=_arbiter(width))
        for width in (4, 5, 8, 16, 20, 32)
    ]
    found.append(
        Block(
            name="arbiter64",
            what="round-robin arbiter of 64",
            build=_arbiter(64),
            clocked=True,
            aim_ns=0.38,
            clock_gates=True,
        )
    )
    found += [
        block(
            name=f"arbiter{groups}x{width}",
            what=f"round-robin arbiter of {groups * width} in two levels",
            build=partial(TwoLevelRoundRobinArbiter, groups=groups, group_width=width),
        )
        for groups, width in ((5, 4), (8, 8))
    ]
    for ports in _PORTS:
        for vcs in _VCS:
            for kind in ALLOCATORS:
                if ports * vcs <= _LARGEST_VC_ALLOCATOR[kind]:
                    found.append(
                        block(
                            name=f"va_{kind}_{ports}x{vcs}",
                            what=f"VC allocator, {kind}, {ports} ports, {vcs} VCs",
                            build=partial(VcAllocator, ports=ports, vcs=vcs, kind=kind),
                            on_request=ports * vcs > _LARGEST_BY_DEFAULT,
                        )
                    )
                found.append(
                    block(
                        name=f"sa_{kind}_{ports}x{vcs}",
                        what=f"switch allocator, {kind}, {ports} ports, {vcs} VCs",
                        build=partial(SwitchAllocator, ports=ports, vcs=vcs, kind=kind),
                    )
                )
    kinds = ("va", "VC allocator", VcAllocator), ("sa", "switch allocator", SwitchAllocator)
    found += [
        block(
            name=f"{name}_output_first{turns}_{ports}x{vcs}",
            what=f"{what}, output_first, {turns} iterations, {ports} ports, {vcs} VCs",
            build=partial(component, ports=ports, vcs=vcs, iterations=turns), on_request=True,
        )
        for name, what, component in kinds for ports in _PORTS[:2] for vcs in _VCS[1:] for turns in _ITERATIONS
        if name == "sa" or ports * vcs <= _LARGEST_ITERATED
    ]  # fmt: skip
    return {each.name: each for each in found}


def _arbiter(width: int) -> Callable[[], Component]:
    return partial(RoundRobinArbiter, width=width)
