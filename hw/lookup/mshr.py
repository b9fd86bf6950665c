"""Miss status holding registers: what waits for the TCAM, merged, retried, and filled into the cache."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib.wiring import In, Out

from hopforge.hw.lookup.mshr_entries import MshrEntries, entry_number
from hopforge.hw.parts.round_robin import RoundRobin, lowest_one, select


def same_rows(one: Value, other: Value, row_bits: int) -> Value:
    """Compare two indices row by row.

    Parameters
    ----------
    one, other : Value
        Indices: one row number, or one per way.
    row_bits : int
        Width of a row number.

    Returns
    -------
    Value
        One bit per row number.
    """
    return Cat(one[at : at + row_bits] == other[at : at + row_bits] for at in range(0, len(one), row_bits))


class MshrFile(MshrEntries):
    """Miss status holding registers of one lookup engine (states and races: ``definitions/lookup-engine.md``, *MSHRs*).

    States are one-hot: FREE, WAIT_ISSUE, ISSUED (with *stale*), WAIT_PRIMARY, DONE, INJECTED. Within a cycle a flush
    beats an invalidation, which beats everything else.

    Ports, all for the current cycle and by the registers at its start:

    - From stage C: ``allocate``: a LOOKUP completes (its ``key``, ``index``, ``dst``, ``tag``, ``fresh`` beside it);
      ``miss``: it did not hit (the only late input: it comes out of the tag compare, and only state bits wait for it);
      ``may_merge``; ``invalidate``: an INVALIDATE of ``key`` completes; ``release``: the FILL in C completes.
      ``alive``: the FILL in C has not been killed. With ``advance`` a LOOKUP or INVALIDATE of ``next_key`` moves to C
      at the end of the cycle: the keys are compared a cycle ahead.
    - To stage B: ``fill_valid`` and the fields of the FILL chosen round-robin, taken with ``inject``
      (``fill_same_row``: its rows are those of ``index``); ``any_free``, ``several_free``: at least one and at least
      two FREE.
    - TCAM: ``issue_*`` is held until ``issue_ready`` (unless ``hold``); ``answer_*`` is always accepted.
    - Events to count: ``merged``, ``retried``.

    Parameters
    ----------
    entries : int
        Registers.
    key_bits, index_bits, address_bits, tag_bits, output_bits : int
        Widths of the fields.
    row_bits : int
        Width of a row number; an index holds one or several.
    direct : bool
        A FILL completes in the cycle in which it is injected (pipeline depth 1): no INJECTED state, no
        ``release``, no ``advance``.

    Raises
    ------
    ValueError
        A parameter below 1.
    """

    allocate: Signal
    alive: Signal
    advance: Signal
    any_free: Signal
    several_free: Signal
    inject: Signal
    fill_same_row: Signal

    def __init__(
        self,
        *,
        entries: int,
        key_bits: int,
        index_bits: int,
        row_bits: int,
        address_bits: int,
        tag_bits: int,
        output_bits: int,
        direct: bool = False,
    ):
        if row_bits < 1:
            raise ValueError(f"row_bits must be at least 1, not {row_bits}")
        late = {"release": In(1), "alive": Out(1), "advance": In(1), "next_key": In(key_bits)}
        super().__init__(
            entries=entries, key_bits=key_bits, index_bits=index_bits, address_bits=address_bits, tag_bits=tag_bits,
            output_bits=output_bits, primary_bits=entries, reset_less=False,
            before={"allocate": In(1)},
            to_b={"any_free": Out(1), "several_free": Out(1), "inject": In(1), "fill_valid": Out(1)},
            rows={"fill_same_row": Out(index_bits // row_bits)},
            behind={} if direct else late,
        )  # fmt: skip
        self.row_bits = row_bits
        self.direct = direct
        N = entries
        self.equal_key = Signal(N)
        # Number of FREE entries as a thermometer code, because `room` is at the head of the longest chain of readiness.
        self.at_least = Signal(N, init=(1 << N) - 1)
        self.one_freed = Signal()
        self.one_allocated = Signal()
        # of the answer in this cycle
        self.answered = Signal(N)
        self.primary_answered = Signal(N)
        self.usable_answer = Signal(N)
        self.answer = Signal(1 + output_bits)
        # of the operation in C
        self.same_key = Signal(N)
        self.invalidated = Signal(N)
        self.written = Signal(N)
        self.merge = Signal()
        self.merge_with = Signal(N)
        self.merge_done = Signal()
        self.merge_result = Signal(1 + output_bits)

    def elaborate(self, platform: object) -> Module:
        """Build the entries, the two round-robin choices and the merge."""
        m = Module()
        self._count_free(m)
        m.submodules.fill_choice = fill_choice = RoundRobin(width=self.entries)
        m.submodules.issue_choice = issue_choice = RoundRobin(width=self.entries)
        self._fill(m, fill_choice)
        accepted = self._issue(m, issue_choice)
        self._answers(m)
        self._merge(m)
        for i in range(self.entries):
            new = Signal(name=f"new{i}")
            injection = Signal(name=f"injection{i}")
            m.d.comb += [
                new.eq(self.written[i] & self.miss),
                injection.eq(self.inject & fill_choice.grant[i]),
            ]
            self._fields(m, i)
            self._state(m, i, new, injection, accepted[i])
        if not self.direct:
            m.d.comb += self.alive.eq(self.injected.any())
        return m

    def _count_free(self, m: Module) -> None:
        """Count the FREE entries."""
        at_least = self.at_least
        with m.If(self.one_freed & ~self.one_allocated):
            m.d.sync += at_least.eq(Cat(1, at_least[:-1]))
        with m.Elif(self.one_allocated & ~self.one_freed):
            m.d.sync += at_least.eq(at_least[1:])
        m.d.comb += [
            self.any_free.eq(at_least[0]),
            self.several_free.eq(at_least[1] if self.entries > 1 else 0),
        ]

    def _fill(self, m: Module, choice: RoundRobin) -> None:
        """Offer stage B the FILL of an entry that is DONE."""
        m.d.comb += [
            choice.requests.eq(self.done),
            choice.advance.eq(self.inject),
            self.fill_valid.eq(self.done.any()),
            self.fill_key.eq(choice.select(self.keys)),
            self.fill_index.eq(choice.select(self.indices)),
            self.fill_same_row.eq(
                choice.select([same_rows(index, self.index, self.row_bits) for index in self.indices])
            ),
            self.fill_tag.eq(choice.select(self.tags)),
            self.fill_fresh.eq(choice.select([self.entry_fresh[i] for i in range(self.entries)])),
            Cat(self.fill_output, self.fill_match).eq(choice.select(self.results)),
        ]

    def _issue(self, m: Module, choice: RoundRobin) -> Value:
        """Ask the TCAM for an entry in WAIT_ISSUE; return which is accepted in this cycle."""
        N = self.entries
        accepted = Signal(N)
        m.d.comb += [
            choice.requests.eq(self.wait_issue),
            self.issue_valid.eq(self.wait_issue.any() & ~self.hold),
            choice.advance.eq(self.issue_valid & self.issue_ready),
            choice.stay.eq(self.issue_valid & ~self.issue_ready),
            self.issue_id.eq(entry_number(choice.grant, self.id_bits)),
            self.issue_dst.eq(choice.select(self.destinations)),
            accepted.eq(choice.grant & choice.advance.replicate(N)),
        ]
        return accepted

    def _answers(self, m: Module) -> None:
        """Find whose answer the TCAM gives, and whether the entry may still use it."""
        N = self.entries
        m.d.comb += [
            self.answered.eq(Cat(self.issued[i] & self.answer_valid & (self.answer_id == i) for i in range(N))),
            self.same_key.eq(self.entry_fresh & self._equal_keys(m)),
            self.invalidated.eq(self.same_key & self.invalidate.replicate(N)),
            self.usable_answer.eq(self.answered & ~self.stale & ~self.invalidated),
            self.answer.eq(Cat(self.answer_output & self.answer_match.replicate(self.output_bits), self.answer_match)),
            self.retried.eq((self.answered & self.stale).any()),
        ]
        for i in range(N):
            m.d.comb += self.primary_answered[i].eq(
                self.wait_primary[i] & (self.primaries[i] & self.usable_answer).any()
            )

    def _merge(self, m: Module) -> None:
        """Choose the entry to allocate, and the one with the same key that it may wait for."""
        N = self.entries
        target = Signal(N)
        mergeable = Signal(N)
        m.d.comb += [
            target.eq(lowest_one(self.free)),
            self.written.eq(target & self.allocate.replicate(N)),
            mergeable.eq(self.same_key & (self.wait_issue | self.issued | self.done)),
            self.merge_with.eq(lowest_one(mergeable)),
            self.merge.eq(mergeable.any() & self.may_merge),
            self.merge_done.eq((self.merge_with & (self.done | self.usable_answer)).any()),
            self.merge_result.eq(
                Mux((self.merge_with & self.done).any(), select(self.merge_with, self.results), self.answer)
            ),
            self.merged.eq(self.allocate & self.miss & self.merge),
            self.one_allocated.eq(self.allocate & self.miss),
            self.one_freed.eq(self.inject if self.direct else self.injected.any() & self.release),
        ]

    def _fields(self, m: Module, i: int) -> None:
        """Write the fields of an entry for every LOOKUP in C: only its state waits for `miss`."""
        written, fresh = self.written[i], self.entry_fresh[i]
        with m.If(written):
            m.d.sync += [
                self.keys[i].eq(self.key),
                self.indices[i].eq(self.index),
                self.destinations[i].eq(self.dst),
                self.tags[i].eq(self.tag),
                self.primaries[i].eq(self.merge_with),
            ]
        with m.If(written):
            m.d.sync += fresh.eq(self.fresh & ~self.flush)
        with m.Elif(self.flush):
            m.d.sync += fresh.eq(0)
        # Whether the answer counts is late, and a matter of the state alone: a result is read in DONE only.
        with m.If(self.answered[i] | (self.wait_primary[i] & (self.primaries[i] & self.answered).any())):
            m.d.sync += self.results[i].eq(self.answer)
        with m.Elif(written):
            m.d.sync += self.results[i].eq(self.merge_result)

    def _state(self, m: Module, i: int, new: Value, injection: Value, accepted: Value) -> None:
        """Move an entry on: allocated (`new`), `accepted` by the TCAM, taken by stage B (`injection`)."""
        done, injected, wait_primary = self.done[i], self.injected[i], self.wait_primary[i]
        invalidated, flush, merge = self.invalidated[i], self.flush, self.merge
        if self.direct:
            freed: Value = injection
            recalled = done & ~injection
        else:
            freed = Signal(name=f"freed{i}")
            recalled = Signal(name=f"recalled{i}")
            m.d.comb += [
                freed.eq(injected & self.release),
                recalled.eq(done | (injected & ~self.release)),
            ]
            # INVALIDATE and FILL are never in C at the same time: an INJECTED entry can't be invalidated.
            m.d.sync += injected.eq(~flush & ((injection & ~invalidated) | (injected & ~self.release)))
        m.d.sync += [
            self.free[i].eq((self.free[i] & ~new) | freed),
            self.wait_issue[i].eq(
                (self.wait_issue[i] & ~accepted)
                | (new & (flush | ~merge))
                | self.asked_again(i, self.answered[i], invalidated)
                | (done & invalidated)
                | (flush & (wait_primary | recalled))
            ),
            *self.at_the_tcam(i, accepted, self.answered[i], invalidated),
            wait_primary.eq(~flush & ((wait_primary & ~self.primary_answered[i]) | (new & merge & ~self.merge_done))),
            done.eq(
                ~flush
                & (
                    (done & ~injection & ~invalidated)
                    | self.usable_answer[i]
                    | self.primary_answered[i]
                    | (new & merge & self.merge_done)
                )
            ),
        ]

    def _equal_keys(self, m: Module) -> Value:
        """Entries whose key is the one in C; compared in B already, where that does not lengthen the way of C."""
        equal, written = self.equal_key, self.written
        if self.direct:
            m.d.comb += equal.eq(Cat(key == self.key for key in self.keys))
            return equal
        follows_same = Signal(name="follows_same")
        m.d.comb += follows_same.eq(self.next_key == self.key)
        with m.If(self.advance):
            m.d.sync += equal.eq(
                Cat(Mux(written[i], follows_same, key == self.next_key) for i, key in enumerate(self.keys))
            )
        return equal
