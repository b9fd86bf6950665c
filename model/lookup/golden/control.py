"""What every engine has beside its stages: registers of the CSR bus, flush and epoch, scrubber, counters."""

from hopforge.model.lookup.csr import MODES, Register, csr_map, engine_counters
from hopforge.model.lookup.golden.cache import Cache
from hopforge.model.lookup.golden.keys import ActiveConfig, KeyFunctions
from hopforge.model.lookup.golden.mshrs import MshrFile
from hopforge.model.lookup.golden.operations import CycleEvents, Kind, Operation
from hopforge.model.lookup.golden.ports import LookupInputs
from hopforge.model.lookup.golden.tcam import InsideTcam, TcamResult, TcamRow, external_answer
from hopforge.model.lookup.params import LookupParams

_WORD = (1 << 32) - 1


class EngineControl:
    """Registers, flush and scrubber of an engine; its stages are those of `LookupEngine` or `DeepLookupEngine`.

    Parameters
    ----------
    params : LookupParams
        What the engine is built with.

    Attributes
    ----------
    counters : dict
        Value of every counter (`model.lookup.csr.COUNTERS`) at the start of the next cycle.
    """

    def __init__(self, params: LookupParams) -> None:
        self.params = params
        self.keys = KeyFunctions(params)
        self._map = csr_map(params)
        self._internal = params.tcam_kind != "external"
        self.reset()

    def reset(self) -> None:
        """Bring every register and memory into the state after reset."""
        params = self.params
        self._shadow = {register.name: register.reset & register.write_mask for register in self._map}
        self._active = self._from_shadow()
        self._flush_request = False
        self._configured = False  # in the cycle before: a write to a configuration register, or a topology change
        self._hold = False
        self._pending = False
        self._debt = 0
        self._scrub_active = False
        self._scrub_row = 0
        self._flush_wait = False
        self._invalidate_pending = False
        self._invalidate_busy = False
        self._invalidate_dst = 0
        self._cache = Cache(params)
        self._mshrs = MshrFile(params.mshrs)
        self._tcam = InsideTcam(params)
        self._overrun = False
        self._rdata = 0
        self._line_error = False
        self.counters = {name: 0 for name, _ in engine_counters(params)}

    def flip(self, row: int, way: int, bit: int) -> None:
        """Invert a stored bit of a line at the end of the cycle of the last `step` (docs/definitions/protection.md)."""
        self._cache.flip(row, way, bit)

    @property
    def cache(self) -> Cache:
        """The lines."""
        return self._cache

    def rows_of(self, dst: int) -> tuple[int, ...]:
        """Return the row of each way in which the line of a destination lies, by the active configuration."""
        return self.keys.rows(self.keys.key(self._active, dst))

    def _read_lines(self, operation: Operation) -> None:
        """Let an operation read its lines."""
        scrubs = operation.kind is Kind.SCRUB
        rows = (operation.row,) * self.params.ways if scrubs else self.keys.rows(operation.key)
        operation.found = self._cache.read(rows)

    def _end_of_lines(self, events: CycleEvents) -> None:
        """Write repaired lines; let `line_error` follow what is counted in this cycle."""
        self._cache.write_back()
        self._line_error = "line_errors" in events.counts or "line_repairs" in events.counts

    @property
    def _quiet(self) -> bool:
        """Whether nothing goes on behind the stages."""
        busy = self._scrub_active or self._flush_wait or self._flush_request or self._invalidate_busy
        return not (busy or self._tcam.busy or self._configured) and self._mshrs.free == self.params.mshrs

    def _answer(self, inputs: LookupInputs) -> tuple[int, TcamResult] | None:
        """Return (MSHR, result) that the TCAM says in this cycle."""
        return self._tcam.answer() if self._internal else external_answer(inputs)

    def _row_flushes(self) -> bool:
        """Return whether a TCAM row that becomes effective in this cycle requests a flush."""
        return bool(self._tcam.row_effective and self._shadow["CTRL"])

    def _flush_decision(self, request: bool) -> tuple[bool, bool]:
        """Return (go, deferred)."""
        most = (1 << self.params.epoch_bits) - 1
        if self._flush_wait:
            return self._debt == 0, False
        return request and self._debt < most, request and self._debt == most

    def _scrubber(self, events: CycleEvents, *, go: bool, deferred: bool) -> None:
        if events.scrub_done:
            self._scrub_row = (self._scrub_row + 1) % self.params.sets
            if self._scrub_row == 0 and not (go or deferred):
                self._scrub_active = False
                self._debt = 0
        if go:
            self._cache.epoch = (self._cache.epoch + 1) % (1 << self.params.epoch_bits)
            self._debt += 1
            self._scrub_active = True
            self._scrub_row = 0
            self._flush_wait = False
            events.count("flushes")
        elif deferred:
            self._flush_wait = True
            self._scrub_row = 0

    # ---- registers of the CSR bus

    def _from_shadow(self) -> ActiveConfig:
        """Return the configuration that the shadow registers ask for."""
        return self.keys.config(
            enable=self._shadow["CTRL"],
            own=self._wide("OWN"),
            radices=tuple(self._shadow[f"RADIX{index}"] for index in range(self.params.radices)),
            **self._map["MODE"].decode(self._shadow["MODE"]),
            **self._map["LEVEL"].decode(self._shadow["LEVEL"]),
        )

    def _wide(self, name: str) -> int:
        return self._shadow[f"{name}_LO"] | self._shadow.get(f"{name}_HI", 0) << 32

    def _read(self, address: int) -> int:
        """Return what the bus reads at `address` in this cycle."""
        register = self._map.by_address.get(address)
        if register is None:
            return 0
        if register.name == "STATUS":
            return register.encode(
                pending=self._pending, scrub_active=self._scrub_active, flush_wait=self._flush_wait,
                tcam_busy=self._tcam.busy, invalidate_busy=self._invalidate_busy, tcam_overrun=self._overrun,
                hold=self._hold, epoch=self._cache.epoch,
            )  # fmt: skip
        if register.name.startswith("COUNT_"):
            return self.counters[register.name.removeprefix("COUNT_").lower()]
        return register.reset & ~register.write_mask | self._shadow[register.name]

    def _note_read(self, address: int) -> None:
        """End a read: STATUS forgets that a row was lost."""
        register = self._map.by_address.get(address)
        if register is not None and register.name == "STATUS":
            self._overrun = False

    def _count(self, counts: dict[str, int]) -> None:
        for name, count in counts.items():
            self.counters[name] = (self.counters[name] + count) & _WORD

    def _bus(self, inputs: LookupInputs) -> None:
        """Take the write on the CSR bus, and `link_change`; what they ask for is in `_configured`, `_flush_request`."""
        self._configured = self._flush_request = False
        register = self._map.by_address.get(inputs.csr_addr)
        if inputs.csr_we and register is not None:
            self._write(register, inputs.csr_wdata)
        if inputs.link_change:
            self._topology_change()

    def _write(self, register: Register, data: int) -> None:
        name = register.name
        if name == "CTRL":
            self._write_ctrl(register.decode(data))
            return
        self._shadow[name] = data & register.write_mask
        if name in {"MODE", "LEVEL", "OWN_LO", "OWN_HI"} or name.startswith("RADIX"):
            self._configured = True
        elif name == "INVALIDATE_LO" and not self._invalidate_busy:
            self._invalidate_busy = self._invalidate_pending = True
            self._invalidate_dst = register.decode(data)["value"] | self._shadow.get("INVALIDATE_HI", 0) << 32
        elif name == "TCAM_WRITE":
            fields = register.decode(data)
            row = TcamRow(
                fields["valid"], self._wide("TCAM_VALUE"), self._wide("TCAM_MASK"), self._wide("TCAM_OUTPUT"),
                fields["lag"],
            )  # fmt: skip
            if self._tcam.commit(fields["row"], row):
                self._overrun = True

    def _write_ctrl(self, fields: dict[str, int]) -> None:
        if fields["clear_counters"]:
            self._clear_counters()
        if fields["enable"]:
            self._hold = self._pending = False
            self._flush_request |= not self._shadow["CTRL"]
        self._shadow["CTRL"] = fields["enable"]
        self._flush_request |= bool(fields["flush"])
        if fields["topology_change"]:
            self._topology_change()

    def _clear_counters(self) -> None:
        self.counters = {name: 0 for name in self.counters}

    def _topology_change(self) -> None:
        self._configured = True
        self._hold = self._pending = True
        self._shadow["CTRL"] = 0
        mode = self._map["MODE"].field("mode")
        self._shadow["MODE"] = mode.insert(MODES.index("arbitrary"), self._shadow["MODE"])
