"""Proof about the lookup engine: a hit is the TCAM's answer of the current epoch, and no lookup is lost or doubled.

One symbolic address *a* stands for all of them, and one marked request for all requests. The memories keep
the row of *a* alone and return anything for other rows, so that the proof does not depend on what they hold. The
control bus, the requests, the TCAM's timing and its order of answers are free. What the TCAM answers for *a* may change

- in every cycle in which the engine forgets (a flush begins, is deferred or absorbed),
- while the cache is disabled, and
- when an invalidation of *a* completes.

The proof is by induction over one cycle, with the invariants below; `MUTANTS` are faults with which it must fail.
"""

from collections.abc import Iterator
from typing import Any

from amaranth.hdl import Assume, Cat, Const, Module, Mux, Signal, Value

from hopforge.gen.formal.induction import Proof, at_most_one
from hopforge.hw.lookup.engine import lookup_engine
from hopforge.hw.parts.crc_hash import CrcHash
from hopforge.hw.parts.sram import Sram
from hopforge.model.lookup.params import LookupParams

__all__ = ["ABOUT_A", "MARKED", "MUTANTS", "LookupProof", "OneRow"]

ABOUT_A, MARKED = 0, 1  # bits of a request's tag in the proof

MUTANTS = {
    "MSHRs do not hear of a flush": ("dut.mshrs.flush", "1'b0"),
    "MSHRs do not hear of an invalidation": ("dut.mshrs.invalidate", "1'b0"),
    "lines of every epoch are live": ("dut.cache.live", "2'b11"),
    "a line written while it was read is overlooked": ("dut.cache.bypass_hit", "1'b0"),
    "the scrubber leaves old lines": ("dut.cache.valid", "2'b00"),
    "a hit allocates an MSHR as well": ("dut.mshrs.miss", "1'b1"),
    "a fill frees nothing": ("dut.mshrs.release", "1'b0"),
    "a killed fill answers all the same": ("dut.mshrs.alive", "1'b1"),
    "an answer of before an invalidation is taken": ("dut.mshrs.same_key", "2'b00"),
}
"""Faults: (wire of the flattened proof, what it is tied to)."""


class OneRow(Sram):
    """Memory of which only the row `row` is kept; other rows read as `other`."""

    def __init__(self, row: Value, *, depth: int, width_bits: int, asynchronous: bool = False):
        super().__init__(depth=depth, width_bits=width_bits, asynchronous=asynchronous)
        self.row = row
        self.word = Signal(width_bits)
        self.other = Signal(width_bits)

    def elaborate(self, platform: object) -> Module:
        """Keep one word."""
        m = Module()
        with m.If(self.w_en & (self.w_addr == self.row if self.depth > 1 else 1)):
            m.d.sync += self.word.eq(self.w_data)
        value = Mux(self.r_addr == self.row, self.word, self.other) if self.depth > 1 else self.word
        if self.asynchronous:
            m.d.comb += self.r_data.eq(value)
        else:
            with m.If(self.r_en):
                m.d.sync += self.r_data.eq(value)
        return m


