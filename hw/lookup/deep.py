"""The lookup engine for short periods: five to eight stages, of which none behind the choice ever waits."""

from collections.abc import Callable
from functools import reduce
from itertools import chain, combinations
from operator import and_, or_

from amaranth.hdl import Cat, Module, Mux, Signal, Value, unsigned
from amaranth.lib.data import StructLayout, View

from hopforge.hw.cache.pipelined_cache import PipelinedCache
from hopforge.hw.cache.registered_epoch import RegisteredEpochControl
from hopforge.hw.keys.pipeline import KeyPipeline
from hopforge.hw.keys.reduction_parameters import ReductionParameters
from hopforge.hw.lookup.base import LookupBase
from hopforge.hw.lookup.pipelined_mshr import PipelinedMshrFile
from hopforge.hw.lookup.registered_csr import RegisteredControlStatus
from hopforge.hw.parts.response_queue import ResponseQueue
from hopforge.hw.parts.sram import Sram
from hopforge.model.lookup.params import LookupParams

LEAST_DEPTH = 5
"""Shallowest deep engine."""

PLACES = 4
"""Responses that can wait; with a memory stage one more."""


class DeepLookup(LookupBase):
    """Lookup engine of one input port (``docs/definitions/lookup-engine.md``, *Deep engines*).

    Latency: a hit answers ``pipeline_depth`` cycles after its request was accepted, with ``memory_stage`` one more.
    Throughput: one lookup per cycle while it hits and ``resp_ready`` is high. Back-pressure: responses wait in a queue;
    while it has no place, or the MSHRs are all in use or promised, nothing leaves stage A. Reset: as for
    `hopforge.hw.lookup.shallow.Lookup`.

    Ports: see the table *Ports of Lookup* in the definition.

    Parameters
    ----------
    params : LookupParams
        The engine, with a depth of 5 to 8.
    memory : callable
        Makes the memories of the cache, `Sram`; a proof puts an abstraction in its place.

    Attributes
    ----------
    control, epoch, cache, mshrs, keys, responses
        The blocks.
    fetched, compared, acting, missed : View
        The operations in stages R (without a memory stage: C1 again), C1, C2 and M.
    """

    def __init__(self, *, params: LookupParams, memory: Callable[..., Sram] = Sram):
        super().__init__(params, memory=memory)
        p = params
        if p.pipeline_depth < LEAST_DEPTH:
            raise ValueError(f"pipeline_depth must be 5 to 8 for a deep engine, not {p.pipeline_depth}")
        self.control = RegisteredControlStatus(params=p)
        self.epoch = RegisteredEpochControl(epoch_bits=p.epoch_bits, rows=p.sets)
        self.cache = PipelinedCache(
            sets=p.sets, ways=p.ways, policy=p.policy, skewed=p.skewed, key_bits=p.key_bits, tag_bits=p.tag_bits,
            output_bits=p.output_bits, epoch_bits=p.epoch_bits, seed=p.random_seed, memory=memory,
            memory_stage=p.memory_stage, protection=p.protection,
        )  # fmt: skip
        self.mshrs = PipelinedMshrFile(
            entries=p.mshrs, key_bits=p.key_bits, index_bits=self.index_width, address_bits=p.address_bits,
            tag_bits=p.request_tag_bits, output_bits=p.output_bits,
        )  # fmt: skip
        masks, constant = self.index_function()
        self.keys = KeyPipeline(
            reduction=self.reduction_parameters(), steps=p.pipeline_depth - 3, tag_bits=p.request_tag_bits,
            index_masks=masks, index_constant=constant,
        )  # fmt: skip
        self.responses = ResponseQueue(
            places=PLACES + p.memory_stage, width_bits=p.request_tag_bits + p.output_bits + 2
        )  # fmt: skip
        kinds = {name: unsigned(1) for name in ("lookup", "fill", "invalidate", "scrub", "fresh")}
        fields = {
            "key": unsigned(p.key_bits),
            "index": unsigned(self.index_width),
            "tag": unsigned(p.request_tag_bits),
            "dst": unsigned(max(p.address_bits, p.output_bits + 1)),  # of a FILL: output, and above it match
        }
        layout = StructLayout(kinds | {"writes": unsigned(1), "answers": unsigned(1)} | fields)
        self.writers = Signal()  # R, C1 or C2 holds a FILL, an INVALIDATE or a SCRUB
        # R, C1 and C2 hold at least one LOOKUP or FILL, at least two, three
        names = ("some_answer", "two_answer", "three_answer") if p.memory_stage else ("some_answer", "both_answer")
        self.answering = [Signal(name=name) for name in names]
        self.usable = Signal()  # of the operation in C2: enabled, no flush waits, fresh
        self.may_fill = Signal()  # a FILL in C2 that is usable and has an answer
        self.compared = View(layout, Signal(layout.size, name="compared"))
        self.fetched = View(layout, Signal(layout.size, name="fetched")) if p.memory_stage else self.compared
        layout = StructLayout(kinds | fields)
        self.acting = View(layout, Signal(layout.size, name="acting"))
        layout = StructLayout(
            {
                "miss": unsigned(1),
                "invalidate": unsigned(1),
                "fresh": unsigned(1),
                "usable": unsigned(1),
                "busy": unsigned(1),
                "key": unsigned(p.key_bits),
                "index": unsigned(self.index_width),
                "dst": unsigned(p.address_bits),
                "tag": unsigned(p.request_tag_bits),
            }
        )
        self.missed = View(layout, Signal(layout.size, name="missed"))

    def elaborate(self, platform: object) -> Module:
        """Connect the blocks and the pipeline between them."""
        m = Module()
        control, epoch, mshrs, keys = self.control, self.epoch, self.mshrs, self.keys
        m.submodules.control = control
        m.submodules.epoch = epoch
        m.submodules.cache = self.cache
        m.submodules.mshrs = mshrs
        m.submodules.keys = keys
        m.submodules.responses = self.responses
        reduction = self.reduction_parameters()
        if reduction.reduces:
            m.d.comb += keys.active.eq(self._loaded_registers(m, reduction))
        row_changed = self._tcam(m, reduction, control, mshrs, load=control.load)
        self._control(m, control, epoch, mshrs, row_changed)
        m.d.comb += [
            keys.req_valid.eq(self.req_valid),
            self.req_ready.eq(keys.req_ready),
            keys.req_dst.eq(self.req_dst),
            keys.req_tag.eq(self.req_tag),
            keys.invalidate_pending.eq(control.invalidate_pending),
            keys.invalidate_dst.eq(control.invalidate_dst),
            control.invalidate_taken.eq(keys.invalidate_taken),
            keys.flush.eq(epoch.event),
            self.cache.epoch.eq(epoch.epoch),
        ]
        self._choose(m)
        if self.params.memory_stage:
            self._fetch(m)
        self._act(m)
        return m

    def _loaded_registers(self, m: Module, reduction: ReductionParameters) -> Value:
        """Load what `ReductionSetup` makes of the shadows, several periods after they have changed."""
        setup = self._setup(m, reduction, self.control, registers=self.cache.memories[0].late_output)
        active = Signal(reduction.active_layout)
        with m.If(self.control.load):
            m.d.sync += active.eq(setup.active)
        return active

    def _choose(self, m: Module) -> None:
        """Stage B: choose the next operation, see whether there is place for it, and read the arrays for it."""
        keys, mshrs, epoch, cache = self.keys, self.mshrs, self.epoch, self.cache
        first, held = self.fetched, self.responses.held
        scrubbed_last = Signal()
        scrub_first = Signal()
        waits = Signal()
        opened = Signal()
        place = Signal()
        scrub = Signal()
        take_lookup, take_fill, take_invalidate, take_scrub = taken = [
            Signal(name=f"take_{kind}") for kind in ("lookup", "fill", "invalidate", "scrub")
        ]
        m.d.comb += [
            scrub_first.eq(epoch.flush_wait & epoch.active & ~scrubbed_last),
            waits.eq(keys.lookup | keys.invalidate),
            scrub.eq(epoch.active & (scrub_first | ~(mshrs.fill_valid | waits))),
            opened.eq(~self.writers),
            place.eq(~self._no_place(held)),
            take_fill.eq(opened & mshrs.fill_valid & ~scrub_first & place),
            take_invalidate.eq(opened & keys.invalidate & ~mshrs.fill_valid & ~scrub_first),
            take_lookup.eq(opened & keys.lookup & ~mshrs.fill_valid & ~scrub_first & place & mshrs.room),
            take_scrub.eq(opened & scrub),
            keys.taken.eq(take_lookup | take_invalidate),
            mshrs.fill_may_be_taken.eq(opened),
            mshrs.promise.eq(take_lookup),
            mshrs.fill_taken.eq(take_fill),
            cache.read.eq(Cat(taken).any()),
            cache.read_index.eq(
                Mux(
                    scrub,
                    epoch.row.replicate(self.index_width // self.row_bits),
                    Mux(mshrs.fill_valid, mshrs.fill_index, keys.index),
                )
            ),
        ]
        with m.If(Cat(taken).any()):
            m.d.sync += scrubbed_last.eq(take_scrub)
        fill = mshrs.fill_valid
        writes, answers = Signal(), Signal()
        m.d.comb += [
            writes.eq((take_fill & ~mshrs.fill_killed) | take_invalidate | take_scrub),
            answers.eq((take_fill & ~mshrs.fill_killed) | take_lookup),
        ]
        self._look_behind(m, writes, answers)
        m.d.sync += [
            first.lookup.eq(take_lookup),
            first.fill.eq(take_fill & ~mshrs.fill_killed),
            first.writes.eq(writes),
            first.answers.eq(answers),
            first.invalidate.eq(take_invalidate),
            first.scrub.eq(take_scrub),
            first.fresh.eq((scrub | Mux(fill, mshrs.fill_fresh, keys.fresh)) & ~epoch.event),
            first.key.eq(Mux(fill, mshrs.fill_key, keys.key)),
            first.index.eq(cache.read_index),
            first.dst.eq(Mux(fill, Cat(mshrs.fill_output, mshrs.fill_match), keys.dst)),
            first.tag.eq(Mux(fill, mshrs.fill_tag, keys.tag)),
        ]

    def _no_place(self, held: Signal) -> Value:
        """Whether responses and what will answer take all places of the queue."""
        last = len(held) - 1
        return reduce(or_, (held[last - count] & some for count, some in enumerate(self.answering, 1)), held[last])

    def _look_behind(self, m: Module, writes: Signal, answers: Signal) -> None:
        """Foresee what R, C1 and C2 hold in the next cycle; B takes now what ``writes`` and ``answers``."""
        staying = [self.compared] if self.fetched is self.compared else [self.fetched, self.compared]
        lives = [~(op.fill & self.epoch.event) for op in staying]
        writing = [writes, *(op.writes & alive for op, alive in zip(staying, lives, strict=True))]
        answering = [(answers,), *((op.answers, alive) for op, alive in zip(staying, lives, strict=True))]
        m.d.sync += self.writers.eq(reduce(or_, writing))
        for count, signal in enumerate(self.answering, 1):
            together = (reduce(and_, chain(*some)) for some in combinations(answering, count))
            m.d.sync += signal.eq(reduce(or_, together))

    def _fetch(self, m: Module) -> None:
        """Stage R: what the memories read goes to registers, the operation beside it."""
        first, op = self.fetched, self.compared
        m.d.sync += [
            *(getattr(op, name).eq(getattr(first, name)) for name in op.shape().members),
            op.fresh.eq(first.fresh & ~self.epoch.event),
            op.fill.eq(first.fill & ~self.epoch.event),
        ]
        with m.If(first.fill & self.epoch.event):
            m.d.sync += [op.writes.eq(0), op.answers.eq(0)]

    def _act(self, m: Module) -> None:
        """Stages C1, C2 and M."""
        control, epoch, cache, mshrs = self.control, self.epoch, self.cache, self.mshrs
        first, op, missed = self.compared, self.acting, self.missed
        m.d.sync += [
            *(getattr(op, name).eq(getattr(first, name)) for name in op.shape().members),
            op.fresh.eq(first.fresh & ~epoch.event),
            op.fill.eq(first.fill & ~epoch.event),
        ]
        fill_output, match = op.dst[: self.params.output_bits], op.dst[self.params.output_bits]
        usable, may_fill = self.usable, self.may_fill
        usable_next = Signal()
        hit = Signal()
        busy = Signal()
        # Whether a flush waits changes only with an event, after which nothing is fresh.
        m.d.comb += usable_next.eq(control.next_enable & ~epoch.flush_wait & first.fresh & ~epoch.event)
        m.d.sync += [
            usable.eq(usable_next),
            may_fill.eq(usable_next & first.fill & first.dst[self.params.output_bits]),
        ]
        m.d.comb += [
            hit.eq(cache.present & usable),
            busy.eq(op.lookup | op.fill | op.invalidate | op.scrub),
            *cache.works_on(
                first, op, busy=busy, before=(missed.index, missed.busy), usable=usable, fill=may_fill,
                output=fill_output,
            ),
            epoch.scrubbed.eq(op.scrub & op.fresh),
            self.responses.push.eq((op.lookup & hit) | op.fill),
            self.responses.word.eq(
                Cat(
                    op.tag,
                    (cache.output & op.lookup.replicate(len(cache.output)))
                    | (fill_output & op.fill.replicate(len(fill_output))),
                    op.lookup | match,
                    op.lookup,
                )
            ),
            self.responses.ready.eq(self.resp_ready),
            self.resp_valid.eq(self.responses.valid),
            Cat(self.resp_tag, self.resp_output, self.resp_match, self.resp_hit).eq(self.responses.first),
            mshrs.next_key.eq(op.key),
            mshrs.give_back.eq(op.lookup & hit),
            mshrs.release.eq(op.fill),
            mshrs.miss.eq(missed.miss),
            mshrs.invalidate.eq(missed.invalidate),
            mshrs.may_merge.eq(missed.usable),
            mshrs.fresh.eq(missed.fresh),
            mshrs.key.eq(missed.key),
            mshrs.index.eq(missed.index),
            mshrs.dst.eq(missed.dst),
            mshrs.tag.eq(missed.tag),
            control.invalidate_done.eq(self._invalidated(missed.invalidate)),
            control.events.eq(
                Cat(
                    op.lookup,
                    op.lookup & hit,
                    missed.miss & ~mshrs.merged,
                    mshrs.merged,
                    cache.filled,
                    cache.evicted,
                    op.fill & ~match,
                    mshrs.retried,
                    epoch.begin,
                    missed.invalidate,
                    *self._line_events(m, cache),
                    self._second_events(),
                )
            ),
        ]
        m.d.sync += [
            missed.miss.eq(op.lookup & ~hit),
            missed.invalidate.eq(op.invalidate),
            missed.fresh.eq(op.fresh & ~epoch.event),
            missed.usable.eq(usable & ~epoch.event),
            missed.busy.eq(busy),
            missed.key.eq(op.key),
            missed.index.eq(op.index),
            missed.dst.eq(op.dst[: self.params.address_bits]),
            missed.tag.eq(op.tag),
        ]
