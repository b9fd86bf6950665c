"""A design with a native register bus, behind a standard bus and with an interrupt."""

from collections.abc import Collection, Mapping
from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hopforge.hw.buses.apb import Apb
from hopforge.hw.buses.axi4_lite import Axi4Lite
from hopforge.hw.buses.interrupts import Interrupts
from hopforge.hw.buses.register_access import RegisterAccess
from hopforge.hw.buses.wishbone import Wishbone
from hopforge.model.router.bus_space import AddressSpace
from hopforge.model.router.interrupts import built_sources

__all__ = ["BRIDGES", "OnBus"]

BRIDGES = {"axi4_lite": ("s_axi", Axi4Lite), "apb": ("s_apb", Apb), "wishbone": ("s_wb", Wishbone)}
"""Bus, the beginning of the names of its ports, and what speaks it."""


class OnBus(wiring.Component):
    """What `inner` is, with a standard bus in the place of its native one.

    All other ports are those of `inner`, with no cycle between. ``irq``: `hopforge.hw.buses.interrupts.Interrupts`.
    Definition: docs/definitions/register-buses.md. Reset: as of its parts.

    Parameters
    ----------
    inner : Component
        The design.
    native : mapping
        Its native bus: ``addr``, ``we``, ``re``, ``wdata``, ``rdata``.
    hidden : collection of str
        Its ports that do not lead outside.
    space : AddressSpace
        Its registers.
    bus : str
        One of `BRIDGES`.
    read_cycles : int
        Latency of a read on its native bus.

    Raises
    ------
    ValueError
        An unknown bus.
    """

    irq: Signal

    def __init__(
        self, *, inner: wiring.Component, native: Mapping[str, Value], hidden: Collection[str], space: AddressSpace,
        bus: str, read_cycles: int = 1,
    ):  # fmt: skip
        if bus not in BRIDGES:
            raise ValueError(f"bus must be one of {', '.join(BRIDGES)}, not {bus!r}")
        self.inner, self.native, self.hidden, self.space = inner, native, hidden, space
        self.read_cycles = read_cycles
        self.prefix, bridge = BRIDGES[bus]
        self.bridge: Any = bridge(space=space)
        members = {name: member for name, member in inner.signature.members.items() if name not in hidden}
        members |= {
            f"{self.prefix}_{name}": member
            for name, member in self.bridge.signature.members.items()
            if name != "access"
        }
        super().__init__({**members, "irq": Out(1)})

    def elaborate(self, platform: object) -> Module:
        """Connect everything."""
        m = Module()
        m.submodules.inner = self.inner
        m.submodules.bridge = bridge = self.bridge
        m.submodules.access = access = RegisterAccess(space=self.space, read_cycles=self.read_cycles)
        m.submodules.interrupts = interrupts = Interrupts(sources=self.space.sources)
        wiring.connect(m, bridge.access, access.access)
        for path, member, inside in self.inner.signature.flatten(self.inner):
            if path[0] not in self.hidden:
                outside: Any = self
                for step in path:
                    outside = getattr(outside, step) if isinstance(step, str) else outside[step]
                self._join(m, member, outside, inside)
        for path, member, inside in bridge.signature.flatten(bridge):
            if path[0] != "access":
                self._join(m, member, getattr(self, f"{self.prefix}_{path[0]}"), inside)
        for name in ("addr", "wdata"):
            word = getattr(access, name)
            m.d.comb += [self.native[name].eq(word), getattr(interrupts, name).eq(word)]
        above = access.addr[-1]
        for name in ("we", "re"):
            strobe = getattr(access, name)
            m.d.comb += [self.native[name].eq(strobe & ~above), getattr(interrupts, name).eq(strobe & above)]
        events = self.events(m)
        m.d.comb += [
            access.rdata.eq(Mux(above, interrupts.rdata, self.native["rdata"])),
            access.disturbed.eq(events.get("link_change", 0)),
            interrupts.events.eq(Cat(events.get(name, 0) for name in built_sources(self.space.sources))),
            self.irq.eq(interrupts.irq),
        ]
        return m

    def events(self, m: Module) -> dict[str, Value]:
        """Return the events of the design, a bit each, by the name of the source of the interrupt."""
        raise NotImplementedError

    @staticmethod
    def _join(m: Module, member: wiring.Member, outside: Any, inside: Any) -> None:
        """Connect a port of a part with the port outside."""
        outside, inside = Value.cast(outside), Value.cast(inside)
        m.d.comb += inside.eq(outside) if member.flow is In else outside.eq(inside)
