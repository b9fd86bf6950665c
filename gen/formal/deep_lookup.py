"""The proof about the lookup engine (`hopforge.gen.formal.lookup`) for the engines of depths 5 to 8."""

from collections.abc import Iterator, Sequence

from amaranth.hdl import Cat, Const, Mux, Signal, Value
from amaranth.lib.data import View

from hopforge.gen.formal.induction import at_most_one
from hopforge.gen.formal.lookup import ABOUT_A, MARKED, LookupProof
from hopforge.hw.lookup.deep import DeepLookup
from hopforge.hw.parts.plus_one import low_half
from hopforge.model.lookup.params import LookupParams

__all__ = ["DEEP_MUTANTS", "DeepLookupProof"]

DEEP_MUTANTS = {
    "MSHRs do not hear of a flush": ("dut.mshrs.flush", "1'b0"),
    "MSHRs do not hear of an invalidation": ("dut.mshrs.invalidate", "1'b0"),
    "lines of every epoch are live": ("dut.cache.alive", "2'b11"),
    "nothing waits for a writer": ("dut.opened", "1'b1"),
    "responses find a place that is taken": ("dut.place", "1'b1"),
    "the scrubber leaves old lines": ("dut.cache.valid", "2'b00"),
    "a hit allocates an MSHR as well": ("dut.mshrs.miss", "1'b1"),
    "a fill frees nothing": ("dut.mshrs.release", "1'b0"),
    "a killed fill answers all the same": ("dut.mshrs.fill_killed", "1'b0"),
    "an answer of before an invalidation is taken": ("dut.mshrs.same_key", "2'b00"),
}
"""Faults: (wire of the flattened proof, what it is tied to)."""


def _count(bits: Sequence[Value]) -> Value:
    return sum(bits, start=Const(0, 1))


def _bits(word: Signal) -> list[Value]:
    return [word[number] for number in range(len(word))]


