"""One access after the other to the registers: what all standard buses have in common."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import enum, wiring
from amaranth.lib.wiring import In, Out

from hopforge.model.lookup.csr import WORD_BITS, Register
from hopforge.model.router.bus_space import AddressSpace, Window
from hopforge.model.router.partial_write import BYTES, can_be_partial, writable_bytes

__all__ = ["ATTEMPTS", "RegisterAccess", "access_signature"]

ATTEMPTS = 8
"""Times that a partial write reads its register before it is refused."""


class _State(enum.Enum):
    IDLE = 0
    DECIDE = 1
    READ = 2
    TAKE = 3
    WRITE = 4
    RESPOND = 5


def access_signature(addr_bits: int) -> wiring.Signature:
    """Return accesses and their answers, seen from the bus; word addresses."""
    return wiring.Signature(
        {
            "req_valid": Out(1),
            "req_ready": In(1),
            "req_write": Out(1),
            "req_addr": Out(addr_bits),
            "req_data": Out(WORD_BITS),
            "req_strobes": Out(BYTES),
            "resp_valid": In(1),
            "resp_ready": Out(1),
            "resp_data": In(WORD_BITS),
            "resp_missing": In(1),
            "resp_refused": In(1),
        }
    )


class RegisterAccess(wiring.Component):
    """Does accesses on the native bus, with the bytes that are to be written, and answers each.

    Definition: docs/definitions/register-buses.md. One access at a time: the next one is accepted in the cycle after
    its answer was taken. Accepted in cycle t, a read is answered from t + 3 + `read_cycles` on, a write from t + 3,
    a partial write that reads first from t + 4 + `read_cycles`, all others from t + 2; the answer is held until
    ``resp_ready``. Reset: no access.

    - ``access``: requests and answers.
    - ``addr`` to ``rdata``: native bus, master; ``rdata`` is valid `read_cycles` after ``re``.
    - ``disturbed``: the hardware is about to change contents that writes change; a partial write reads them again.

    Parameters
    ----------
    space : AddressSpace
        What there is.
    read_cycles : int
        Latency of a read on the native bus, at least 1.

    Raises
    ------
    ValueError
        A latency below 1.
    """

    access: Any
    addr: Signal
    we: Signal
    re: Signal
    wdata: Signal
    rdata: Signal
    disturbed: Signal

    def __init__(self, *, space: AddressSpace, read_cycles: int = 1):
        if read_cycles < 1:
            raise ValueError(f"read_cycles must be at least 1, not {read_cycles}")
        self.space = space
        self.read_cycles = read_cycles
        super().__init__(
            {
                "access": In(access_signature(space.word_bits)),
                "addr": Out(space.word_bits),
                "we": Out(1),
                "re": Out(1),
                "wdata": Out(WORD_BITS),
                "rdata": In(WORD_BITS),
                "disturbed": In(1),
            }
        )
        self.state = Signal(_State)
        self.write = Signal()

    def elaborate(self, platform: object) -> Module:
        """Build decoder and sequence."""
        m = Module()
        self._strobes, self._data = Signal(BYTES, name="strobes"), Signal(WORD_BITS, name="data")
        self._needed, self._kept = Signal(BYTES, name="needed"), Signal(WORD_BITS, name="kept")
        self._known, self._divisible = Signal(name="known"), Signal(name="divisible")
        for window in (*self.space.windows, self.space.interrupts):
            self._decode(m, window)
        self._sequence(m)
        m.d.comb += [
            self.access.req_ready.eq(self.state == _State.IDLE),
            self.access.resp_valid.eq(self.state == _State.RESPOND),
            self.access.resp_data.eq(Mux(self.write, 0, self._data)),
            self.wdata.eq(self._data),
        ]
        return m

    def _decode(self, m: Module, window: Window) -> None:
        """Say of the address whether it is in the window, and what can be written there."""
        page, pages = self.addr[window.page_bits :], window.pages or 1
        here = Signal(name=f"in_{window.name.lower() or 'own'}_{window.page}")
        m.d.comb += here.eq((page >= window.page) & (page < window.page + pages))
        with m.If(here), m.Switch(self.addr[: window.page_bits]):
            for register in window.registers:
                with m.Case(register.address):
                    m.d.comb += self._plan(register, readable=window.readable)

    def _plan(self, register: Register, *, readable: bool) -> list[Value]:
        return [
            self._known.eq(1),
            self._needed.eq(writable_bytes(register)),
            self._kept.eq(register.write_mask),
            self._divisible.eq(can_be_partial(register, readable=readable)),
        ]

    def _sequence(self, m: Module) -> None:
        state, access = self.state, self.access
        stale = Signal()
        attempt = Signal(range(ATTEMPTS))
        left = Signal(range(self.read_cycles + 1))
        covered = (self._needed & ~self._strobes) == 0
        with m.Switch(state):
            with m.Case(_State.IDLE):
                m.d.sync += [
                    self.addr.eq(access.req_addr),
                    self.write.eq(access.req_write),
                    self._strobes.eq(access.req_strobes),
                    self._data.eq(access.req_data & self._bits(access.req_strobes)),
                    access.resp_missing.eq(0),
                    access.resp_refused.eq(0),
                    attempt.eq(0),
                ]
                with m.If(access.req_valid):
                    m.d.sync += state.eq(_State.DECIDE)
            with m.Case(_State.DECIDE):
                with m.If(~self._known):
                    m.d.sync += [access.resp_missing.eq(1), self._data.eq(0), state.eq(_State.RESPOND)]
                with m.Elif(~self.write):
                    m.d.sync += state.eq(_State.READ)
                with m.Elif((self._needed & self._strobes) == 0):
                    m.d.sync += state.eq(_State.RESPOND)
                with m.Elif(covered):
                    m.d.sync += state.eq(_State.WRITE)
                with m.Elif(self._divisible):
                    m.d.sync += state.eq(_State.READ)
                with m.Else():
                    m.d.sync += [access.resp_refused.eq(1), state.eq(_State.RESPOND)]
            with m.Case(_State.READ):
                m.d.comb += self.re.eq(1)
                m.d.sync += [stale.eq(self.disturbed), left.eq(self.read_cycles - 1), state.eq(_State.TAKE)]
            with m.Case(_State.TAKE):
                m.d.sync += [stale.eq(stale | self.disturbed), left.eq(left - 1)]
                with m.If(left == 0):
                    merged = (self._data & self._bits(self._strobes)) | (
                        self.rdata & self._kept & ~self._bits(self._strobes)
                    )
                    m.d.sync += [
                        self._data.eq(Mux(self.write, merged, self.rdata)),
                        state.eq(Mux(self.write, _State.WRITE, _State.RESPOND)),
                    ]
            with m.Case(_State.WRITE):
                with m.If(covered | ~stale):
                    m.d.comb += self.we.eq(1)
                    m.d.sync += state.eq(_State.RESPOND)
                with m.Elif(attempt == ATTEMPTS - 1):
                    m.d.sync += [access.resp_refused.eq(1), state.eq(_State.RESPOND)]
                with m.Else():
                    m.d.sync += [attempt.eq(attempt + 1), state.eq(_State.READ)]
            with m.Case(_State.RESPOND), m.If(access.resp_ready):
                m.d.sync += state.eq(_State.IDLE)

    @staticmethod
    def _bits(strobes: Value) -> Value:
        """Return the bits of the bytes with strobes."""
        return Cat(strobes[byte].replicate(8) for byte in range(BYTES))
