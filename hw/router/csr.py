"""Control and status registers of a router, and the way from its register bus to the lookup engines."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hopforge.hw.parts.event_counter import event_counter
from hopforge.hw.parts.round_robin import select
from hopforge.hw.ports.input_ports import DROP_BITS
from hopforge.model.lookup.csr import CSR_ADDR_BITS, WORD_BITS, Register, csr_map
from hopforge.model.router.csr import (
    ALL_ENGINES_PAGE,
    ENGINE_PAGE,
    NUMBER_BITS,
    PORT_COUNTERS,
    ROUTER_CSR_ADDR_BITS,
    flit_counters,
    router_csr_map,
)
from hopforge.model.router.params import RouterParams

__all__ = ["RouterCsr", "csr_signature"]

_ROUTER_BITS = CSR_ADDR_BITS + 1  # the router's own registers take two pages


def csr_signature(addr_bits: int) -> wiring.Signature:
    """Register bus, seen from the registers; word addresses."""
    return wiring.Signature(
        {
            "addr": In(addr_bits),
            "we": In(1),
            "re": In(1),
            "wdata": In(WORD_BITS),
            "rdata": Out(WORD_BITS),
        }
    )


class RouterCsr(wiring.Component):
    """Registers of ``model.router.csr.router_csr_map`` and the bus of the engines.

    Bus: a write takes effect at the end of the cycle of ``we``; ``rdata`` holds, from the cycle after ``re`` until the
    next, what was there at the start of the cycle of ``re``. Addresses without a register read 0 and ignore writes.

    - ``arrived``, ``left``, ``dropped``: per port, a flit on the input, one on the output, an unroutable packet gone;
      ``drops``: the counters of the inputs.
    - ``enable`` and ``clear_counters`` are for the router; ``number`` comes from pins.
    - Mode lookup: the engines share ``engine_addr`` and the data; ``engine_we``, ``engine_re`` have a bit for each, and
      ``engine_rdata`` a word.

    Reset: as in the map.

    Parameters
    ----------
    params : RouterParams
        The router.
    """

    csr: Any
    number: Signal
    arrived: Signal
    left: Signal
    dropped: Signal
    drops: Signal
    enable: Signal
    clear_counters: Signal
    flit_events: Signal
    engine_addr: Signal
    engine_we: Signal
    engine_re: Signal
    engine_rdata: Signal

    def __init__(self, *, params: RouterParams):
        self.params = p = params
        self.map = router_csr_map(p)
        members = {
            "csr": Out(csr_signature(ROUTER_CSR_ADDR_BITS)),
            "number": In(NUMBER_BITS),
            "arrived": In(p.ports),
            "left": In(p.ports),
            "dropped": In(p.ports),
            "drops": In(p.ports * DROP_BITS),
            "enable": Out(1, init=self.map["CTRL"].field("enable").reset),
            "clear_counters": Out(1),
        }
        if p.protection is not None:
            members["flit_events"] = In(len(flit_counters(p)))
        if p.rc == "lookup":
            members |= {
                "engine_addr": Out(CSR_ADDR_BITS),
                "engine_we": Out(p.engines),
                "engine_re": Out(p.engines),
                "engine_rdata": In(p.engines * WORD_BITS),
            }
        super().__init__(members)

    def elaborate(self, platform: object) -> Module:
        """Build registers, counters and the way to the engines."""
        m = Module()
        contents: dict[str, Value] = {}
        self._control(m, contents)
        self._own(m, contents)
        self._unroutable(m, contents)
        self._counters(m, contents)
        word = Signal(WORD_BITS)
        here = self.csr.addr >> _ROUTER_BITS == 0
        with m.If(here), m.Switch(self.csr.addr[:_ROUTER_BITS]):
            for register in self.map:
                with m.Case(register.address):
                    m.d.comb += word.eq(contents.get(register.name, Const(_constant(register), WORD_BITS)))
        held = Signal(WORD_BITS)
        with m.If(self.csr.re):
            m.d.sync += held.eq(word)
        if self.params.rc == "lookup":
            self._engines(m, held)
        else:
            m.d.comb += self.csr.rdata.eq(held)
        return m

    def _written(self, name: str) -> Value:
        """Return whether a register is being written."""
        bus = self.csr
        written: Value = bus.we & (bus.addr == self.map[name].address)
        return written

    def _control(self, m: Module, contents: dict[str, Value]) -> None:
        ctrl = self.map["CTRL"]
        data = self.csr.wdata
        m.d.comb += self.clear_counters.eq(self._written("CTRL") & data[ctrl.field("clear_counters").lsb])
        with m.If(self._written("CTRL")):
            m.d.sync += self.enable.eq(data[ctrl.field("enable").lsb])
        contents["CTRL"] = self.enable << ctrl.field("enable").lsb
        contents["NUMBER"] = self.number

    def _own(self, m: Module, contents: dict[str, Value]) -> None:
        for name in ("OWN_LO", "OWN_HI"):
            if name not in self.map:
                continue
            contents[name] = storage = Signal(self.map[name].fields[0].width, name=name.lower())
            with m.If(self._written(name)):
                m.d.sync += storage.eq(self.csr.wdata)

    def _unroutable(self, m: Module, contents: dict[str, Value]) -> None:
        flags = Signal(self.params.ports, name="unroutable")
        cleared: list[Value] = []
        for number, name in enumerate(("UNROUTABLE_LO", "UNROUTABLE_HI")):
            if name not in self.map:
                continue
            width = self.map[name].fields[0].width
            contents[name] = flags[number * WORD_BITS :][:width]
            cleared.append(self.csr.wdata[:width] & self._written(name).replicate(width))
        m.d.sync += flags.eq((flags & ~Cat(cleared)) | self.dropped)
        contents["STATUS"] = flags.any() << self.map["STATUS"].field("unroutable").lsb

    def _counters(self, m: Module, contents: dict[str, Value]) -> None:
        for number, (name, _) in enumerate(flit_counters(self.params)):
            contents[name] = event_counter(m, name.lower(), self.flit_events[number], self.clear_counters)
        for port in range(self.params.ports):
            events = {"FLITS_IN": self.arrived[port], "FLITS_OUT": self.left[port]}
            for stem, _, _ in PORT_COUNTERS:
                name = f"{stem}{port}"
                if stem in events:
                    contents[name] = event_counter(m, name.lower(), events[stem], self.clear_counters)
                else:
                    contents[name] = self.drops[port * DROP_BITS : (port + 1) * DROP_BITS]

    def _engines(self, m: Module, held: Value) -> None:
        p, bus = self.params, self.csr
        assert p.lookup is not None
        page = bus.addr[CSR_ADDR_BITS:]
        registers = csr_map(p.lookup)
        m.d.comb += self.engine_addr.eq(bus.addr)
        own = Signal()  # a write to the router's own address goes to theirs
        for name in ("OWN_LO", "OWN_HI"):
            if name in self.map:
                with m.If(self._written(name)):
                    m.d.comb += [own.eq(1), self.engine_addr.eq(registers[name].address)]
        chosen = Signal(p.engines)
        everyone = (page == ALL_ENGINES_PAGE) | own
        m.d.comb += [
            chosen.eq(Cat(page == ENGINE_PAGE + engine for engine in range(p.engines))),
            self.engine_we.eq((chosen | everyone.replicate(p.engines)) & bus.we.replicate(p.engines)),
            self.engine_re.eq(chosen & bus.re.replicate(p.engines)),
        ]
        source = Signal(p.engines)
        with m.If(bus.re):
            m.d.sync += source.eq(chosen)
        words = [self.engine_rdata[engine * WORD_BITS : (engine + 1) * WORD_BITS] for engine in range(p.engines)]
        m.d.comb += bus.rdata.eq(Mux(source.any(), select(source, words), held))


def _constant(register: Register) -> int:
    """Return what a register of constants reads."""
    return sum(field.reset << field.lsb for field in register.fields if field.access == "const")