class LookupProof(Proof):
    """The engine, its surroundings as assumptions, the properties and the invariants as assertions.

    Parameters
    ----------
    params : LookupParams
        Engine with ``functions`` ("arbitrary",), ``tcam_kind`` "external", ``request_tag_bits`` 2, not skewed.
    invariants : bool
        False: the properties alone, for a search of counterexamples.
    no_hit : bool
        Claim that nothing hits, to see that something does.

    Attributes
    ----------
    inputs : list of Signal
        Free inputs.
    """

    def __init__(self, params: LookupParams, *, invariants: bool = True, no_hit: bool = False):
        super().__init__()
        self.params = params
        self.no_hit = no_hit
        self.invariants = invariants
        self.address = Signal(params.address_bits)
        self.row = Signal(max(1, params.index_bits))
        self.new_answer = Signal(1 + params.output_bits)
        self.change = Signal()
        self.memories: list[OneRow] = []
        self.dut: Any = lookup_engine(params=params, memory=self._memory)
        driven = ("req_ready", "resp_", "csr_rdata", "tcam_req_valid", "tcam_req_id", "tcam_req_dst")
        self.inputs += [
            *(self.address, self.new_answer, self.change),
            *(
                getattr(self.dut, name)
                for name in self.dut.signature.members
                if name == "resp_ready" or not name.startswith(driven)
            ),
            *(memory.other for memory in self.memories),
        ]

    def _memory(self, **parameters: int) -> OneRow:
        memory = OneRow(self.row, **parameters)  # type: ignore[arg-type]
        self.memories.append(memory)
        return memory

    def elaborate(self, platform: object) -> Module:
        """Build the engine and everything that is said about it."""
        self._m = m = self.module()
        m.submodules.dut = self.dut
        self._symbols()
        self._surroundings()
        self._properties()
        if self.invariants:
            self.claim(m, self._all_invariants())
        return m

    def _symbols(self) -> None:
        """Keep the address as it is; its row is what its hash says."""
        m, p = self._m, self.params
        started = Signal()
        before = Signal(p.address_bits)
        m.d.sync += [started.eq(1), before.eq(self.address)]
        m.d.comb += Assume(~started | (before == self.address))
        if p.index_bits:
            masks, constant = self.dut.index_function()
            m.submodules.row_of_a = row = CrcHash(width_bits=p.address_bits, masks=masks, constant=constant)
            m.d.comb += [row.data.eq(self.address), self.row.eq(row.hash)]

    def _surroundings(self) -> None:
        """Assume what requests and the TCAM do, and when its answer may change."""
        m, p, dut = self._m, self.params, self.dut
        control = dut.control
        m.d.comb += Assume(dut.req_tag[ABOUT_A] == (dut.req_dst == self.address))

        self.answer = Signal(1 + p.output_bits)  # match, above it the output
        self.forgets = Signal()
        self.may_change = Signal()
        self.about_a = Signal(p.mshrs)
        self.changed = Signal(p.mshrs)
        self.outstanding = Signal(p.mshrs)
        m.d.comb += [
            self.forgets.eq(dut.epoch.event | ~control.enable),
            self.may_change.eq(self.forgets | self._invalidation_of_a()),
        ]
        with m.If(self.may_change & self.change):
            m.d.sync += self.answer.eq(self.new_answer)
        accepted = dut.tcam_req_valid & dut.tcam_req_ready
        for i in range(p.mshrs):
            mine = accepted & (dut.tcam_req_id == i)
            answered = dut.tcam_resp_valid & (dut.tcam_resp_id == i)
            m.d.sync += [
                self.outstanding[i].eq((self.outstanding[i] & ~answered) | mine),
                # Accepted in the very cycle of an invalidation: software has changed the TCAM before.
                self.changed[i].eq(Mux(mine, self.forgets, self.changed[i] | self.may_change)),
            ]
            with m.If(mine):
                m.d.sync += self.about_a[i].eq(dut.tcam_req_dst == self.address)
            right = (dut.tcam_resp_match == self.answer[0]) & (
                ~dut.tcam_resp_match | (dut.tcam_resp_output == self.answer[1:])
            )
            m.d.comb += Assume(~answered | (self.outstanding[i] & (~self.about_a[i] | self.changed[i] | right)))
        if p.mshrs & (p.mshrs - 1) or p.mshrs == 1:
            m.d.comb += Assume(~dut.tcam_resp_valid | (dut.tcam_resp_id < p.mshrs))

        # Any one request may be marked.
        self.pending = Signal()
        self.marked = Signal()
        taken = dut.req_valid & dut.req_ready & dut.req_tag[MARKED]
        self.given = Signal()
        m.d.comb += [
            self.given.eq(dut.resp_valid & dut.resp_ready & dut.resp_tag[MARKED]),
            Assume(~(dut.req_valid & dut.req_tag[MARKED]) | ~self.marked),
        ]
        m.d.sync += [self.marked.eq(self.marked | taken), self.pending.eq((self.pending & ~self.given) | taken)]

    def _invalidation_of_a(self) -> Value:
        """Whether an invalidation of a completes in this cycle."""
        return self.dut.op.invalidate & (self.dut.op.key == self.address)

    def _properties(self) -> None:
        """Assert what is to be shown, at the ports."""
        m, p, dut = self._m, self.params, self.dut
        # The answer that was right when the response was made; it may be held up long after.
        then = Signal(1 + p.output_bits)
        with m.If(~dut.resp_valid | dut.resp_ready):
            m.d.sync += then.eq(self.answer)
        hit_on_a = dut.resp_valid & dut.resp_hit & dut.resp_tag[ABOUT_A]
        self._claim_at_ports(hit_on_a, then)

    def _claim_at_ports(self, hit_on_a: Value, right: Value) -> None:
        """Claim that a hit about a is the answer `right`, and that each request has one response."""
        self.claim(self._m, [~hit_on_a | (right[0] & (self.dut.resp_output == right[1:])), ~self.given | self.pending])
        if self.no_hit:
            self.claim(self._m, [~hit_on_a])

    def _all_invariants(self) -> Iterator[Value]:
        yield from self._of_control()
        yield from self._of_lines()
        yield from self._of_mshrs()
        yield from self._of_operations()
        yield ~self.pending | self.marked
        places = self._places()
        yield Cat(places).any() == self.pending  # nothing is lost
        for number in range(1, len(places)):
            yield ~(places[number] & Cat(places[:number]).any())  # nothing is there twice

    def _of_control(self) -> Iterator[Value]:
        control, epoch = self.dut.control, self.dut.epoch
        yield ~control.enable | control.active_enable | control.flush_request
        yield epoch.active == epoch.debt.any()
        yield ~epoch.flush_wait | epoch.debt.all() | ~epoch.active
        if self.params.sets == 1:
            yield epoch.row == 0

    @property
    def _trusted(self) -> Value:
        """Lines can hit."""
        return self.dut.control.active_enable & ~self.dut.epoch.flush_wait

    def _right(self, match: Value, output: Value) -> Value:
        """Compare a result with what the TCAM says of a now."""
        return (match == self.answer[0]) & (~match | (output == self.answer[1:]))

    def _of_lines(self) -> Iterator[Value]:
        p, epoch = self.params, self.dut.epoch
        at_output, at_epoch = p.tag_bits, p.tag_bits + p.output_bits
        holders = []
        for memory in self.memories[: p.ways]:
            line = memory.word
            valid, tag = line[-1], line[: p.key_bits]
            old = Signal(p.epoch_bits)
            self._m.d.comb += old.eq(epoch.epoch - line[at_epoch : at_epoch + p.epoch_bits])
            holds_a = valid & (old == 0) & (tag == self.address)
            yield ~valid | (old <= epoch.debt)
            yield ~(valid & epoch.active & (epoch.row > self.row)) | (old == 0)
            yield ~(holds_a & self._trusted) | (self.answer[0] & (line[at_output:at_epoch] == self.answer[1:]))
            holders.append(holds_a)
        yield ~Cat(first & second for n, first in enumerate(holders) for second in holders[:n]).any()

    def _of_mshrs(self) -> Iterator[Value]:
        p, mshrs = self.params, self.dut.mshrs
        active = self.dut.control.active_enable
        states = (mshrs.free, mshrs.wait_issue, mshrs.issued, mshrs.wait_primary, mshrs.done, mshrs.injected)
        for i in range(p.mshrs):
            state = Cat(bits[i] for bits in states)
            yield state.any() & at_most_one(state)
            used = ~mshrs.free[i]
            fresh = mshrs.entry_fresh[i]
            about_a = mshrs.destinations[i] == self.address
            yield ~used | (mshrs.keys[i] == mshrs.destinations[i])
            yield ~used | (mshrs.tags[i][ABOUT_A] == about_a)
            yield ~(used & about_a) | (mshrs.indices[i] == self.row)
            yield mshrs.issued[i] == self.outstanding[i]
            yield ~mshrs.issued[i] | (self.about_a[i] == about_a)
            yield ~mshrs.stale[i] | mshrs.issued[i]
            right = self._right(mshrs.results[i][-1], mshrs.results[i][:-1])
            yield ~(active & (mshrs.done[i] | mshrs.injected[i]) & fresh & about_a) | right
            yield ~(active & mshrs.issued[i] & ~mshrs.stale[i] & fresh & about_a) | ~self.changed[i]
            primary = [
                mshrs.primaries[i][j]
                & (mshrs.wait_issue[j] | mshrs.issued[j])
                & mshrs.entry_fresh[j]
                & (mshrs.keys[i] == mshrs.keys[j])
                for j in range(p.mshrs)
            ]
            one = at_most_one(mshrs.primaries[i])
            yield ~mshrs.wait_primary[i] | (fresh & one & Cat(primary).any())
        free = sum((mshrs.free[i] for i in range(p.mshrs)), start=Const(0, 1))
        for count in range(p.mshrs):
            yield mshrs.at_least[count] == (free > count)

    def _of_operations(self) -> Iterator[Value]:
        p, dut = self.params, self.dut
        keys = dut.keys
        if p.pipeline_depth >= 3:
            waiting = keys.lookup | keys.invalidate
            yield ~waiting | (keys.key == keys.dst)
            yield ~(waiting & (keys.dst == self.address)) | (keys.index == self.row)
            yield ~keys.lookup | (keys.tag[ABOUT_A] == (keys.dst == self.address))
            yield ~(keys.lookup & keys.invalidate)
        if p.pipeline_depth == 4:
            yield ~keys.first.lookup | (keys.first.tag[ABOUT_A] == (keys.first.partial == self.address))
            yield ~(keys.first.lookup & keys.first.invalidate)
        if p.pipeline_depth >= 2:
            yield from self._of_stage_c()

    def _of_stage_c(self) -> Iterator[Value]:
        p, dut, op = self.params, self.dut, self.dut.op
        mshrs, cache, epoch = dut.mshrs, dut.cache, dut.epoch
        kinds = Cat(op.lookup, op.fill, op.invalidate, op.scrub)
        about_a = op.key == self.address
        yield at_most_one(kinds)
        yield ~op.lookup | ((op.key == op.dst) & mshrs.free.any())
        yield ~op.lookup | (op.tag[ABOUT_A] == about_a)
        yield ~((op.lookup | op.fill | op.invalidate) & about_a) | (op.index == self.row)
        for i in range(p.mshrs):
            yield ~(op.lookup | op.invalidate) | (mshrs.equal_key[i] == (mshrs.keys[i] == op.key))
            same = (
                (op.key == mshrs.keys[i])
                & (op.index == mshrs.indices[i])
                & (op.tag == mshrs.tags[i])
                & (op.fresh == mshrs.entry_fresh[i])
                & (Cat(op.output, op.match) == mshrs.results[i])
            )
            yield ~mshrs.injected[i] | (op.fill & same)
        yield at_most_one(mshrs.injected)
        yield ~(op.scrub & op.fresh) | (epoch.active & (op.index == epoch.row))
        for way, memory in enumerate(self.memories[: p.ways]):
            seen = Mux(cache.bypassed[way], cache.bypass_line, memory.r_data)
            yield ~(kinds.any() & (op.index == self.row)) | (seen == memory.word)

    def _places(self) -> list[Value]:
        """Return a bit for each place that may hold the marked request."""
        p, dut, op = self.params, self.dut, self.dut.op
        places: list[Value] = [~dut.mshrs.free[i] & dut.mshrs.tags[i][MARKED] for i in range(p.mshrs)]
        places.append(dut.resp_valid & dut.resp_tag[MARKED])
        if p.pipeline_depth >= 2:
            places.append(op.lookup & op.tag[MARKED])
        if p.pipeline_depth >= 3:
            places.append(dut.keys.lookup & dut.keys.tag[MARKED])
        if p.pipeline_depth == 4:
            places.append(dut.keys.first.lookup & dut.keys.first.tag[MARKED])
        return places
