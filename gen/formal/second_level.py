"""Proof about the second level: to the MSHRs it is what the proof of the engine assumes of its TCAM.

`hopforge.gen.formal.lookup` assumes that an answer is given for every MSHR that asks, once, and that the answer about
an address *a* is that of the TCAM now, unless it may have changed since the request. Here the same is shown at the
answer port of the second level. What it takes for granted of the engine is what that proof shows of it: an MSHR that is
fresh and not stale has an answer that did not change; switching on flushes; one invalidation at a time. The memories
keep the row of *a* alone. By induction over one cycle; `SECOND_MUTANTS` are faults with which it must fail.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from amaranth.hdl import Array, Assume, Cat, Const, Module, Mux, Signal, Value

from hopforge.gen.formal.induction import Proof, at_most_one, prove_in_parts, refute
from hopforge.gen.formal.lookup import OneRow
from hopforge.hw.cache.second_level import ASKS, SecondLevel
from hopforge.hw.parts.crc_hash import CrcHash
from hopforge.model.lookup.params import LookupParams
from hopforge.model.lookup.second_level import SecondLevelParams
from hopforge.model.numbers.crc import crc_matrix

__all__ = ["SECOND_MUTANTS", "prove_second_level", "refute_second_level"]

SECOND_MUTANTS = {
    "a stale answer is kept": ("dut.keeps", "1'b1"),
    "an invalidation goes to row 0": ("dut.invalidate_row.hash", "1'b0"),
    "nothing waits for a writer": ("dut.opened", "1'b1"),
    "lines of every epoch are live": ("dut.cache.alive", "2'b11"),
    "the scrubber leaves old lines": ("dut.cache.valid", "2'b00"),
}
"""Faults: (wire of the flattened proof, what it is tied to)."""


def _params(latency_cycles: int) -> LookupParams:
    return LookupParams(
        address_bits=12, functions=("arbitrary",), chunk_bits=(4,), comparators=1, entries=4, ways=2, tag_bits=16,
        output_bits=1, epoch_bits=2, mshrs=2, request_tag_bits=2, tcam_kind="external",
        second_level=SecondLevelParams(entries=4, ways=2, latency_cycles=latency_cycles),
    )  # fmt: skip


def _bits(word: Signal) -> list[Value]:
    return [word[number] for number in range(len(word))]


class _SecondLevelProof(Proof):
    """The second level, MSHRs and TCAM around it as assumptions, and what is claimed.

    Parameters
    ----------
    params : LookupParams
        The engine; keys are whole addresses.
    deep : bool
        The cache is enabled as in a deep engine.
    invariants : bool
        Claim also what the induction needs, not only what is to be shown.
    """

    def __init__(self, params: LookupParams, *, deep: bool, invariants: bool = True) -> None:
        super().__init__()
        self.params = params
        self.deep = deep
        self.invariants = invariants
        N = params.mshrs
        self.address = Signal(params.address_bits)
        self.row = Signal()
        self.new_answer = Signal(1 + params.output_bits)
        self.change = Signal()
        self.enabled = Signal()  # CTRL.enable
        self.trusted = Signal(N)  # MSHRs that are fresh and not stale
        self.memories: list[OneRow] = []
        self.dut: Any = SecondLevel(params=params, memory=self._memory)
        free = (
            "req_valid", "req_id", "req_dst", "req_fresh", "event", "hold", "invalidate", "invalidate_key",
            "issue_ready", "answer_valid", "answer_id", "answer_match", "answer_output",
        )  # fmt: skip
        self.inputs += [
            *(self.address, self.new_answer, self.change, self.enabled, self.trusted),
            *(getattr(self.dut, name) for name in free),
            *(memory.other for memory in self.memories),
        ]

    def _memory(self, **parameters: int) -> OneRow:
        memory = OneRow(self.row, **parameters)  # type: ignore[arg-type]
        self.memories.append(memory)
        return memory

    def elaborate(self, platform: object) -> Module:
        """Build the second level and everything that is said about it."""
        self._m = m = self.module()
        m.submodules.dut = self.dut
        self._symbols()
        self._surroundings()
        self.claim(m, self._claims())
        if self.invariants:
            self.claim(m, self._invariants())
        return m

    def _symbols(self) -> None:
        """Keep the address as it is; its row is what its hash says."""
        m, p = self._m, self.params
        assert p.second_level is not None
        started = Signal()
        before = Signal(p.address_bits)
        m.d.sync += [started.eq(1), before.eq(self.address)]
        m.d.comb += Assume(~started | (before == self.address))
        masks, constant = crc_matrix(p.crc, p.address_bits)
        m.submodules.row_of_a = row = CrcHash(
            width_bits=p.address_bits, masks=tuple(masks[:1]), constant=constant & 1
        )  # fmt: skip
        m.d.comb += [row.data.eq(self.address), self.row.eq(row.hash)]

    def _surroundings(self) -> None:
        """Assume what the engine does, and when the TCAM's answer may change."""
        m, p, dut = self._m, self.params, self.dut
        N = p.mshrs
        self.answer = Signal(1 + p.output_bits)  # match, above it the output
        self.issued = Signal(N)
        self.asked = Signal(N)  # the TCAM
        self.changed = Signal(N)
        self.destinations = [Signal(p.address_bits, name=f"destination{i}") for i in range(N)]
        self.voiding = Signal()  # an INVALIDATE is on its way
        self.event_before = Signal()
        forgets, may_change, active, enabled_before = Signal(), Signal(), Signal(), Signal()
        self.active = active
        accepted = dut.req_valid & dut.req_ready
        m.d.comb += [
            dut.req_key.eq(dut.req_dst),
            dut.fill_key.eq(Array(self.destinations)[dut.fill_id]),
            dut.fill_fresh.eq(self.trusted.bit_select(dut.fill_id, 1)),
            dut.enable.eq(active),
            forgets.eq(dut.event | ~self.enabled),
            may_change.eq(forgets | (dut.invalidate & (dut.invalidate_key == self.address))),
            Assume(~(dut.invalidate & self.voiding)),
            Assume(dut.invalidate_key[p.address_bits :] == 0),
        ]
        m.d.sync += [
            enabled_before.eq(self.enabled),
            active.eq(self.enabled & (enabled_before if self.deep else 1)),
            self.voiding.eq((self.voiding & ~dut.invalidate_done) | dut.invalidate),
            self.event_before.eq(dut.epoch.event),
        ]
        switched_on = self.enabled & ~active & (enabled_before if self.deep else 1)
        m.d.comb += Assume(~switched_on | dut.event)
        with m.If(may_change & self.change):
            m.d.sync += self.answer.eq(self.new_answer)
        for i in range(N):
            mine = accepted & (dut.req_id == i)
            done = dut.resp_valid & (dut.resp_id == i)
            asks = dut.issue_valid & dut.issue_ready & (dut.issue_id == i)
            answered = dut.answer_valid & (dut.answer_id == i)
            m.d.sync += [
                self.issued[i].eq((self.issued[i] & ~done) | mine),
                self.asked[i].eq((self.asked[i] & ~answered) | asks),
                self.changed[i].eq(Mux(mine, forgets, self.changed[i] | may_change)),
            ]
            with m.If(mine):
                m.d.sync += self.destinations[i].eq(dut.req_dst)
            m.d.comb += [
                Assume(~(dut.req_valid & (dut.req_id == i)) | ~self.issued[i]),
                Assume(~(active & self.issued[i] & self.trusted[i] & self._about_a(i)) | ~self.changed[i]),
                Assume(~answered | (self.asked[i] & self._fits(i, dut.answer_match, dut.answer_output))),
            ]

    def _about_a(self, i: int) -> Value:
        return self.destinations[i] == self.address

    def _right(self, match: Value, output: Value) -> Value:
        return (match == self.answer[0]) & (~match | (output == self.answer[1:]))

    def _fits(self, i: int, match: Value, output: Value) -> Value:
        """Return whether MSHR `i` may be told this: the answer about a is right, or has changed."""
        return ~self._about_a(i) | self.changed[i] | self._right(match, output)

    def _claims(self) -> Iterator[Value]:
        dut = self.dut
        for i in range(self.params.mshrs):
            told = dut.resp_valid & (dut.resp_id == i)
            yield ~told | (self.issued[i] & self._fits(i, dut.resp_match, dut.resp_output))

    def _invariants(self) -> Iterator[Value]:
        yield from self._of_control()
        yield from self._of_lines()
        yield from self._of_queues()
        yield from self._of_operations()
        yield from self._of_compared()
        for i in range(self.params.mshrs):
            places = self._places(i)
            yield Cat(places).any() == self.issued[i]  # nothing is lost
            yield at_most_one(Cat(places))  # nothing is there twice

    def _of_control(self) -> Iterator[Value]:
        epoch, dut = self.dut.epoch, self.dut
        yield epoch.active == epoch.debt.any()
        yield ~epoch.flush_wait | epoch.debt.all() | ~epoch.active
        voids = [dut.void.valid, dut.compared.invalidate, dut.acting.invalidate]
        yield Cat(voids).any() == self.voiding
        yield at_most_one(Cat(voids))

    def _voids_a(self, *operations: Any) -> Value:
        return Cat(operation.invalidate & (operation.key == self.address) for operation in operations).any()

    def _line(self, memory: OneRow) -> tuple[Value, Value, Value, Value]:
        """Return (valid bit, tag, output, epoch) of a word."""
        p, line = self.params, memory.word
        at_epoch = p.tag_bits + p.output_bits
        return line[-1], line[: p.key_bits], line[p.tag_bits : at_epoch], line[at_epoch : at_epoch + p.epoch_bits]

    def _of_lines(self) -> Iterator[Value]:
        dut, epoch = self.dut, self.dut.epoch
        usable = self.active & ~epoch.flush_wait
        void = (dut.void.valid & (dut.void.key == self.address)) | self._voids_a(dut.compared, dut.acting)
        holders = []
        for memory in self.memories[:2]:
            valid, tag, output, written = self._line(memory)
            old = Signal(self.params.epoch_bits)
            self._m.d.comb += old.eq(epoch.epoch - written)
            holds_a = valid & (old == 0) & (tag == self.address)
            yield ~valid | (old <= epoch.debt)
            yield ~(valid & epoch.active & (epoch.row > self.row)) | (old == 0)
            yield ~(holds_a & usable) | void | (self.answer[0] & (output == self.answer[1:]))
            holders.append(holds_a)
        yield ~(holders[0] & holders[1])

    def _of_queues(self) -> Iterator[Value]:
        p, dut = self.params, self.dut
        for queue in (dut.asks, dut.results):
            for i in range(1, queue.places):
                yield ~queue.held[i] | queue.held[i - 1]
        waiting = [*_bits(dut.asks.held), dut.compared.lookup, dut.acting.lookup]
        yield sum(waiting, start=Const(0, 1)) <= ASKS
        for held, word in zip(_bits(dut.asks.held), dut.asks.words, strict=True):
            yield from self._names(held, word[: p.mshr_id_bits], word[p.mshr_id_bits :])
        for held, word in zip(_bits(dut.results.held), dut.results.words, strict=True):
            output, match = word[p.mshr_id_bits : -1], word[-1]
            for i in range(p.mshrs):
                yield ~(held & (word[: p.mshr_id_bits] == i)) | self._fits(i, match, output)

    def _names(self, here: Value, number: Value, key: Value) -> Iterator[Value]:
        """Claim that what is here is about the destination of its MSHR."""
        for i in range(self.params.mshrs):
            yield ~(here & (number == i)) | (key == self.destinations[i])

    def _of_operations(self) -> Iterator[Value]:
        p, dut, epoch = self.params, self.dut, self.dut.epoch
        void_waits = dut.void.valid & (dut.void.key == self.address)
        about_a = [self._about_a(i) for i in range(p.mshrs)]
        for request in dut.requests:
            yield from self._names(request.valid, request.id, request.key)
            yield ~request.valid | (request.dst == request.key)
            yield ~(request.valid & (request.key == self.address)) | (request.index == self.row)
            for i in range(p.mshrs):
                yield ~(request.valid & (request.id == i) & about_a[i] & void_waits) | self.changed[i]
        void, fill = dut.void, dut.fill
        yield ~void.valid | (void.key[p.address_bits :] == 0)
        yield ~(void.valid & (void.key == self.address)) | (void.index == self.row)
        yield from self._names(fill.valid, fill.id, fill.key)
        yield ~(fill.valid & (fill.key == self.address)) | (fill.index == self.row)
        yield from self._of_fill(fill.valid, fill, fill.match, fill.output)
        for op in (dut.compared, dut.acting):
            kinds = Cat(op.lookup, op.fill, op.invalidate, op.scrub)
            yield at_most_one(kinds)
            yield from self._names(op.lookup | op.fill, op.id, op.key)
            yield ~op.lookup | (op.dst[: p.address_bits] == op.key)
            yield ~(kinds[:3].any() & (op.key == self.address)) | (op.index == self.row)
            yield ~(op.scrub & op.fresh) | (epoch.active & (op.index == epoch.row))
            for i in range(p.mshrs):
                yield ~(op.lookup & (op.id == i) & about_a[i] & void_waits) | self.changed[i]
            yield from self._of_fill(op.fill, op, op.dst[p.output_bits], op.dst[: p.output_bits])
        acting, compared = dut.acting, dut.compared
        writes = acting.fill | acting.invalidate | acting.scrub
        yield ~writes | ~Cat(compared.lookup, compared.fill, compared.invalidate, compared.scrub).any()
        for i in range(p.mshrs):  # ahead of an INVALIDATE
            ahead = acting.lookup & (acting.id == i) & about_a[i] & self._voids_a(compared)
            yield ~ahead | self.changed[i]

    def _of_fill(self, here: Value, fill: Any, match: Value, output: Value) -> Iterator[Value]:
        """Claim that a FILL tells its MSHR what it may, and what it writes is right, or will be removed."""
        void_waits = self.dut.void.valid & (self.dut.void.key == self.address)
        for i in range(self.params.mshrs):
            mine = here & (fill.id == i)
            yield ~mine | self._fits(i, match, output)
            yield ~(mine & self._about_a(i) & fill.fresh & self.active) | void_waits | self._right(match, output)

    def _of_compared(self) -> Iterator[Value]:
        """Say that what was read and compared is what is in the row now."""
        dut, cache = self.dut, self.dut.cache
        first, op = dut.compared, dut.acting
        here = Cat(op.lookup, op.fill, op.invalidate, op.scrub).any()
        compared = Cat(first.lookup, first.fill, first.invalidate, first.scrub).any()
        yield ~here | (cache.all_live == cache.live.all())
        yield ~(self.event_before & op.fresh)
        for way, memory in enumerate(self.memories[:2]):
            valid, tag, output, written = self._line(memory)
            live = valid & (written == dut.epoch.epoch)
            yield ~(compared & (first.index == self.row)) | (memory.r_data == memory.word)
            row = here & (op.index == self.row)
            yield ~row | ((cache.valid[way] == valid) & (cache.outputs[way] == output))
            yield ~row | self.event_before | (cache.live[way] == live)
            yield ~row | self.event_before | (cache.match[way] == (live & (tag == op.key)))
            yield ~self.event_before | dut.epoch.flush_wait | ~live
            yield ~here | ~cache.match[way] | cache.live[way]
            dead_first = ~cache.live[way] & cache.live[:way].all() if way else ~cache.live[way]
            yield ~here | (cache.first_dead[way] == dead_first)

    def _places(self, i: int) -> Sequence[Value]:
        """Return a bit for each place that may hold the request of MSHR `i`."""
        dut, bits = self.dut, self.params.mshr_id_bits
        places = [self.asked[i], dut.fill.valid & (dut.fill.id == i), dut.resp_valid & (dut.resp_id == i)]
        places += [request.valid & (request.id == i) for request in dut.requests]
        places += [(op.lookup | op.fill) & (op.id == i) for op in (dut.compared, dut.acting)]
        for queue in (dut.asks, dut.results):
            places += [
                held & (word[:bits] == i) for held, word in zip(_bits(queue.held), queue.words, strict=True)
            ]  # fmt: skip
        return places


