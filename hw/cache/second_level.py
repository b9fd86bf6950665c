"""The second level of a lookup engine: a larger cache between the MSHRs and the TCAM."""

from collections.abc import Callable

from amaranth.hdl import Cat, Module, Mux, Signal, Value, unsigned
from amaranth.lib import wiring
from amaranth.lib.data import StructLayout, View
from amaranth.lib.wiring import In, Out

from hopforge.hw.cache.epoch import EpochControl
from hopforge.hw.cache.pipelined_cache import PipelinedCache
from hopforge.hw.parts.crc_hash import CrcHash
from hopforge.hw.parts.response_queue import ResponseQueue
from hopforge.hw.parts.sram import Sram
from hopforge.model.lookup.params import LookupParams
from hopforge.model.numbers.crc import crc_matrix

ASKS = 4
"""Requests that can wait for the TCAM."""


class SecondLevel(wiring.Component):
    """Second level (``docs/definitions/second-level.md``): to the MSHRs a TCAM, to the TCAM the MSHRs.

    Latency: a hit answers ``latency_cycles`` cycles after its request was accepted. Throughput: one request per cycle;
    a FILL, an INVALIDATE or a SCRUB takes three. Back-pressure: ``req_ready`` is low while requests for the TCAM have
    no place or an invalidation waits; answers of the TCAM are always taken. Reset: nothing under way; the memories keep
    their contents.

    - From the MSHRs: ``req_*``, with ``req_key`` and ``req_fresh`` of the MSHR; ``fill_id`` names the MSHR whose
      ``fill_key`` is asked for, and ``fill_fresh``: it is fresh and not stale. ``resp_*``: what they are told.
    - To the TCAM: ``issue_*`` and ``answer_*`` as those of `hopforge.hw.lookup.mshr.MshrFile`.
    - Control: ``enable``, ``hold``; ``event``: a flush event of the engine; ``invalidate`` of ``invalidate_key``
      completes at the first level; ``invalidate_done``, ``scrub_active``, ``flush_wait`` for STATUS.
    - Events to count: ``found``, ``missed``.

    Parameters
    ----------
    params : LookupParams
        The engine; it has a second level.
    memory : callable
        Makes the memories of the lines, `Sram`; a proof puts an abstraction in its place.
    """

    req_valid: Signal
    req_ready: Signal
    req_id: Signal
    req_dst: Signal
    req_key: Signal
    req_fresh: Signal
    fill_id: Signal
    fill_key: Signal
    fill_fresh: Signal
    resp_valid: Signal
    resp_id: Signal
    resp_match: Signal
    resp_output: Signal
    issue_valid: Signal
    issue_ready: Signal
    issue_id: Signal
    issue_dst: Signal
    answer_valid: Signal
    answer_id: Signal
    answer_match: Signal
    answer_output: Signal
    enable: Signal
    hold: Signal
    event: Signal
    invalidate: Signal
    invalidate_key: Signal
    invalidate_done: Signal
    scrub_active: Signal
    flush_wait: Signal
    found: Signal
    missed: Signal

    def __init__(self, *, params: LookupParams, memory: Callable[..., Sram] = Sram):
        second = params.second_level
        if second is None:
            raise ValueError("params must be those of an engine with a second level")
        self.params = p = params
        super().__init__(
            {
                "req_valid": In(1),
                "req_ready": Out(1),
                "req_id": In(p.mshr_id_bits),
                "req_dst": In(p.address_bits),
                "req_key": In(p.key_bits),
                "req_fresh": In(1),
                "fill_id": Out(p.mshr_id_bits),
                "fill_key": In(p.key_bits),
                "fill_fresh": In(1),
                "resp_valid": Out(1),
                "resp_id": Out(p.mshr_id_bits),
                "resp_match": Out(1),
                "resp_output": Out(p.output_bits),
                "issue_valid": Out(1),
                "issue_ready": In(1),
                "issue_id": Out(p.mshr_id_bits),
                "issue_dst": Out(p.address_bits),
                "answer_valid": In(1),
                "answer_id": In(p.mshr_id_bits),
                "answer_match": In(1),
                "answer_output": In(p.output_bits),
                "enable": In(1),
                "hold": In(1),
                "event": In(1),
                "invalidate": In(1),
                "invalidate_key": In(p.key_bits),
                "invalidate_done": Out(1),
                "scrub_active": Out(1),
                "flush_wait": Out(1),
                "found": Out(1),
                "missed": Out(1),
            }
        )
        self.epoch = EpochControl(epoch_bits=p.epoch_bits, rows=second.sets)
        self.cache = PipelinedCache(
            sets=second.sets, ways=second.ways, policy=second.policy, skewed=False, key_bits=p.key_bits,
            tag_bits=p.tag_bits, output_bits=p.output_bits, epoch_bits=p.epoch_bits, seed=p.random_seed, memory=memory,
        )  # fmt: skip
        self.asks = ResponseQueue(places=ASKS, width_bits=p.mshr_id_bits + p.address_bits)
        self.results = ResponseQueue(places=p.mshrs, width_bits=p.mshr_id_bits + 1 + p.output_bits)
        row_bits = self.cache.row_bits
        fields = {
            "fresh": unsigned(1),
            "id": unsigned(p.mshr_id_bits),
            "key": unsigned(p.key_bits),
            "index": unsigned(row_bits),
        }
        request = StructLayout({"valid": unsigned(1), **fields, "dst": unsigned(p.address_bits)})
        self.requests = [
            View(request, Signal(request.size, name=f"request{i}")) for i in range(second.request_registers)
        ]
        fill = StructLayout(
            {"valid": unsigned(1), **fields, "match": unsigned(1), "output": unsigned(p.output_bits)}
        )
        self.fill = View(fill, Signal(fill.size, name="fill"))
        void = StructLayout({"valid": unsigned(1), "key": unsigned(p.key_bits), "index": unsigned(row_bits)})
        self.void = View(void, Signal(void.size, name="void"))
        kinds = {name: unsigned(1) for name in ("lookup", "fill", "invalidate", "scrub")}
        # of a FILL: output, and above it match, in place of the destination
        word = {"dst": unsigned(max(p.address_bits, p.output_bits + 1))}
        operation = StructLayout(kinds | fields | word)
        self.compared = View(operation, Signal(operation.size, name="compared"))
        self.acting = View(operation, Signal(operation.size, name="acting"))
        self.busy_before = Signal()
        self.index_before = Signal(row_bits)
        self.scrubbed_last = Signal()
        self.opened = Signal()
        self.keeps = Signal()  # what F takes may be written
        self.void_nears = Signal()  # an INVALIDATE waits, or comes in this cycle

    def elaborate(self, platform: object) -> Module:
        """Connect queues, choice and cache."""
        m = Module()
        m.submodules.epoch = self.epoch
        m.submodules.cache = self.cache
        m.submodules.asks = self.asks
        m.submodules.results = self.results
        m.d.comb += [
            self.epoch.request.eq(self.event),
            self.scrub_active.eq(self.epoch.active),
            self.flush_wait.eq(self.epoch.flush_wait),
            self.cache.epoch.eq(self.epoch.epoch),
        ]
        self._choose(m)
        self._act(m)
        self._tcam_side(m)
        return m

    def _index_of(self, m: Module, key: Value, name: str) -> Value:
        """Return the row of a key."""
        p, second = self.params, self.params.second_level
        assert second is not None
        if not second.index_bits:
            return Signal(1, name=f"{name}_index")
        masks, constant = crc_matrix(p.crc, p.address_bits)
        m.submodules[f"{name}_row"] = row = CrcHash(
            width_bits=p.address_bits, masks=tuple(masks[: second.index_bits]), constant=constant & (second.sets - 1)
        )
        m.d.comb += row.data.eq(key[: p.address_bits])
        return row.hash

    def _choose(self, m: Module) -> None:
        """R, F and I, the choice among them and the scrubber, and what is read for it."""
        epoch, cache, fill, void = self.epoch, self.cache, self.fill, self.void
        first, second, last = self.compared, self.acting, self.requests[-1]
        held = self.asks.held
        place = Signal()
        scrub_first = Signal()
        scrub = Signal()
        moves = Signal()
        take_lookup, take_fill, take_invalidate, take_scrub = taken = [
            Signal(name=f"take_{kind}") for kind in ("lookup", "fill", "invalidate", "scrub")
        ]
        waits = Signal()
        m.d.comb += [
            self.opened.eq(
                ~Cat(first.fill, first.invalidate, first.scrub, second.fill, second.invalidate, second.scrub).any()
            ),
            place.eq(
                ~(held[3] | (held[2] & (first.lookup | second.lookup)) | (held[1] & first.lookup & second.lookup))
            ),
            waits.eq(last.valid & place),
            scrub_first.eq(epoch.flush_wait & epoch.active & ~self.scrubbed_last),
            scrub.eq(~fill.valid & ~void.valid & epoch.active & (scrub_first | ~waits)),
            take_fill.eq(self.opened & fill.valid),
            take_invalidate.eq(self.opened & ~fill.valid & void.valid),
            take_lookup.eq(self.opened & ~fill.valid & ~void.valid & ~scrub_first & waits),
            take_scrub.eq(self.opened & scrub),
            moves.eq(~last.valid | take_lookup),
            self.void_nears.eq(void.valid | self.invalidate),
            self.req_ready.eq(moves & ~self.void_nears),
            cache.read.eq(Cat(taken).any()),
            cache.read_index.eq(
                Mux(fill.valid, fill.index, Mux(void.valid, void.index, Mux(scrub, epoch.row, last.index)))
            ),
        ]
        with m.If(Cat(taken).any()):
            m.d.sync += self.scrubbed_last.eq(take_scrub)
        m.d.sync += [
            first.lookup.eq(take_lookup),
            first.fill.eq(take_fill),
            first.invalidate.eq(take_invalidate),
            first.scrub.eq(take_scrub),
            first.fresh.eq(Mux(fill.valid, fill.fresh, scrub | last.fresh) & ~epoch.event),
            first.id.eq(Mux(fill.valid, fill.id, last.id)),
            first.key.eq(Mux(fill.valid, fill.key, Mux(void.valid, void.key, last.key))),
            first.index.eq(cache.read_index),
            first.dst.eq(Mux(fill.valid, Cat(fill.output, fill.match), last.dst)),
        ]
        self._move_requests(m, moves)
        with m.If(take_invalidate):
            m.d.sync += void.valid.eq(0)
        with m.If(self.invalidate):
            m.d.sync += void.valid.eq(1)
        with m.If(~void.valid):
            m.d.sync += [
                void.key.eq(self.invalidate_key),
                void.index.eq(self._index_of(m, self.invalidate_key, "invalidate")),
            ]
        self._next_fill(m, take_fill)

    def _move_requests(self, m: Module, moves: Value) -> None:
        entering = View(self.requests[0].shape(), Signal(self.requests[0].shape().size, name="entering"))
        m.d.comb += [
            entering.valid.eq(self.req_valid & self.req_ready),
            entering.fresh.eq(self.req_fresh),
            entering.id.eq(self.req_id),
            entering.key.eq(self.req_key),
            entering.index.eq(self._index_of(m, self.req_key, "request")),
            entering.dst.eq(self.req_dst),
        ]
        for before, here in zip([entering, *self.requests], self.requests, strict=False):
            with m.If(moves):
                m.d.sync += [here.eq(before), here.fresh.eq(before.fresh & ~self.epoch.event)]
            with m.Elif(self.epoch.event):
                m.d.sync += here.fresh.eq(0)

    def _next_fill(self, m: Module, take_fill: Value) -> None:
        """Move the first answer of the TCAM to F."""
        fill, results = self.fill, self.results
        id_bits = self.params.mshr_id_bits
        m.d.comb += [
            results.push.eq(self.answer_valid),
            results.word.eq(
                Cat(
                    self.answer_id,
                    self.answer_output & self.answer_match.replicate(len(self.answer_output)),
                    self.answer_match,
                )
            ),
            results.ready.eq(~fill.valid),
            self.fill_id.eq(results.first[:id_bits]),
            self.keeps.eq(self.fill_fresh & ~self.epoch.event),
        ]
        with m.If(~fill.valid):
            m.d.sync += [
                fill.valid.eq(results.valid),
                fill.fresh.eq(self.keeps),
                fill.id.eq(self.fill_id),
                fill.key.eq(self.fill_key),
                fill.index.eq(self._index_of(m, self.fill_key, "fill")),
                Cat(fill.output, fill.match).eq(results.first[id_bits:]),
            ]
        with m.Else():
            m.d.sync += fill.valid.eq(~take_fill)
            with m.If(self.epoch.event):
                m.d.sync += fill.fresh.eq(0)

    def _act(self, m: Module) -> None:
        """Stages C1 and C2, and the answer register."""
        first, op, cache, epoch = self.compared, self.acting, self.cache, self.epoch
        usable = Signal()
        hit = Signal()
        busy = Signal()
        m.d.sync += [
            *(getattr(op, name).eq(getattr(first, name)) for name in op.shape().members),
            op.fresh.eq(first.fresh & ~epoch.event),
            self.index_before.eq(op.index),
            self.busy_before.eq(busy),
        ]
        output, match = op.dst[: self.params.output_bits], op.dst[self.params.output_bits]
        m.d.comb += [
            usable.eq(self.enable & ~epoch.flush_wait & op.fresh),
            hit.eq(cache.present & usable),
            busy.eq(op.lookup | op.fill | op.invalidate | op.scrub),
            *cache.works_on(
                first, op, busy=busy, before=(self.index_before, self.busy_before), usable=usable,
                fill=op.fill & usable & match, output=output,
            ),
            epoch.scrubbed.eq(op.scrub & op.fresh),
            self.invalidate_done.eq(op.invalidate),
            self.found.eq(op.lookup & hit),
            self.missed.eq(op.lookup & ~hit),
            self.asks.push.eq(self.missed),
            self.asks.word.eq(Cat(op.id, op.dst[: self.params.address_bits])),
        ]
        m.d.sync += [
            self.resp_valid.eq(self.found | op.fill),
            self.resp_id.eq(op.id),
            self.resp_match.eq(op.lookup | match),
            self.resp_output.eq(Mux(op.lookup, cache.output, output)),
        ]

    def _tcam_side(self, m: Module) -> None:
        m.d.comb += [
            self.issue_valid.eq(self.asks.valid & ~self.hold),
            self.asks.ready.eq(self.issue_ready & ~self.hold),
            Cat(self.issue_id, self.issue_dst).eq(self.asks.first),
        ]
