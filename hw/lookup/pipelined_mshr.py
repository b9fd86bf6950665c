"""Miss status holding registers of a deep engine: what is chosen is chosen a cycle before it is used."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from hopforge.hw.lookup.mshr_entries import MshrEntries, entry_number
from hopforge.hw.parts.round_robin import LateRoundRobin, lowest_one, select


class PipelinedMshrFile(MshrEntries):
    """Miss status holding registers (``docs/definitions/lookup-engine.md``, *MSHRs of a deep engine*).

    States are one-hot: FREE, WAIT_ISSUE, ISSUED (with *stale*), WAIT_PRIMARY, DONE, INJECTED. Within a cycle a flush
    beats an invalidation, which beats everything else.

    Ports, all for the current cycle:

    - From stage C2: ``next_key``, compared with all keys; in the next cycle it is in M. ``release``: a FILL completes.
    - From stage M: ``miss``: a LOOKUP that did not hit, with ``key``, ``index``, ``dst``, ``tag``, ``fresh``, and
      ``may_merge`` (never without ``fresh``); ``invalidate``: an INVALIDATE. Whether M has the key of an MSHR is known
      here.
    - To stage B: ``fill_valid`` and the fields of the FILL in F, taken with ``fill_taken``, and that only with
      ``fill_may_be_taken``: nothing taken before is still between B and ``release``; ``fill_killed``: it is killed in
      this cycle, even if it is taken. ``room``: there are more FREE MSHRs than LOOKUPs between B and the decision;
      ``promise`` takes one, ``give_back`` returns it (a hit).
    - TCAM: ``issue_*`` is held until ``issue_ready``; ``answer_*`` is always accepted.
    - Events to count: ``merged``, ``retried``.

    Parameters
    ----------
    entries : int
        Registers.
    key_bits, index_bits, address_bits, tag_bits, output_bits : int
        Widths of the fields.

    Raises
    ------
    ValueError
        A parameter below 1.
    """

    room: Signal
    promise: Signal
    give_back: Signal
    fill_may_be_taken: Signal
    fill_taken: Signal
    fill_killed: Signal

    def __init__(
        self, *, entries: int, key_bits: int, index_bits: int, address_bits: int, tag_bits: int, output_bits: int
    ):
        super().__init__(
            entries=entries, key_bits=key_bits, index_bits=index_bits, address_bits=address_bits, tag_bits=tag_bits,
            output_bits=output_bits, primary_bits=max(1, ceil_log2(entries)), reset_less=True,
            before={"next_key": In(key_bits), "release": In(1)},
            to_b={
                "room": Out(1), "promise": In(1), "give_back": In(1), "fill_valid": Out(1),
                "fill_may_be_taken": In(1), "fill_taken": In(1), "fill_killed": Out(1),
            },
            rows={},
            behind={},
        )  # fmt: skip
        N = entries
        self.places = Signal(N, init=(1 << N) - 1)  # FREE ones that nobody may need, as a thermometer code
        self.returned = Signal()  # one more than the code says
        self.target = Signal(N)  # T
        self.equal_key = Signal(N)  # M's key is that of a fresh entry, as it was a cycle ago
        self.follows_same = Signal()  # M's key is that of the operation before it
        self.written_before = Signal(N)  # what that operation allocated, if it is fresh
        self.merged_before = Signal(N)  # what has been allocated in the last cycle and has merged
        self.merged_with = Signal(N)  # its primary
        self.chosen_fill = Signal(N)  # P
        self.fill_entry = Signal(N)  # of the FILL in F
        self.taken_entry = Signal(N)  # of the FILL that B has taken last
        self.chosen_issue = Signal(N)  # P'
        self.issue_entry = Signal(N)  # at the port
        self.issue_full = Signal()
        self.answered_entry = Signal(N)
        self.answered_primary = Signal(N)  # entries whose primary has an answer, as it was a cycle ago
        self.answer = Signal(1 + output_bits)
        # of the operation in M
        self.same_key = Signal(N)
        self.written = Signal(N)
        self.invalidated = Signal(N)
        self.merge = Signal()
        # of what has merged a cycle ago
        self.merged_answered = Signal()
        self.current = Signal()
        self.copied = Signal(N)
        self.copy = Signal(1 + output_bits)
        # of the answer in `answer`
        self.answered = Signal(N)
        self.usable_answer = Signal(N)

    def elaborate(self, platform: object) -> Module:
        """Build the entries, what is chosen ahead, and the merge."""
        m = Module()
        self._count_places(m)
        self._find_key(m)
        self._merge(m)
        self._copy_result(m)
        self._answers(m)
        accepted = self._issue(m)
        injection = self._fill(m)
        released = Signal(self.entries)
        m.d.comb += released.eq(self.taken_entry & self.release.replicate(self.entries))
        for i in range(self.entries):
            resolved = self._fields(m, i)
            self._state(m, i, accepted[i], resolved, injection[i], released[i])
        return m

    def _count_places(self, m: Module) -> None:
        """Count what LOOKUPs may still need; what is given back counts at once, and is added a cycle later."""
        returned, target = self.returned, self.target
        m.d.sync += returned.eq(self.give_back | self.release)
        m.d.comb += self.room.eq(self.places[0] | returned)
        with m.If(self.promise & ~returned):
            m.d.sync += self.places.eq(self.places[1:])
        with m.Elif(returned & ~self.promise):
            m.d.sync += self.places.eq(Cat(1, self.places[:-1]))
        with m.If(self.miss | ~target.any()):
            m.d.sync += target.eq(lowest_one(self.free & ~target))

    def _find_key(self, m: Module) -> None:
        """Find who has the key in M."""
        N = self.entries
        m.d.comb += [
            self.same_key.eq(self.equal_key | (self.written_before & self.follows_same.replicate(N))),
            self.written.eq(self.target & self.miss.replicate(N)),
            self.invalidated.eq(self.same_key & self.invalidate.replicate(N)),
        ]
        m.d.sync += [
            self.equal_key.eq(
                Cat(key == self.next_key for key in self.keys)
                & self.entry_fresh
                & ~self.target
                & ~self.flush.replicate(N)
            ),
            self.follows_same.eq(self.next_key == self.key),
            self.written_before.eq(self.written & (self.fresh & ~self.flush).replicate(N)),
        ]

    def _merge(self, m: Module) -> None:
        """Choose the entry that a LOOKUP in M may wait for."""
        N = self.entries
        mergeable = Signal(N)
        used = Signal(N)
        merge_with = Signal(N)
        m.d.comb += [
            used.eq(~self.free & ~self.wait_primary),
            mergeable.eq(self.same_key & used),
            # `follows_same` drives much: what does not wait for it is found out beside it.
            self.merge.eq(
                self.may_merge
                & ((self.equal_key & used).any() | (self.follows_same & (self.written_before & used).any()))
            ),
            self.merged.eq(self.miss & self.merge),
            merge_with.eq(lowest_one(mergeable)),
        ]
        m.d.sync += [
            self.merged_before.eq(self.written & (self.merge & ~self.flush).replicate(N)),
            self.merged_with.eq(merge_with),
        ]

    def _copy_result(self, m: Module) -> None:
        """Give what has merged a cycle ago the result of its primary, if that has one."""
        has_result = Signal()
        m.d.comb += [
            has_result.eq(~(self.merged_with & (self.wait_issue | self.issued)).any()),
            self.copied.eq(self.merged_before & has_result.replicate(self.entries)),
            self.merged_answered.eq((self.merged_with & self.answered_entry).any()),
            self.copy.eq(Mux(self.merged_answered, self.answer, select(self.merged_with, self.results))),
            # A primary and those that wait for it have the same key: an INVALIDATE concerns all of them or none.
            self.current.eq((self.answered_entry & ~self.stale).any()),
        ]

    def _fields(self, m: Module, i: int) -> Value:
        """Write the fields of an entry; return whether it is DONE by the result of another one.

        The next one to allocate takes what is in M in every cycle: nothing but its state waits for `miss`.
        """
        fresh, waits = self.entry_fresh[i], self.wait_primary[i]
        with m.If(self.target[i]):
            m.d.sync += [
                self.keys[i].eq(self.key),
                self.indices[i].eq(self.index),
                self.destinations[i].eq(self.dst),
                self.tags[i].eq(self.tag),
                fresh.eq(self.fresh & ~self.flush),
            ]
        with m.Elif(self.flush):
            m.d.sync += fresh.eq(0)
        of_primary = Signal(name=f"of_primary{i}")
        resolved = Signal(name=f"resolved{i}")
        m.d.comb += [
            of_primary.eq(Mux(self.merged_before[i], self.merged_answered, self.answered_primary[i])),
            resolved.eq(((waits & of_primary & self.current) | self.copied[i]) & ~self.invalidated[i]),
        ]
        with m.If(self.merged_before[i]):
            m.d.sync += [
                self.results[i].eq(self.copy),
                self.primaries[i].eq(entry_number(self.merged_with, self.id_bits)),
            ]
        with m.Elif(self.answered_entry[i] | (waits & of_primary)):
            m.d.sync += self.results[i].eq(self.answer)
        return resolved

    def _state(
        self, m: Module, i: int, accepted: Value, resolved: Value, injection: Value, released: Value
    ) -> None:  # fmt: skip
        """Move an entry on: `accepted` by the TCAM, `resolved` by another, chosen as FILL (`injection`), `released`."""
        done, injected, wait_primary = self.done[i], self.injected[i], self.wait_primary[i]
        written, invalidated, flush, merge = self.written[i], self.invalidated[i], self.flush, self.merge
        m.d.sync += [
            self.free[i].eq((self.free[i] & ~written) | released),
            self.wait_issue[i].eq(
                (self.wait_issue[i] & ~accepted)
                | (written & (flush | ~merge))
                | self.asked_again(i, self.answered[i], invalidated)
                | ((done | injected) & invalidated)
                | (flush & (wait_primary | done | (injected & ~released)))
            ),
            *self.at_the_tcam(i, accepted, self.answered[i], invalidated),
            wait_primary.eq(~flush & ((wait_primary & ~resolved) | (written & merge))),
            done.eq(~flush & ((done & ~injection & ~invalidated) | self.usable_answer[i] | resolved)),
            injected.eq(~flush & ~invalidated & (injection | (injected & ~released))),
        ]

    def _answers(self, m: Module) -> None:
        """Register answers; find whose they are, and whether the entry may still use it."""
        N = self.entries
        merged_with = entry_number(self.merged_with, self.id_bits)
        m.d.sync += [
            self.answered_entry.eq(Cat(self.answer_valid & (self.answer_id == i) for i in range(N))),
            self.answered_primary.eq(
                Cat(
                    self.answer_valid & (Mux(self.merged_before[i], merged_with, primary) == self.answer_id)
                    for i, primary in enumerate(self.primaries)
                )
            ),
            self.answer.eq(Cat(self.answer_output & self.answer_match.replicate(self.output_bits), self.answer_match)),
        ]
        m.d.comb += [
            self.answered.eq(self.answered_entry & self.issued),
            self.usable_answer.eq(self.answered & ~self.stale & ~self.invalidated),
            self.retried.eq((self.answered & self.stale).any()),
        ]

    def _issue(self, m: Module) -> Value:
        """Choose, fetch, offer; entries that are accepted in this cycle."""
        N = self.entries
        m.submodules.issue_choice = choice = LateRoundRobin(width=N)
        accepted = Signal(N)
        taken = Signal()
        choosing = Signal()
        m.d.comb += [
            choice.requests.eq(self.wait_issue),
            choosing.eq(~self.chosen_issue.any() & ~self.issue_full),
            choice.behind.eq(self.chosen_issue),
            self.issue_valid.eq(self.issue_full & ~self.hold),
            taken.eq(self.issue_valid & self.issue_ready),
            accepted.eq(self.issue_entry & taken.replicate(N)),
        ]
        m.d.sync += self.chosen_issue.eq(choice.grant & choosing.replicate(N))
        with m.If(taken):
            m.d.sync += self.issue_full.eq(0)
        with m.If(self.chosen_issue.any()):
            m.d.sync += self.issue_full.eq(1)
        with m.If(~self.issue_full):
            m.d.sync += [
                self.issue_entry.eq(self.chosen_issue),
                self.issue_dst.eq(select(self.chosen_issue, self.destinations)),
                self.issue_id.eq(entry_number(self.chosen_issue, self.id_bits)),
            ]
        return accepted

    def _fill(self, m: Module) -> Value:
        """Choose and fetch the next FILL; entries that are chosen in this cycle."""
        N = self.entries
        m.submodules.fill_choice = choice = LateRoundRobin(width=N)
        choosing = Signal()
        waiting = Signal(N)
        injection = Signal(N)
        m.d.comb += [
            choice.requests.eq(self.done),
            choosing.eq(~self.chosen_fill.any() & ~self.fill_valid),
            choice.behind.eq(self.chosen_fill),
            injection.eq(choice.grant & choosing.replicate(N)),
            waiting.eq(self.chosen_fill | (self.fill_entry & self.fill_valid.replicate(N))),
            self.fill_killed.eq(self.flush | (waiting & self.invalidated).any()),
        ]
        m.d.sync += self.chosen_fill.eq(injection & ~self.invalidated & ~self.flush.replicate(N))
        with m.If(self.fill_may_be_taken):
            m.d.sync += self.taken_entry.eq(self.fill_entry)
        with m.If(self.fill_taken):
            m.d.sync += self.fill_valid.eq(0)
        with m.If(self.chosen_fill.any()):
            m.d.sync += self.fill_valid.eq(1)
        with m.If(~self.fill_valid):
            m.d.sync += [
                self.fill_entry.eq(self.chosen_fill),
                self.fill_key.eq(select(self.chosen_fill, self.keys)),
                self.fill_index.eq(select(self.chosen_fill, self.indices)),
                self.fill_tag.eq(select(self.chosen_fill, self.tags)),
                self.fill_fresh.eq((self.chosen_fill & self.entry_fresh).any()),
                Cat(self.fill_output, self.fill_match).eq(select(self.chosen_fill, self.results)),
            ]
        with m.If(self.fill_killed):
            m.d.sync += self.fill_valid.eq(0)
        return injection