def prove_second_level(
    *, latency_cycles: int = 4, deep: bool = False, mutant: str | None = None, timeout_s: float = 300
) -> bool:
    """Prove a small second level by induction over one cycle; with a mutant, try to.

    Parameters
    ----------
    latency_cycles : int
        Of the second level, 4 or more.
    deep : bool
        Switched on and off as in a deep engine.
    mutant : str, optional
        Key of `SECOND_MUTANTS`.
    timeout_s : float
        Limit in seconds.

    Returns
    -------
    bool
        Whether the proof succeeded.

    Raises
    ------
    YosysError
        If yosys fails otherwise, or takes too long.
    """
    proof = _SecondLevelProof(_params(latency_cycles), deep=deep)
    fault = SECOND_MUTANTS[mutant] if mutant else None
    return prove_in_parts(proof, proof.inputs, mutant=fault, timeout_s=timeout_s)


def refute_second_level(steps: int, mutant: str | None = None, *, timeout_s: float = 300) -> bool:
    """Look for a run of at most `steps` cycles from reset with a wrong answer at the port of the MSHRs.

    abc found none in 40 cycles if requests do not wait for an invalidation (`void_nears`): this is no mutant.

    The other parameters are those of `prove_second_level`.
    """
    proof = _SecondLevelProof(_params(4), deep=False, invariants=False)
    return refute(
        proof, proof.inputs, steps, mutant=SECOND_MUTANTS[mutant] if mutant else None,
        timeout_s=timeout_s,
    )  # fmt: skip
