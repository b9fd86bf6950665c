"""Control and status registers of a deep lookup engine: a registered bus, reads in two steps."""

from amaranth.hdl import Cat, Const, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import Out

from hopforge.hw.lookup.csr import ControlStatus
from hopforge.hw.parts.sliced_counter import sliced_counter
from hopforge.model.lookup.csr import WORD_BITS, engine_counters
from hopforge.model.lookup.params import LookupParams

SETUP_PERIODS = 3
"""Clock periods for what is computed of the configuration."""


class RegisteredControlStatus(ControlStatus):
    """`ControlStatus` behind a register (``docs/definitions/lookup-engine.md``, *Control of a deep engine*).

    - What the bus and ``link_change`` say in a cycle acts in the next one. ``csr_rdata`` shows a register three cycles
      after ``csr_re``.
    - ``load``: the active registers of the engine take what is computed of the shadows. These have not changed for
      `SETUP_PERIODS` cycles then, so that the computation may take as many periods. The flush is requested beside it.
    - ``active_enable`` is 1 when ``enable`` was so in both cycles before; ``next_enable`` is its next value.
    - ``events`` are counted a cycle later.

    Parameters
    ----------
    params : LookupParams
        The engine.
    """

    load: Signal
    next_enable: Signal

    def __init__(self, *, params: LookupParams):
        super().__init__(params=params)
        self.enabled_before = Signal()
        self.requested = Signal()  # a flush, by the last cycle

    def more_ports(self) -> dict[str, wiring.Member]:
        """Ports besides those of `ControlStatus`."""
        return {"load": Out(1), "next_enable": Out(1)}

    def _bus(self, m: Module) -> None:
        wdata = Signal(WORD_BITS, name="bus_wdata")
        link_change = Signal(name="bus_link_change")
        writing = Signal(name="bus_we")
        self._reading = Signal(name="bus_re")
        m.d.sync += [
            writing.eq(self.csr_we),
            wdata.eq(self.csr_wdata),
            link_change.eq(self.link_change),
            self._reading.eq(self.csr_re),
        ]
        self._wdata = wdata
        self._link_changed = link_change
        self._written = {}
        self._selected: dict[str, Signal] = {}
        for register in self.map:
            name = register.name.lower()
            written = Signal(name=f"write_{name}")
            selected = Signal(name=f"select_{name}")
            m.d.sync += selected.eq(self.csr_addr == register.address)
            m.d.comb += written.eq(writing & selected)
            self._written[register.name] = written
            self._selected[register.name] = selected
        self._status_read = self._reading & self._selected["STATUS"]

    def _activation(self, m: Module, topology_change: Value, configured: Value, switched_on: Value) -> None:
        changed = Signal()
        changed_before = Signal(SETUP_PERIODS - 1)  # lowest bit: in the cycle before
        enabled_before, requested = self.enabled_before, self.requested
        m.d.comb += [
            changed.eq(configured | topology_change),
            self.flush_request.eq(requested | self.load),
            self.next_enable.eq(self.enable & enabled_before),
        ]
        m.d.sync += [
            changed_before.eq(Cat(changed, changed_before)),
            self.load.eq(changed_before[-1] & ~(changed | changed_before[:-1].any())),
            enabled_before.eq(self.enable),
            self.active_enable.eq(self.next_enable),
            requested.eq(self._write_bit("CTRL", "flush") | (self._write_bit("CTRL", "enable") & ~self.enable)),
        ]

    def _counters(self, m: Module) -> None:
        clear = Signal(name="clear_counters")
        m.d.sync += clear.eq(self._write_bit("CTRL", "clear_counters"))
        for number, (name, _) in enumerate(engine_counters(self.params)):
            self._contents[f"COUNT_{name.upper()}"] = sliced_counter(m, name, self.events[number], clear)

    def _read(self, m: Module) -> None:
        """Read in two steps: registers of a group, then groups."""
        groups: dict[str, list[Value]] = {}
        for register in self.map:
            contents = self._contents.get(register.name, Const(self._constant(register), WORD_BITS))
            selected = self._selected[register.name].replicate(len(contents))
            kind = next((kind for kind in ("COUNT", "RADIX") if register.name.startswith(kind)), "others")
            groups.setdefault(kind, []).append(selected & contents)
        words = []
        for kind, values in groups.items():
            word = Signal(WORD_BITS, name=f"read_{kind.lower()}")
            total = values[0]
            for value in values[1:]:
                total = total | value
            m.d.sync += word.eq(total)
            words.append(word)
        reading = Signal(name="read_second")
        m.d.sync += reading.eq(self._reading)
        with m.If(reading):
            m.d.sync += self.csr_rdata.eq(Cat(Cat(word[bit] for word in words).any() for bit in range(WORD_BITS)))
