"""A lookup engine with a source of requests and counters of its answers, for a board."""

from collections.abc import Mapping

from amaranth.hdl import Cat, Module, Mux, Signal, Value

from hopforge.hw.boards.on_board import OnBoard
from hopforge.hw.lookup.engine import lookup_engine
from hopforge.hw.parts.sram import LateSram
from hopforge.hw.parts.xorshift import next_word
from hopforge.model.board.registers import BoardIdentity
from hopforge.model.lookup.csr import CSR_ADDR_BITS, WORD_BITS
from hopforge.model.lookup.params import LookupParams

__all__ = ["EngineOnBoard"]

_COUNTERS = ("SENT", "ANSWERED", "MATCHED", "HITS", "CHECKSUM")


class EngineOnBoard(OnBoard):
    """Design "engine" of docs/definitions/board-protocol.md.

    The memories of the engine are taken to be block RAMs (`LateSram`). Reset: no request under way.

    Parameters
    ----------
    params : LookupParams
        The engine, its TCAM inside.
    identity : BoardIdentity
        What the board says that it is.

    Raises
    ------
    ValueError
        A TCAM outside.
    """

    def __init__(self, *, params: LookupParams, identity: BoardIdentity):
        if params.tcam_kind == "external":
            raise ValueError("tcam_kind must be flops or sram on a board, not external")
        self.params = params
        self.engine = lookup_engine(params=params, memory=LateSram)
        super().__init__(identity=identity, bus_bits=CSR_ADDR_BITS)
        self.left = Signal(WORD_BITS)
        self.word = Signal(WORD_BITS)
        self.tag = Signal(params.request_tag_bits)
        self.open = Signal(16)  # requests under way: the engine holds far fewer
        self.by_host = Signal()

    @property
    def inner_rdata(self) -> Value:
        """Word of the engine's bus."""
        return self.engine.csr_rdata

    def design(self, m: Module, platform: object) -> Mapping[str, Value]:
        """Build engine, source and counters."""
        m.submodules.engine = engine = self.engine
        m.d.comb += [
            engine.csr_addr.eq(self.addr),
            engine.csr_wdata.eq(self.wdata),
            engine.csr_we.eq(self.inner_we),
            engine.csr_re.eq(self.inner_re),
        ]
        return {**self._source(m), **self._answers(m)}

    def _source(self, m: Module) -> Mapping[str, Value]:
        """Offer requests while there are some left; they are taken when the engine is ready."""
        engine, kept = self.engine, self.kept
        taken, last = Signal(), Signal()
        asks = Signal()
        sent = Signal(WORD_BITS)
        seed = kept["SEED"]
        mask = Cat(kept["MASK_LO"], kept["MASK_HI"])
        dst = Cat(kept["DST_LO"], kept["DST_HI"])
        m.d.comb += [
            engine.req_valid.eq(asks),
            engine.req_tag.eq(self.tag),
            engine.req_dst.eq(Mux(self.by_host, dst, Cat(self.word, self.word) & mask)),
            taken.eq(asks & engine.req_ready),
            last.eq(self.left == 1),
            self.running.eq(asks | (self.open != 0)),
            self.counting.eq(self.running),
        ]
        with m.If(self.start):
            m.d.sync += [
                asks.eq(kept["COUNT"] != 0), self.left.eq(kept["COUNT"]), self.tag.eq(0), self.by_host.eq(0),
                self.word.eq(Mux(seed == 0, 1, seed)), sent.eq(0),
            ]  # fmt: skip
        with m.Elif(taken):
            m.d.sync += [
                asks.eq(~last), self.left.eq(self.left - 1), self.tag.eq(self.tag + 1),
                self.word.eq(next_word(self.word)), sent.eq(sent + 1),
            ]  # fmt: skip
        self.asks, self.taken = asks, taken
        return {"SENT": sent}

    def _answers(self, m: Module) -> Mapping[str, Value]:
        """Count answers, a cycle after they are taken."""
        engine, p = self.engine, self.params
        came = Signal()
        answer = Signal(WORD_BITS)
        counts = {name: Signal(WORD_BITS, name=name.lower()) for name in _COUNTERS[1:]}
        m.d.comb += [engine.resp_ready.eq(1), self.refused.eq(engine.resp_valid & (self.open == 0))]
        m.d.sync += [
            came.eq(engine.resp_valid),
            self.open.eq(self.open + self.taken - engine.resp_valid),
        ]
        with m.If(engine.resp_valid):
            m.d.sync += [
                answer[:16].eq(engine.resp_output[: min(16, p.output_bits)]),
                answer[16:24].eq(engine.resp_tag[:8]),
                answer[30].eq(engine.resp_match),
                answer[31].eq(engine.resp_hit),
            ]
        before = counts["CHECKSUM"]
        with m.If(self.start):
            m.d.sync += [count.eq(0) for count in counts.values()]
        with m.Elif(came):
            m.d.sync += [
                counts["ANSWERED"].eq(counts["ANSWERED"] + 1),
                counts["MATCHED"].eq(counts["MATCHED"] + answer[30]),
                counts["HITS"].eq(counts["HITS"] + answer[31]),
                before.eq(before.rotate_left(1) ^ answer),
            ]
        return {**counts, "ANSWER": answer}

    def written(self, m: Module, writes: Mapping[str, Value]) -> None:
        """Ask for a destination of the host's."""
        with m.If(writes["DST_LO"] & ~self.running):
            m.d.sync += [self.asks.eq(1), self.left.eq(1), self.tag.eq(0), self.by_host.eq(1)]
