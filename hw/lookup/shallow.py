"""The pipelined lookup engine: node reduction, routing cache, MSHRs, TCAM, control."""

from collections.abc import Callable

from amaranth.hdl import Cat, Module, Mux, Signal, Value, unsigned
from amaranth.lib.data import StructLayout, View

from hopforge.hw.cache.epoch import EpochControl
from hopforge.hw.cache.routing_cache import RoutingCache
from hopforge.hw.keys.reduction_parameters import ReductionParameters
from hopforge.hw.keys.stage import KeyStage
from hopforge.hw.lookup.base import LookupBase
from hopforge.hw.lookup.csr import ControlStatus
from hopforge.hw.lookup.mshr import MshrFile, same_rows
from hopforge.hw.parts.sram import Sram
from hopforge.model.lookup.params import LookupParams


class Lookup(LookupBase):
    """Lookup engine of one input port, as defined cycle by cycle in ``docs/definitions/lookup-engine.md``.

    Latency: a hit answers ``pipeline_depth`` cycles after its request was accepted. Throughput: one lookup per cycle
    while it hits and ``resp_ready`` is high. Back-pressure: while ``resp_ready`` is low the response is held and the
    pipeline fills; while the MSHRs are all in use no request leaves stage A. Reset: cache disabled, mode
    arbitrary, counters 0; the memories keep their contents (two flushes, each with a finished scrub, clear them).

    Ports: see the table *Ports of Lookup* in the definition.

    Parameters
    ----------
    params : LookupParams
        The engine; its own checks name what is wrong.
    memory : callable
        Makes the memories of the cache, `Sram`; a proof puts an abstraction in its place.

    Attributes
    ----------
    control, epoch, cache, mshrs, keys : ControlStatus, EpochControl, RoutingCache, MshrFile, KeyStage
        The blocks.
    op : View
        The operation in stage C.
    """

    control: ControlStatus
    epoch: EpochControl
    cache: RoutingCache
    mshrs: MshrFile
    keys: KeyStage
    op: View

    def __init__(self, *, params: LookupParams, memory: Callable[..., Sram] = Sram):
        p = params
        super().__init__(p, memory=memory)
        self.control = ControlStatus(params=p)
        self.epoch = EpochControl(epoch_bits=p.epoch_bits, rows=p.sets)
        self.cache = RoutingCache(
            sets=p.sets,
            ways=p.ways,
            policy=p.policy,
            skewed=p.skewed,
            key_bits=p.key_bits,
            tag_bits=p.tag_bits,
            output_bits=p.output_bits,
            epoch_bits=p.epoch_bits,
            seed=p.random_seed,
            asynchronous=self.direct,
            memory=memory,
            protection=p.protection,
        )
        self.mshrs = MshrFile(
            entries=p.mshrs,
            key_bits=p.key_bits,
            index_bits=self.index_width,
            row_bits=self.row_bits,
            address_bits=p.address_bits,
            tag_bits=p.request_tag_bits,
            output_bits=p.output_bits,
            direct=self.direct,
        )
        index_masks, index_constant = self.index_function()
        self.keys = KeyStage(
            reduction=self.reduction_parameters(),
            stages=max(0, p.pipeline_depth - 2),
            tag_bits=p.request_tag_bits,
            index_masks=index_masks,
            index_constant=index_constant,
        )
        layout = StructLayout(
            {
                "lookup": unsigned(1),
                "fill": unsigned(1),
                "invalidate": unsigned(1),
                "scrub": unsigned(1),
                "fresh": unsigned(1),
                "match": unsigned(1),
                "key": unsigned(p.key_bits),
                "index": unsigned(self.index_width),
                "dst": unsigned(p.address_bits),
                "tag": unsigned(p.request_tag_bits),
                "output": unsigned(p.output_bits),
            }
        )
        self.op = View(layout, Signal(layout.size, name="op"))

    @property
    def direct(self) -> bool:
        """Whether an operation is chosen, looked up and completed in one cycle."""
        return self.params.pipeline_depth == 1

    def elaborate(self, platform: object) -> Module:
        """Connect the blocks and the pipeline between them."""
        m = Module()
        control, epoch, cache, mshrs, keys = self.control, self.epoch, self.cache, self.mshrs, self.keys
        m.submodules.control = control
        m.submodules.epoch = epoch
        m.submodules.cache = cache
        m.submodules.mshrs = mshrs
        m.submodules.keys = keys
        reduction = self.reduction_parameters()
        if reduction.reduces:
            m.d.comb += keys.active.eq(self._active_registers(m, reduction, control))
        row_changed = self._tcam(m, reduction, control, mshrs)
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
            cache.epoch.eq(epoch.epoch),
        ]

        out_free = Signal()
        m.d.comb += out_free.eq(~self.resp_valid | self.resp_ready)
        self._stage_b(m, out_free, keys, mshrs, cache, epoch)
        self._stage_c(m, out_free, mshrs, cache, epoch, control)
        return m

    def _active_registers(self, m: Module, reduction: ReductionParameters, control: ControlStatus) -> Value:
        """Register what `ReductionSetup` makes of the shadows."""
        active = Signal(reduction.active_layout)
        m.d.sync += active.eq(self._setup(m, reduction, control).active)
        return active

    def _stage_b(
        self, m: Module, out_free: Value, keys: KeyStage, mshrs: MshrFile, cache: RoutingCache, epoch: EpochControl
    ) -> None:
        """Choose the next operation and read the arrays for it."""
        op = self.op
        taken = op if self.direct else View(op.shape(), Signal(op.shape().size, name="taken"))
        c_free = Signal()
        room = Signal()
        lookup_waits = Signal()
        scrub_possible = Signal()
        scrub_first = Signal()
        if self.direct:
            m.d.comb += [c_free.eq(1), room.eq(mshrs.any_free), scrub_possible.eq(epoch.active)]
        else:
            m.d.comb += [
                c_free.eq(~(op.lookup | op.fill) | out_free),
                room.eq(mshrs.several_free | (mshrs.any_free & ~op.lookup)),
                scrub_possible.eq(epoch.active & ~op.scrub),
            ]
        m.d.comb += [
            scrub_first.eq(scrub_possible & epoch.flush_wait),
            lookup_waits.eq(keys.lookup & room),
            taken.fill.eq(c_free & ~scrub_first & mshrs.fill_valid),
            keys.accept_invalidate.eq(c_free & ~scrub_first & ~mshrs.fill_valid),
            # Depth 1: C is never held over, so that a lookup whose answer has no place must not be taken.
            keys.accept_lookup.eq(keys.accept_invalidate & room & (out_free if self.direct else 1)),
            taken.invalidate.eq(keys.invalidate & keys.accept_invalidate),
            taken.lookup.eq(keys.lookup & keys.accept_lookup),
            taken.scrub.eq(
                c_free & scrub_possible & (epoch.flush_wait | ~(mshrs.fill_valid | keys.invalidate | lookup_waits))
            ),
        ]

        scrub_selected = Signal()
        scrub_index = epoch.row.replicate(self.index_width // self.row_bits)
        m.d.comb += [
            scrub_selected.eq(scrub_first | ~(mshrs.fill_valid | keys.invalidate | lookup_waits)),
            taken.match.eq(mshrs.fill_match),
            taken.output.eq(mshrs.fill_output),
            taken.dst.eq(keys.dst),
            taken.key.eq(Mux(mshrs.fill_valid, mshrs.fill_key, keys.key)),
            taken.tag.eq(Mux(mshrs.fill_valid, mshrs.fill_tag, keys.tag)),
            taken.fresh.eq(scrub_selected | Mux(mshrs.fill_valid, mshrs.fill_fresh, keys.fresh)),
            taken.index.eq(
                Mux(
                    scrub_selected,
                    scrub_index,
                    Mux(mshrs.fill_valid, mshrs.fill_index, keys.index),
                )
            ),
        ]
        if self.direct:
            m.d.comb += mshrs.inject.eq(taken.fill & out_free)
            return
        m.d.comb += [
            mshrs.inject.eq(taken.fill),
            mshrs.advance.eq(c_free),
            mshrs.next_key.eq(keys.key),
            cache.read.eq(taken.lookup | taken.fill | taken.invalidate | taken.scrub),
            cache.read_index.eq(taken.index),
            cache.same_row.eq(
                Mux(
                    scrub_selected,
                    same_rows(op.index, scrub_index, self.row_bits),
                    Mux(mshrs.fill_valid, mshrs.fill_same_row, same_rows(op.index, keys.index, self.row_bits)),
                )
            ),
        ]
        with m.If(c_free):
            m.d.sync += [op.eq(taken), op.fresh.eq(taken.fresh & ~epoch.event)]
        with m.Elif(epoch.event):
            m.d.sync += op.fresh.eq(0)

    def _stage_c(
        self,
        m: Module,
        out_free: Value,
        mshrs: MshrFile,
        cache: RoutingCache,
        epoch: EpochControl,
        control: ControlStatus,
    ) -> None:
        """Compare, answer, update."""
        op = self.op
        usable = Signal()
        fill_alive = Signal()
        hit = Signal()
        m.d.comb += [
            usable.eq(control.active_enable & ~epoch.flush_wait & op.fresh),
            fill_alive.eq(op.fill & (1 if self.direct else mshrs.alive)),
            hit.eq(cache.present & usable),
            cache.index.eq(op.index),
            cache.key.eq(op.key),
            cache.lookup.eq(op.lookup & usable & out_free),
            cache.fill.eq(fill_alive & usable & op.match & out_free),
            cache.invalidate.eq(op.invalidate),
            cache.scrub.eq(op.scrub & op.fresh),
            cache.fill_output.eq(op.output),
            epoch.scrubbed.eq(op.scrub & op.fresh),
            mshrs.allocate.eq(op.lookup & out_free),
            mshrs.miss.eq(~hit),
            mshrs.may_merge.eq(usable),
            mshrs.fresh.eq(op.fresh),
            mshrs.key.eq(op.key),
            mshrs.index.eq(op.index),
            mshrs.dst.eq(op.dst),
            mshrs.tag.eq(op.tag),
            mshrs.invalidate.eq(op.invalidate),
            control.invalidate_done.eq(self._invalidated(op.invalidate)),
        ]
        if not self.direct:
            m.d.comb += mshrs.release.eq(op.fill & out_free)
        with m.If(out_free):
            m.d.sync += [
                self.resp_valid.eq((op.lookup & hit) | fill_alive),
                self.resp_tag.eq(op.tag),
                self.resp_match.eq(op.lookup | op.match),
                self.resp_hit.eq(op.lookup),
                self.resp_output.eq(
                    (cache.output & op.lookup.replicate(len(cache.output)))
                    | (op.output & op.fill.replicate(len(op.output)))
                ),
            ]
        missed = Signal()
        m.d.comb += [
            missed.eq(mshrs.allocate & ~hit),
            control.events.eq(
                Cat(
                    mshrs.allocate,
                    mshrs.allocate & hit,
                    missed & ~mshrs.merged,
                    mshrs.merged,
                    cache.filled,
                    cache.evicted,
                    fill_alive & ~op.match & out_free,
                    mshrs.retried,
                    epoch.begin,
                    op.invalidate,
                    *self._line_events(m, cache),
                    self._second_events(),
                )
            ),
        ]
