"""Miss status holding registers: what waits for the TCAM, merged, retried, and filled into the cache."""

from collections.abc import Sequence

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib.wiring import In, Out

from hopforge.hw.mshr_entries import MshrEntries
from hopforge.hw.round_robin import RoundRobin, lowest_one, select


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

    def elaborate(self, platform: object) -> Module:
        """Build the entries, the two round-robin choices and the merge."""
        m = Module()
        N = self.entries
        free, wait_issue, issued, stale = self.free, self.wait_issue, self.issued, self.stale
        wait_primary, done, injected, fresh = self.wait_primary, self.done, self.injected, self.entry_fresh
        keys, indices, destinations, tags = self.keys, self.indices, self.destinations, self.tags
        primaries, results, at_least = self.primaries, self.results, self.at_least

        one_freed = Signal()
        one_allocated = Signal()
        with m.If(one_freed & ~one_allocated):
            m.d.sync += at_least.eq(Cat(1, at_least[:-1]))
        with m.Elif(one_allocated & ~one_freed):
            m.d.sync += at_least.eq(at_least[1:])

        # --- choices from the registers
        m.submodules.fill_choice = fill_choice = RoundRobin(width=N)
        m.submodules.issue_choice = issue_choice = RoundRobin(width=N)
        accepted = Signal(N)
        m.d.comb += [
            self.any_free.eq(at_least[0]),
            self.several_free.eq(at_least[1] if N > 1 else 0),
            fill_choice.requests.eq(done),
            fill_choice.advance.eq(self.inject),
            self.fill_valid.eq(done.any()),
            self.fill_key.eq(fill_choice.select(keys)),
            self.fill_index.eq(fill_choice.select(indices)),
            self.fill_same_row.eq(
                fill_choice.select([same_rows(index, self.index, self.row_bits) for index in indices])
            ),
            self.fill_tag.eq(fill_choice.select(tags)),
            self.fill_fresh.eq(fill_choice.select([fresh[i] for i in range(N)])),
            Cat(self.fill_output, self.fill_match).eq(fill_choice.select(results)),
            issue_choice.requests.eq(wait_issue),
            self.issue_valid.eq(wait_issue.any() & ~self.hold),
            issue_choice.advance.eq(self.issue_valid & self.issue_ready),
            issue_choice.stay.eq(self.issue_valid & ~self.issue_ready),
            self.issue_id.eq(
                Cat(
                    Cat(issue_choice.grant[i] for i in range(N) if i >> bit & 1).any() if N > 1 else 0
                    for bit in range(self.id_bits)
                )
            ),
            self.issue_dst.eq(issue_choice.select(destinations)),
            accepted.eq(issue_choice.grant & issue_choice.advance.replicate(N)),
        ]

        # --- answers
        answered = Signal(N)
        same_key = Signal(N)
        invalidated = Signal(N)
        usable_answer = Signal(N)
        target = Signal(N)
        written = Signal(N)
        answer = Signal(1 + self.output_bits)
        m.d.comb += [
            answered.eq(Cat(issued[i] & self.answer_valid & (self.answer_id == i) for i in range(N))),
            same_key.eq(fresh & (self._equal_keys(m, keys, written))),
            invalidated.eq(same_key & self.invalidate.replicate(N)),
            usable_answer.eq(answered & ~stale & ~invalidated),
            answer.eq(Cat(self.answer_output & self.answer_match.replicate(self.output_bits), self.answer_match)),
            self.retried.eq((answered & stale).any()),
        ]
        primary_answered = Signal(N)
        for i in range(N):
            m.d.comb += primary_answered[i].eq(wait_primary[i] & (primaries[i] & usable_answer).any())

        # --- allocation and merge: the fields are written for every LOOKUP in C, only the state waits for `miss`
        mergeable = Signal(N)
        merge_with = Signal(N)
        merge = Signal()
        merge_done = Signal()
        merge_result = Signal(1 + self.output_bits)
        m.d.comb += [
            target.eq(lowest_one(free)),
            written.eq(target & self.allocate.replicate(N)),
            mergeable.eq(same_key & (wait_issue | issued | done)),
            merge_with.eq(lowest_one(mergeable)),
            merge.eq(mergeable.any() & self.may_merge),
            merge_done.eq((merge_with & (done | usable_answer)).any()),
            merge_result.eq(Mux((merge_with & done).any(), select(merge_with, results), answer)),
            self.merged.eq(self.allocate & self.miss & merge),
            one_allocated.eq(self.allocate & self.miss),
            one_freed.eq(self.inject if self.direct else injected.any() & self.release),
        ]

        for i in range(N):
            new = Signal(name=f"new{i}")
            injection = Signal(name=f"injection{i}")
            m.d.comb += [
                new.eq(written[i] & self.miss),
                injection.eq(self.inject & fill_choice.grant[i]),
            ]
            with m.If(written[i]):
                m.d.sync += [
                    keys[i].eq(self.key),
                    indices[i].eq(self.index),
                    destinations[i].eq(self.dst),
                    tags[i].eq(self.tag),
                    primaries[i].eq(merge_with),
                ]
            with m.If(written[i]):
                m.d.sync += fresh[i].eq(self.fresh & ~self.flush)
            with m.Elif(self.flush):
                m.d.sync += fresh[i].eq(0)
            # Whether the answer counts is late, and a matter of the state alone: a result is read in DONE only.
            with m.If(answered[i] | (wait_primary[i] & (primaries[i] & answered).any())):
                m.d.sync += results[i].eq(answer)
            with m.Elif(written[i]):
                m.d.sync += results[i].eq(merge_result)

            if self.direct:
                freed: Value = injection
                recalled = done[i] & ~injection
            else:
                freed = Signal(name=f"freed{i}")
                recalled = Signal(name=f"recalled{i}")
                m.d.comb += [
                    freed.eq(injected[i] & self.release),
                    recalled.eq(done[i] | (injected[i] & ~self.release)),
                ]
                # INVALIDATE and FILL are never in C at the same time: an INJECTED entry can't be invalidated.
                m.d.sync += injected[i].eq(
                    ~self.flush & ((injection & ~invalidated[i]) | (injected[i] & ~self.release))
                )
            m.d.sync += [
                free[i].eq((free[i] & ~new) | freed),
                wait_issue[i].eq(
                    (wait_issue[i] & ~accepted[i])
                    | (new & (self.flush | ~merge))
                    | (answered[i] & (stale[i] | invalidated[i] | self.flush))
                    | (done[i] & invalidated[i])
                    | (self.flush & (wait_primary[i] | recalled))
                ),
                issued[i].eq((issued[i] & ~answered[i]) | accepted[i]),
                stale[i].eq(
                    (issued[i] & ~answered[i] & (stale[i] | invalidated[i] | self.flush)) | (accepted[i] & self.flush)
                ),
                wait_primary[i].eq(
                    ~self.flush & ((wait_primary[i] & ~primary_answered[i]) | (new & merge & ~merge_done))
                ),
                done[i].eq(
                    ~self.flush
                    & (
                        (done[i] & ~injection & ~invalidated[i])
                        | usable_answer[i]
                        | primary_answered[i]
                        | (new & merge & merge_done)
                    )
                ),
            ]
        if not self.direct:
            m.d.comb += self.alive.eq(injected.any())
        return m

    def _equal_keys(self, m: Module, keys: Sequence[Value], written: Value) -> Value:
        """Entries whose key is the one in C; compared in B already, where that does not lengthen the way of C."""
        equal = self.equal_key
        if self.direct:
            m.d.comb += equal.eq(Cat(key == self.key for key in keys))
            return equal
        follows_same = Signal(name="follows_same")
        m.d.comb += follows_same.eq(self.next_key == self.key)
        with m.If(self.advance):
            m.d.sync += equal.eq(Cat(Mux(written[i], follows_same, key == self.next_key) for i, key in enumerate(keys)))
        return equal