class DeepLookupProof(LookupProof):
    """As `LookupProof`, with the invariants of an engine behind whose choice nothing waits.

    Parameters
    ----------
    params, invariants, no_hit
        As for `LookupProof`, with a depth of 5 to 8.
    """

    dut: DeepLookup

    def __init__(self, params: LookupParams, *, invariants: bool = True, no_hit: bool = False):
        super().__init__(params, invariants=invariants, no_hit=no_hit)

    def _invalidation_of_a(self) -> Value:
        return self.dut.missed.invalidate & (self.dut.missed.key == self.address)

    def _properties(self) -> None:
        """Assert what is to be shown, at the ports."""
        m, p, dut = self._m, self.params, self.dut
        queue = dut.responses
        self.event_before = Signal()
        m.d.sync += self.event_before.eq(dut.epoch.event)
        # The answers that were right when the responses in the queue were made.
        self.then = [Signal(1 + p.output_bits, name=f"then{i}") for i in range(queue.places)]
        for i, then in enumerate(self.then):
            follower = Mux(queue.held[i + 1], self.then[i + 1], self.answer) if i + 1 < queue.places else self.answer
            with m.If(dut.resp_ready | ~queue.held[i]):
                m.d.sync += then.eq(follower)
        hit_on_a = dut.resp_valid & dut.resp_hit & dut.resp_tag[ABOUT_A]
        self._claim_at_ports(hit_on_a, self.then[0])

    def _all_invariants(self) -> Iterator[Value]:
        yield from super()._all_invariants()
        yield from self._of_responses()
        yield from self._of_bubbles()

    def _of_control(self) -> Iterator[Value]:
        control, epoch = self.dut.control, self.dut.epoch
        yield ~(control.enable & ~control.enabled_before) | control.requested
        yield ~(control.enable & control.enabled_before & ~control.active_enable) | epoch.event
        yield epoch.active == epoch.debt.any()
        yield ~epoch.flush_wait | epoch.debt.all() | ~epoch.active
        yield epoch.event == (epoch.requested | epoch.ended)
        yield epoch.ended == (epoch.flush_wait & ~epoch.active)
        yield epoch.in_debt == epoch.debt.all()
        yield epoch.last_row == (epoch.row == self.params.sets - 1)
        yield epoch.epoch_low_full == low_half(epoch.epoch).all()
        yield epoch.debt_low_full == low_half(epoch.debt).all()
        if self.params.sets > 1:
            yield epoch.row_low_full == low_half(epoch.row).all()
        if self.params.sets == 1:
            yield epoch.row == 0

    def _of_responses(self) -> Iterator[Value]:
        p, queue = self.params, self.dut.responses
        for i, (word, then) in enumerate(zip(queue.words, self.then, strict=True)):
            tag, output, hit = (
                word[: p.request_tag_bits],
                word[p.request_tag_bits : p.request_tag_bits + p.output_bits],
                word[-1],
            )
            if i:
                yield ~queue.held[i] | queue.held[i - 1]
            yield ~(queue.held[i] & hit & tag[ABOUT_A]) | (then[0] & (output == then[1:]))
        places = [*_bits(queue.held), *(op.lookup | op.fill for op in self._stages())]
        yield _count(places) <= queue.places

    def _stages(self) -> list[View]:
        """Return the operations behind B, the youngest first: R (with a memory stage), C1, C2."""
        dut = self.dut
        return [*([dut.fetched] if self.params.memory_stage else []), dut.compared, dut.acting]

    def _of_bubbles(self) -> Iterator[Value]:
        stages = self._stages()
        second, missed = self.dut.acting, self.dut.missed
        kinds = [Cat(op.lookup, op.fill, op.invalidate, op.scrub) for op in stages]
        for kind in kinds:
            yield at_most_one(kind)
        answers = [kind[:2].any() for kind in kinds]
        writes = [kind[1:].any() for kind in kinds]
        for op, answer, write in zip(stages[:-1], answers, writes, strict=False):
            yield op.writes == write
            yield op.answers == answer
        yield self.dut.writers == Cat(writes).any()
        for count, signal in enumerate(self.dut.answering, 1):
            yield signal == (_count(answers) >= count)
        match = second.dst[self.params.output_bits]
        yield self.dut.usable == (self.dut.control.active_enable & ~self.dut.epoch.flush_wait & second.fresh)
        yield self.dut.may_fill == (self.dut.usable & second.fill & match)
        yield ~missed.usable | missed.fresh
        yield at_most_one(Cat(missed.miss, missed.invalidate))
        for older, write in enumerate(writes):
            yield ~write | ~Cat(kinds[:older]).any()
        yield ~missed.invalidate | ~Cat(kinds).any()
        # The line is gone before the MSHRs hear of it.
        lines = [memory.word for memory in self.memories[: self.params.ways]]
        for line in lines:
            yield ~(self._invalidation_of_a() & self._trusted) | ~self._holds_a(line)

    def _holds_a(self, line: Value) -> Value:
        p = self.params
        at_epoch = p.tag_bits + p.output_bits
        live = line[-1] & (line[at_epoch : at_epoch + p.epoch_bits] == self.dut.epoch.epoch)
        return live & (line[: p.key_bits] == self.address)

    def _of_mshrs(self) -> Iterator[Value]:
        p, dut, mshrs = self.params, self.dut, self.dut.mshrs
        active = dut.control.active_enable
        missed = dut.missed
        N = p.mshrs
        states = (mshrs.free, mshrs.wait_issue, mshrs.issued, mshrs.wait_primary, mshrs.done, mshrs.injected)
        same_key = mshrs.equal_key | (mshrs.written_before & mshrs.follows_same.replicate(N))
        yield at_most_one(mshrs.answered_entry)
        yield at_most_one(mshrs.merged_before)
        yield at_most_one(mshrs.merged_with) & (~mshrs.merged_before.any() | mshrs.merged_with.any())
        for i in range(N):
            state = Cat(bits[i] for bits in states)
            yield state.any() & at_most_one(state)
            used = ~mshrs.free[i]
            fresh = mshrs.entry_fresh[i]
            about_a = mshrs.destinations[i] == self.address
            yield ~used | (mshrs.keys[i] == mshrs.destinations[i])
            yield ~used | (mshrs.tags[i][ABOUT_A] == about_a)
            yield ~(used & about_a) | (mshrs.indices[i] == self.row)
            yield mshrs.issued[i] == (self.outstanding[i] | mshrs.answered_entry[i])
            yield ~(self.outstanding[i] & mshrs.answered_entry[i])
            yield ~mshrs.issued[i] | (self.about_a[i] == about_a)
            yield ~mshrs.stale[i] | mshrs.issued[i]
            trusted = active & fresh & about_a
            right = self._right(mshrs.results[i][-1], mshrs.results[i][:-1])
            yield ~(trusted & (mshrs.done[i] | mshrs.injected[i])) | right
            arrived = self._right(mshrs.answer[-1], mshrs.answer[:-1])
            yield ~(trusted & mshrs.issued[i] & ~mshrs.stale[i] & mshrs.answered_entry[i]) | arrived
            yield ~(trusted & self.outstanding[i] & ~mshrs.stale[i]) | ~self.changed[i]
            yield ~(used & (missed.miss | missed.invalidate)) | (same_key[i] == (fresh & (mshrs.keys[i] == missed.key)))
            yield from self._of_primary(i)
        yield at_most_one(mshrs.target) & ~(mshrs.target & ~mshrs.free).any()
        yield ~missed.miss | mshrs.target.any()
        lookups = _count([*(op.lookup for op in self._stages()), missed.miss])
        places = _count([*_bits(mshrs.places), mshrs.returned])
        yield places + lookups == _count(_bits(mshrs.free))
        for i in range(1, N):
            yield ~mshrs.places[i] | mshrs.places[i - 1]
        yield from self._of_fill()
        yield from self._of_issue()

    def _of_primary(self, i: int) -> Iterator[Value]:
        """Say what an entry that waits for another one knows about it."""
        mshrs = self.dut.mshrs
        waits = mshrs.wait_primary[i]
        merged = mshrs.merged_before[i]
        fresh = mshrs.entry_fresh[i]
        active = self.dut.control.active_enable
        yield ~merged | waits
        yield ~waits | fresh
        for j in range(self.params.mshrs):
            mine = waits & Mux(merged, mshrs.merged_with[j], mshrs.primaries[i] == j)
            same = (mshrs.keys[i] == mshrs.keys[j]) & mshrs.entry_fresh[j]
            on_its_way = mshrs.wait_issue[j] | mshrs.issued[j]
            has_result = mshrs.done[j] | mshrs.injected[j] | mshrs.free[j]
            right = self._right(mshrs.results[j][-1], mshrs.results[j][:-1])
            about_a = mshrs.destinations[i] == self.address
            yield ~mine | merged | (mshrs.answered_primary[i] == mshrs.answered_entry[j])
            yield ~mine | (on_its_way & same) | (merged & has_result)
            yield ~(mine & merged & ~mshrs.free[j]) | same
            yield ~(mine & merged & mshrs.free[j]) | ~self.dut.missed.invalidate
            yield ~(mine & merged & has_result & active & about_a) | right

    def _of_fill(self) -> Iterator[Value]:
        mshrs = self.dut.mshrs
        stages = self._stages()
        in_c = Cat(op.fill for op in stages).any()
        yield at_most_one(mshrs.chosen_fill) & ~(mshrs.chosen_fill.any() & mshrs.fill_valid)
        yield at_most_one(Cat(op.fill for op in stages))
        for i in range(self.params.mshrs):
            waits = mshrs.fill_valid & mshrs.fill_entry[i]
            taken = in_c & mshrs.taken_entry[i]
            yield mshrs.injected[i] == (mshrs.chosen_fill[i] | waits | taken)
            yield at_most_one(Cat(mshrs.chosen_fill[i], waits, taken))
            fields = Cat(mshrs.keys[i], mshrs.indices[i], mshrs.tags[i], mshrs.entry_fresh[i], mshrs.results[i])
            in_f = Cat(
                mshrs.fill_key, mshrs.fill_index, mshrs.fill_tag, mshrs.fill_fresh, mshrs.fill_output, mshrs.fill_match
            )
            yield ~waits | (in_f == fields)
            for op in stages:
                in_op = Cat(op.key, op.index, op.tag, op.fresh, op.dst[: 1 + self.params.output_bits])
                yield ~(op.fill & mshrs.taken_entry[i]) | (in_op == fields)
        yield ~mshrs.fill_valid | (at_most_one(mshrs.fill_entry) & mshrs.fill_entry.any())
        yield ~in_c | (at_most_one(mshrs.taken_entry) & mshrs.taken_entry.any())

    def _of_issue(self) -> Iterator[Value]:
        mshrs = self.dut.mshrs
        yield at_most_one(mshrs.chosen_issue) & ~(mshrs.chosen_issue.any() & mshrs.issue_full)
        yield ~(mshrs.chosen_issue & ~mshrs.wait_issue).any()
        offered = mshrs.issue_entry & mshrs.issue_full.replicate(self.params.mshrs)
        yield ~(offered & ~mshrs.wait_issue).any()
        yield at_most_one(offered) & (offered.any() == mshrs.issue_full)
        for i in range(self.params.mshrs):
            yield ~offered[i] | ((mshrs.issue_id == i) & (mshrs.issue_dst == mshrs.destinations[i]))

    def _of_operations(self) -> Iterator[Value]:
        dut, keys, epoch = self.dut, self.dut.keys, self.dut.epoch
        for name, kind in keys.kinds.items():
            dst = keys.destinations[name]
            yield ~(kind.lookup & kind.invalidate)
            yield ~kind.lookup | (kind.tag[ABOUT_A] == (dst == self.address))
        if "selected" in keys.kinds:
            kind = keys.kinds["selected"]
            yield ~(kind.lookup | kind.invalidate) | (keys.selected_key == keys.destinations["selected"])
        yield ~(keys.lookup & keys.invalidate)
        full = keys.full[0]
        yield ~full | keys.second_kind.lookup | keys.second_kind.invalidate
        yield Cat(keys.full) == full.replicate(len(keys.full))
        yield ~full | keys.lookup | keys.invalidate
        head = keys.lookup | keys.invalidate
        yield keys.writing == (keys.reading ^ (head & ~full))
        second = self._second()
        queued = (
            (keys.lookup, keys.invalidate, keys.key, keys.index, keys.dst, keys.tag),
            (
                full & keys.second_kind.lookup,
                full & keys.second_kind.invalidate,
                second.key,
                second.index,
                second.dst,
                second.tag,
            ),
        )
        for lookup, invalidate, key, index, dst, tag in queued:
            yield ~(lookup & invalidate)
            yield ~(lookup | invalidate) | (key == dst)
            yield ~((lookup | invalidate) & (dst == self.address)) | (index == self.row)
            yield ~lookup | (tag[ABOUT_A] == (dst == self.address))
        for op in self._stages():
            about_a = op.key == self.address
            yield ~op.lookup | ((op.key == op.dst[: self.params.address_bits]) & (op.tag[ABOUT_A] == about_a))
            yield ~((op.lookup | op.fill | op.invalidate) & about_a) | (op.index == self.row)
            yield ~(op.scrub & op.fresh) | (epoch.active & (op.index == epoch.row))
        missed = dut.missed
        about_a = missed.key == self.address
        yield ~missed.miss | ((missed.key == missed.dst) & (missed.tag[ABOUT_A] == about_a))
        yield ~((missed.miss | missed.invalidate) & about_a) | (missed.index == self.row)
        yield from self._of_compared()

    def _second(self) -> View:
        """Return what the operation in the second place of the queue carries."""
        keys = self.dut.keys
        first, second = keys.places
        return View(first.shape(), Mux(keys.reading, Value.cast(first), Value.cast(second)))

    def _of_compared(self) -> Iterator[Value]:
        """Say that what was read and compared is what is in the row now."""
        p, dut, cache = self.params, self.dut, self.dut.cache
        first, op = dut.compared, dut.acting
        at_output, at_epoch = p.tag_bits, p.tag_bits + p.output_bits
        here = Cat(op.lookup, op.fill, op.invalidate, op.scrub).any()
        compared = Cat(first.lookup, first.fill, first.invalidate, first.scrub).any()
        yield ~here | (cache.all_live == cache.live.all())
        yield ~(self.event_before & op.fresh)
        fetched = Cat(getattr(dut.fetched, kind) for kind in ("lookup", "fill", "invalidate", "scrub")).any()
        for way, memory in enumerate(self.memories[: p.ways]):
            line = memory.word
            yield ~(fetched & (dut.fetched.index == self.row)) | (memory.r_data == line)
            if p.memory_stage:
                yield ~(compared & (first.index == self.row)) | (cache.lines[way] == line)
            row = here & (op.index == self.row)
            live = line[-1] & (line[at_epoch : at_epoch + p.epoch_bits] == dut.epoch.epoch)
            yield ~row | (cache.valid[way] == line[-1])
            yield ~row | (cache.outputs[way] == line[at_output:at_epoch])
            yield ~row | self.event_before | (cache.live[way] == live)
            yield ~row | self.event_before | (cache.match[way] == (live & (line[: p.key_bits] == op.key)))
            yield ~self.event_before | dut.epoch.flush_wait | ~live
            yield ~here | ~cache.match[way] | cache.live[way]
            dead_first = ~cache.live[way] & cache.live[:way].all() if way else ~cache.live[way]
            yield ~here | (cache.first_dead[way] == dead_first)

    def _places(self) -> list[Value]:
        """Return a bit for each place that may hold the marked request."""
        p, dut, keys = self.params, self.dut, self.dut.keys
        places: list[Value] = [~dut.mshrs.free[i] & dut.mshrs.tags[i][MARKED] for i in range(p.mshrs)]
        places += [
            held & word[MARKED] for held, word in zip(_bits(dut.responses.held), dut.responses.words, strict=True)
        ]
        places += [op.lookup & op.tag[MARKED] for op in self._stages()]
        places.append(dut.missed.miss & dut.missed.tag[MARKED])
        places += [keys.lookup & keys.tag[MARKED], keys.full[0] & keys.second_kind.lookup & self._second().tag[MARKED]]
        places += [kind.lookup & kind.tag[MARKED] for kind in keys.kinds.values()]
        return places
