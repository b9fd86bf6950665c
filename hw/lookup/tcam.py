"""Ternary CAM on the chip: rows in flops, or a bit per row in address-indexed memories."""

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from hopforge.hw.parts.round_robin import lowest_one, select
from hopforge.hw.parts.sram import Sram

KINDS = ("flops", "sram")
CHUNK_BITS = 8
ROW_NUMBER_BITS = 12


class Tcam(wiring.Component):
    """Rows (value, mask, output); the lowest row that matches answers, no match is an answer too (output 0).

    A lookup is accepted when ``req_valid`` and ``req_ready`` are high; its answer (``resp_*``, one cycle) comes exactly
    ``latency_cycles`` later and can't be held up. One lookup per cycle. After reset no row is valid.

    - *flops*: always ready; a row committed in cycle t is effective from t+1. A lookup accepted in cycle t compares
      with the rows of cycle t (latency 1) or t+1.
    - *sram*: chunks of 8 address bits index memories of one bit per row, read in the cycle of acceptance; latency ≥ 2.
      A commit takes 256 cycles (``busy``, not ready), and is effective in the cycle after them.

    ``effective`` is high in the first cycle in which a committed row takes part. A commit while busy is ignored and
    raises ``overrun`` in that cycle; one of a row that does not exist is always ignored. With ``member_bits``, a row's
    ``commit_lag`` adds ``member`` (of ``member_dst``, by a circuit outside, in the same cycle) to its output.

    Parameters
    ----------
    kind : {"flops", "sram"}
        Where the rows are.
    rows : int
        1 … 4096.
    address_bits, output_bits, id_bits : int
        Widths of destination, output and request number.
    latency_cycles : int
        From acceptance to answer.
    member_bits : int
        Width of a link-aggregation member; 0 without.

    Raises
    ------
    ValueError
        Unknown kind, or a parameter out of range.
    """

    req_valid: Signal
    req_ready: Signal
    req_id: Signal
    req_dst: Signal
    resp_valid: Signal
    resp_id: Signal
    resp_match: Signal
    resp_output: Signal
    commit: Signal
    commit_row: Signal
    commit_value: Signal
    commit_mask: Signal
    commit_output: Signal
    commit_lag: Signal
    commit_valid: Signal
    busy: Signal
    effective: Signal
    overrun: Signal
    member_dst: Signal
    member: Signal

    def __init__(
        self,
        *,
        kind: str,
        rows: int,
        address_bits: int,
        output_bits: int,
        id_bits: int,
        latency_cycles: int,
        member_bits: int = 0,
    ):
        if kind not in KINDS:
            raise ValueError(f"kind must be one of {', '.join(KINDS)}, not {kind!r}")
        if not 1 <= rows <= 1 << ROW_NUMBER_BITS:
            raise ValueError(f"rows must be between 1 and {1 << ROW_NUMBER_BITS}, not {rows}")
        for name, value in (("address_bits", address_bits), ("output_bits", output_bits), ("id_bits", id_bits)):
            if value < 1:
                raise ValueError(f"{name} must be at least 1, not {value}")
        least = 2 if kind == "sram" else 1
        if latency_cycles < least:
            raise ValueError(f"latency_cycles must be at least {least} for kind {kind}, not {latency_cycles}")
        if member_bits < 0:
            raise ValueError(f"member_bits must be at least 0, not {member_bits}")
        self.kind = kind
        self.rows = rows
        self.address_bits = address_bits
        self.output_bits = output_bits
        self.id_bits = id_bits
        self.latency_cycles = latency_cycles
        self.member_bits = member_bits
        ports = {
            "req_valid": In(1),
            "req_ready": Out(1),
            "req_id": In(id_bits),
            "req_dst": In(address_bits),
            "resp_valid": Out(1),
            "resp_id": Out(id_bits),
            "resp_match": Out(1),
            "resp_output": Out(output_bits),
            "commit": In(1),
            "commit_row": In(ROW_NUMBER_BITS),
            "commit_value": In(address_bits),
            "commit_mask": In(address_bits),
            "commit_output": In(output_bits),
            "commit_valid": In(1),
            "busy": Out(1),
            "effective": Out(1),
            "overrun": Out(1),
        }
        if member_bits:
            ports |= {"commit_lag": In(1), "member_dst": Out(address_bits), "member": In(member_bits)}
        super().__init__(ports)

    def elaborate(self, platform: object) -> Module:
        """Build the pipeline: as many of its registers as the latency allows, then plain delay."""
        m = Module()
        self._stage = 0
        if self.kind == "flops":
            self._flops(m)
        else:
            self._sram(m)
        return m

    def _register(self, m: Module, wanted: bool, **values: Value) -> list[Signal]:
        """Name the values of a stage, through registers if `wanted`."""
        self._stage += 1
        named = [Signal(value.shape(), name=f"{name}_{self._stage}") for name, value in values.items()]
        domain = m.d.sync if wanted else m.d.comb
        domain += [signal.eq(value) for signal, value in zip(named, values.values(), strict=True)]
        return named

    def _member(self, m: Module, dst: Value) -> Value:
        if not self.member_bits:
            return Signal(1, name="no_member")
        m.d.comb += self.member_dst.eq(dst)
        return self.member

    def _answer(self, m: Module, delays: int, fields: list[Value]) -> None:
        """Delay line from the result (valid, id, match, output) to the response."""
        for _ in range(delays):
            fields = list(self._register(m, True, valid=fields[0], id=fields[1], match=fields[2], output=fields[3]))
        targets = (self.resp_valid, self.resp_id, self.resp_match, self.resp_output)
        m.d.comb += [target.eq(field) for target, field in zip(targets, fields, strict=True)]

    def _with_member(self, m: Module, entry: Value, member: Value) -> Value:
        """Output of a row's entry (output, and above it the lag bit): the member added if the bit is set."""
        if not self.member_bits:
            return entry[: self.output_bits]
        total = Signal(self.output_bits, name="output_with_member")
        m.d.comb += total.eq(entry[: self.output_bits] + (member & entry[self.output_bits].replicate(len(member))))
        return total

    @property
    def _entry_bits(self) -> int:
        return self.output_bits + bool(self.member_bits)

    @property
    def _commit_entry(self) -> Value:
        return Cat(self.commit_output, self.commit_lag) if self.member_bits else self.commit_output

    def _flops(self, m: Module) -> None:
        L = self.latency_cycles
        write = Signal(self.rows)
        m.d.comb += write.eq(Cat(self.commit & (self.commit_row == row) for row in range(self.rows)))
        m.d.sync += self.effective.eq(write.any())
        m.d.comb += self.req_ready.eq(1)

        valid, number, dst = self._register(m, L >= 2, valid=self.req_valid, id=self.req_id, dst=self.req_dst)
        member = self._member(m, dst)
        matches = Signal(self.rows)
        # Where the outputs are selected a cycle after the compare, they are written a cycle after the values too.
        late_write, late_entry = self._register(m, L >= 3, write=write, entry=self._commit_entry)
        entries = []
        for row in range(self.rows):
            value = Signal(self.address_bits, name=f"value{row}")
            mask = Signal(self.address_bits, name=f"mask{row}")
            row_valid = Signal(name=f"row_valid{row}")
            entry = Signal(self._entry_bits, name=f"entry{row}")
            with m.If(write[row]):
                m.d.sync += [value.eq(self.commit_value), mask.eq(self.commit_mask), row_valid.eq(self.commit_valid)]
            with m.If(late_write[row]):
                m.d.sync += entry.eq(late_entry)
            m.d.comb += matches[row].eq(row_valid & ~((dst ^ value) & mask).any())
            entries.append(entry)

        valid, number, matches, member = self._register(
            m, L >= 3, valid=valid, id=number, matches=matches, member=member
        )
        lowest = Signal(self.rows)
        m.d.comb += lowest.eq(lowest_one(matches))
        valid, number, match, entry, member = self._register(
            m, L >= 4, valid=valid, id=number, match=matches.any(), entry=select(lowest, entries), member=member
        )
        self._answer(m, 1 + max(0, L - 4), [valid, number, match, self._with_member(m, entry, member)])

    def _sram(self, m: Module) -> None:
        L = self.latency_cycles
        row_bits = max(1, ceil_log2(self.rows))
        row = Signal(row_bits)
        value = Signal(self.address_bits)
        mask = Signal(self.address_bits)
        row_valid = Signal()
        entry_new = Signal(self._entry_bits)
        word = Signal(CHUNK_BITS)
        last = Signal()
        commit = Signal()
        m.d.comb += [
            commit.eq(self.commit & (self.commit_row < self.rows)),
            self.req_ready.eq(~self.busy),
            self.overrun.eq(commit & self.busy),
            last.eq(self.busy & word.all()),
        ]
        m.d.sync += self.effective.eq(last)
        with m.If(self.busy):
            m.d.sync += [word.eq(word + 1), self.busy.eq(~last)]
        with m.Elif(commit):
            m.d.sync += [
                self.busy.eq(1),
                row.eq(self.commit_row),
                value.eq(self.commit_value),
                mask.eq(self.commit_mask),
                row_valid.eq(self.commit_valid),
                entry_new.eq(self._commit_entry),
            ]

        accept = Signal()
        m.d.comb += accept.eq(self.req_valid & self.req_ready)
        row_one_hot = Signal(self.rows)
        m.d.comb += row_one_hot.eq(Cat(row == number for number in range(self.rows)))
        words = []
        for chunk, start in enumerate(range(0, self.address_bits, CHUNK_BITS)):
            bits = min(CHUNK_BITS, self.address_bits - start)
            here = slice(start, start + bits)
            m.submodules[f"chunk{chunk}"] = memory = Sram(depth=1 << bits, width_bits=self.rows, bit_write=True)
            member_of_row = Signal(name=f"word_matches{chunk}")
            m.d.comb += [
                member_of_row.eq(row_valid & ~((word[:bits] ^ value[here]) & mask[here]).any()),
                memory.r_en.eq(accept),
                memory.r_addr.eq(self.req_dst[here]),
                memory.w_en.eq(row_one_hot & self.busy.replicate(self.rows)),
                memory.w_addr.eq(word[:bits]),
                memory.w_data.eq(member_of_row.replicate(self.rows)),
            ]
            words.append(memory.r_data)

        valid, number, dst = self._register(m, True, valid=accept, id=self.req_id, dst=self.req_dst)
        member = self._member(m, dst)
        matches = words[0]
        for other in words[1:]:
            matches = matches & other
        valid, number, matches, member = self._register(
            m, L >= 4, valid=valid, id=number, matches=matches, member=member
        )
        lowest = Signal(self.rows)
        m.d.comb += lowest.eq(lowest_one(matches))
        encoded = Cat(Cat(lowest[i] for i in range(self.rows) if i >> bit & 1).any() for bit in range(row_bits))
        valid, number, match, encoded, member = self._register(
            m,
            L >= 5,
            valid=valid,
            id=number,
            match=matches.any(),
            row=encoded if self.rows > 1 else Signal(1, name="only_row"),
            member=member,
        )
        m.submodules.entries = entries = Sram(depth=self.rows, width_bits=self._entry_bits, asynchronous=L == 2)
        m.d.comb += [entries.w_en.eq(last), entries.w_data.eq(entry_new)]
        if self.rows > 1:
            m.d.comb += [entries.w_addr.eq(row), entries.r_addr.eq(encoded)]
        if L > 2:
            m.d.comb += entries.r_en.eq(valid)
        valid, number, match, member = self._register(m, L >= 3, valid=valid, id=number, match=match, member=member)
        output = self._with_member(m, entries.r_data, member)
        self._answer(m, 1 + max(0, L - 5), [valid, number, match, output & match.replicate(self.output_bits)])
