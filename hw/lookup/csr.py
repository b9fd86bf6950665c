"""Control and status registers of the lookup engine."""

from collections.abc import Iterator

from amaranth.hdl import Cat, Const, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hopforge.hw.lookup.tcam import ROW_NUMBER_BITS
from hopforge.hw.parts.event_counter import event_counter
from hopforge.model.lookup.csr import CSR_ADDR_BITS, WORD_BITS, Register, csr_map, engine_counters
from hopforge.model.lookup.params import LookupParams

CONFIGURATION = ("MODE", "OWN", "LEVEL", "RADIX")
"""Registers (beginnings of their names) of which a key depends: a write flushes."""


class ControlStatus(wiring.Component):
    """Registers of ``model.lookup.csr.csr_map``: shadows of the configuration, control, status, counters.

    Bus: a write takes effect at the end of the cycle of ``csr_we``; ``csr_rdata`` holds, from the cycle after
    ``csr_re`` until the next, what was there at the start of the cycle of ``csr_re``.

    - The configuration leaves as one port per field, named as in the map (``mode``, ``chunk_select``, …, ``own``,
      ``radix0``, …); these are the shadows. ``active_enable`` follows ``enable`` one cycle later, together with the
      active registers of the engine.
    - ``flush_request`` comes one cycle after what requests it. ``link_change`` begins a topology change: enable 0,
      ``hold`` 1, mode arbitrary.
    - ``invalidate_pending`` and ``invalidate_dst``: an invalidation that wants to enter, until ``invalidate_taken``;
      the register stays busy until ``invalidate_done``.
    - ``tcam_commit`` and the fields of the row beside it (TCAM inside only).
    - ``events``: one bit per counter, in the order of ``model.lookup.csr.counters``.

    Reset: as in the map.

    Parameters
    ----------
    params : LookupParams
        The engine.
    """

    csr_addr: Signal
    csr_we: Signal
    csr_re: Signal
    csr_wdata: Signal
    csr_rdata: Signal
    link_change: Signal
    enable: Signal
    active_enable: Signal
    hold: Signal
    flush_request: Signal
    invalidate_pending: Signal
    invalidate_dst: Signal
    invalidate_taken: Signal
    invalidate_done: Signal
    scrub_active: Signal
    flush_wait: Signal
    epoch: Signal
    events: Signal
    own: Signal
    members: Signal
    member_hash: Signal
    tcam_busy: Signal
    tcam_overrun: Signal
    tcam_commit: Signal
    tcam_row: Signal
    tcam_value: Signal
    tcam_mask: Signal
    tcam_output: Signal
    tcam_lag: Signal
    tcam_valid: Signal

    def __init__(self, *, params: LookupParams):
        self.params = params
        self.map = csr_map(params)
        ports = {
            "csr_addr": In(CSR_ADDR_BITS),
            "csr_we": In(1),
            "csr_re": In(1),
            "csr_wdata": In(WORD_BITS),
            "csr_rdata": Out(WORD_BITS),
            "link_change": In(1),
            "enable": Out(1),
            "active_enable": Out(1),
            "hold": Out(1),
            "flush_request": Out(1),
            "invalidate_pending": Out(1),
            "invalidate_dst": Out(params.address_bits),
            "invalidate_taken": In(1),
            "invalidate_done": In(1),
            "scrub_active": In(1),
            "flush_wait": In(1),
            "epoch": In(params.epoch_bits),
            "events": In(len(engine_counters(params))),
        }
        ports |= {name: Out(width) for name, width in self.configuration_fields()}
        if params.tcam_kind != "external":
            ports |= {
                "tcam_busy": In(1),
                "tcam_overrun": In(1),
                "tcam_commit": Out(1),
                "tcam_row": Out(ROW_NUMBER_BITS),
                "tcam_value": Out(params.address_bits),
                "tcam_mask": Out(params.address_bits),
                "tcam_output": Out(params.output_bits),
                "tcam_lag": Out(1),
                "tcam_valid": Out(1),
            }
        super().__init__(ports | self.more_ports())

    def more_ports(self) -> dict[str, wiring.Member]:
        """Return the ports that a subclass has besides."""
        return {}

    def configuration_fields(self) -> Iterator[tuple[str, int]]:
        """Names and widths of the configuration ports."""
        for register in (self.map["MODE"], self.map["LEVEL"]):
            for field in register.fields:
                yield field.name, field.width
        yield "own", self.params.address_bits
        for index in range(self.params.radices):
            yield f"radix{index}", self.map[f"RADIX{index}"].fields[0].width

    def elaborate(self, platform: object) -> Module:
        """Build the registers, the read multiplexer and the counters."""
        m = Module()
        self._bus(m)
        self._contents: dict[str, Value] = {}

        topology_change = self._control(m)
        self._configuration(m, topology_change)
        self._invalidation(m)
        if self.params.tcam_kind != "external":
            self._tcam(m)
        self._status(m)
        self._counters(m)
        self._read(m)
        return m

    def _bus(self, m: Module) -> None:
        """Decode the bus: which register is written and read in this cycle, with what data."""
        self._wdata: Value = self.csr_wdata
        self._link_changed: Value = self.link_change
        self._written: dict[str, Value] = {}
        for register in self.map:
            selected = Signal(name=f"write_{register.name.lower()}")
            m.d.comb += selected.eq(self.csr_we & (self.csr_addr == register.address))
            self._written[register.name] = selected
        self._status_read: Value = self.csr_re & (self.csr_addr == self.map["STATUS"].address)

    def _write_bit(self, register: str, field: str) -> Value:
        """Return a bit of a field as it is written in this cycle."""
        return self._written[register] & self._wdata[self.map[register].field(field).lsb]

    def _storage(self, m: Module, name: str) -> Signal:
        """Register that reads back what was written to its ``rw`` fields."""
        register = self.map[name]
        storage = Signal(WORD_BITS, name=name.lower(), init=register.reset)
        with m.If(self._written[name]):
            for field in register.fields:
                if field.access == "rw":
                    here = slice(field.lsb, field.lsb + field.width)
                    m.d.sync += storage[here].eq(self._wdata[here])
        self._contents[name] = storage
        return storage

    def _wide(self, m: Module, name: str, width: int) -> Value:
        """LO and, if there is one, HI word of a register of `width` bits."""
        words = [self._storage(m, f"{name}_{half}") for half in ("LO", "HI") if f"{name}_{half}" in self.map]
        return Cat(words)[:width]

    def _control(self, m: Module) -> Value:
        topology_change = Signal()
        switch_on = Signal()
        m.d.comb += [
            topology_change.eq(self._link_changed | self._write_bit("CTRL", "topology_change")),
            switch_on.eq(self._write_bit("CTRL", "enable") & ~topology_change),
        ]
        configured = [written for name, written in self._written.items() if name.startswith(CONFIGURATION)]
        with m.If(topology_change):
            m.d.sync += [self.enable.eq(0), self.hold.eq(1)]
        with m.Elif(self._written["CTRL"]):
            m.d.sync += self.enable.eq(switch_on)
            with m.If(switch_on):
                m.d.sync += self.hold.eq(0)
        self._activation(m, topology_change, Cat(configured).any(), switch_on & ~self.enable)
        self._contents["CTRL"] = self.enable
        return topology_change

    def _activation(self, m: Module, topology_change: Value, configured: Value, switched_on: Value) -> None:
        """Request flushes, and let ``active_enable`` follow ``enable``."""
        m.d.sync += [
            self.active_enable.eq(self.enable),
            self.flush_request.eq(topology_change | self._write_bit("CTRL", "flush") | switched_on | configured),
        ]

    def _configuration(self, m: Module, topology_change: Value) -> None:
        for name in ("MODE", "LEVEL"):
            storage = self._storage(m, name)
            for field in self.map[name].fields:
                here = storage[field.lsb : field.lsb + field.width]
                m.d.comb += getattr(self, field.name).eq(here)
                if field.name == "mode":
                    with m.If(topology_change):
                        m.d.sync += here.eq(0)
        m.d.comb += self.own.eq(self._wide(m, "OWN", self.params.address_bits))
        for index in range(self.params.radices):
            port = getattr(self, f"radix{index}")
            m.d.comb += port.eq(self._storage(m, f"RADIX{index}")[: len(port)])

    def _invalidation(self, m: Module) -> None:
        A = self.params.address_bits
        busy = Signal(name="invalidate_busy")
        self._invalidate_busy = busy
        target: Value = self._wdata[: min(A, WORD_BITS)]
        if A > WORD_BITS:
            target = Cat(target, self._storage(m, "INVALIDATE_HI")[: A - WORD_BITS])
        with m.If(self._written["INVALIDATE_LO"] & ~busy):
            m.d.sync += [busy.eq(1), self.invalidate_pending.eq(1), self.invalidate_dst.eq(target)]
        with m.If(self.invalidate_taken):
            m.d.sync += self.invalidate_pending.eq(0)
        with m.If(self.invalidate_done):
            m.d.sync += busy.eq(0)

    def _tcam(self, m: Module) -> None:
        A = self.params.address_bits
        write = self.map["TCAM_WRITE"]
        m.d.comb += [
            self.tcam_commit.eq(self._written["TCAM_WRITE"]),
            self.tcam_value.eq(self._wide(m, "TCAM_VALUE", A)),
            self.tcam_mask.eq(self._wide(m, "TCAM_MASK", A)),
            self.tcam_output.eq(self._wide(m, "TCAM_OUTPUT", self.params.output_bits)),
        ]
        for name in ("row", "lag", "valid"):
            field = write.field(name)
            m.d.comb += getattr(self, f"tcam_{name}").eq(self._wdata[field.lsb : field.lsb + field.width])

    def _status(self, m: Module) -> None:
        status = self.map["STATUS"]
        overrun = Signal(name="overrun")
        values: dict[str, Value] = {
            "pending": self.hold,
            "scrub_active": self.scrub_active,
            "flush_wait": self.flush_wait,
            "invalidate_busy": self._invalidate_busy,
            "hold": self.hold,
            "epoch": self.epoch,
        }
        if self.params.tcam_kind != "external":
            values |= {"tcam_busy": self.tcam_busy, "tcam_overrun": overrun}
            with m.If(self.tcam_overrun):
                m.d.sync += overrun.eq(1)
            with m.Elif(self._status_read):
                m.d.sync += overrun.eq(0)
        word = Signal(WORD_BITS, name="status")
        for name, value in values.items():
            lsb = status.field(name).lsb
            m.d.comb += word[lsb : lsb + len(value)].eq(value)
        self._contents["STATUS"] = word

    def _counters(self, m: Module) -> None:
        clear = Signal(name="clear_counters")
        m.d.comb += clear.eq(self._write_bit("CTRL", "clear_counters"))
        for number, (name, _) in enumerate(engine_counters(self.params)):
            self._contents[f"COUNT_{name.upper()}"] = event_counter(m, name, self.events[number], clear)

    def _read(self, m: Module) -> None:
        word = Signal(WORD_BITS, name="read_word")
        with m.Switch(self.csr_addr):
            for register in self.map:
                with m.Case(register.address):
                    m.d.comb += word.eq(self._contents.get(register.name, Const(self._constant(register), WORD_BITS)))
            with m.Default():
                m.d.comb += word.eq(0)
        with m.If(self.csr_re):
            m.d.sync += self.csr_rdata.eq(word)

    @staticmethod
    def _constant(register: Register) -> int:
        """Return what a register without storage reads: its constants; a field that can only be written reads 0."""
        return sum(field.reset << field.lsb for field in register.fields if field.access == "const")
