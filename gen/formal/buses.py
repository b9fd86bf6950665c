"""Proofs that the bridges keep the rules of their buses, whatever master and registers do.

All buses: an answer is given once, to an access that was asked for. AXI4-Lite: ``bvalid`` and ``rvalid`` stay until
their ready, with the same response and data; no response without an address (and, for a write, without data) before
it; at most two accesses of a kind are on their way. APB: ``pready`` only in an access phase that a setup phase began,
``prdata`` and ``pslverr`` with it. Wishbone: ``ack`` and ``err`` never together, and only while ``cyc`` and ``stb``
are high; none directly behind another. Native bus: never a read and a write at once, and a write only for a write.

Mutants are faults with which a proof must fail: (wire of the flattened proof, what it is tied to).
"""

from collections.abc import Iterator
from typing import Any

from amaranth.hdl import Assume, Module, Mux, Signal, Value
from amaranth.lib import wiring

from hopforge.gen.formal.induction import Proof, prove
from hopforge.hw.buses.on_bus import BRIDGES
from hopforge.hw.buses.register_access import RegisterAccess
from hopforge.model.lookup.csr import CsrMap, Field, Register
from hopforge.model.router.bus_space import AddressSpace, Window

__all__ = ["BUS_MUTANTS", "prove_bus"]

BUS_MUTANTS = {
    "a response does not wait for ready": ("axi4_lite", "bridge.access__resp_ready", "1'b1"),
    "a write does not wait for its data": ("axi4_lite", "bridge.has_data", "1'b1"),
    "ready for an address that there is no room for": ("axi4_lite", "bridge.awready", "1'b1"),
    "a read is answered as a write": ("axi4_lite", "bridge.bvalid", "1'b1"),
    "ready before the access is done": ("apb", "bridge.pready", "1'b1"),
    "an error without an end": ("apb", "access.access__resp_missing", "1'b1"),
    "a setup phase is not seen": ("apb", "bridge.access__req_valid", "1'b0"),
    "an answer to a cycle that is over": ("wishbone", "bridge.asked", "1'b1"),
    "an answer to a cycle that was given up": ("wishbone", "bridge.wanted", "1'b1"),
    "an acknowledgement with every error": ("wishbone", "bridge.ack", "1'b1"),
}
"""Bus, wire and constant of each fault."""

_MAP = CsrMap(
    tuple(
        Register(name=name, address=address, fields=(Field(name="value", lsb=0, width=16, access=access),))  # type: ignore[arg-type]
        for address, (name, access) in enumerate((("KEPT", "rw"), ("ORDER", "wo"), ("EVENT", "ro")))
    )
)


class _BusProof(Proof):
    """A bridge and the access behind it; registers answer anything."""

    def __init__(self, bus: str) -> None:
        super().__init__()
        space = AddressSpace(3, (Window(name="", page=0, page_bits=2, registers=_MAP),), ("drop",))
        self.bus = bus
        self.bridge: Any = BRIDGES[bus][1](space=space)
        self.access = RegisterAccess(space=space)
        ports = [port for path, member, port in self.bridge.signature.flatten(self.bridge)
                 if path[0] != "access" and member.flow is wiring.In]  # fmt: skip
        self.inputs += [*map(Value.cast, ports), self.access.rdata, self.access.disturbed]

    def elaborate(self, platform: object) -> Module:
        m = self.module()
        m.submodules.bridge, m.submodules.access = self.bridge, self.access
        wiring.connect(m, self.bridge.access, self.access.access)
        claims = {"axi4_lite": self._axi, "apb": self._apb, "wishbone": self._wishbone}[self.bus](m)
        self.claim(m, [*claims, *self._native()])
        return m

    def _native(self) -> Iterator[Value]:
        access = self.access
        yield ~(access.re & access.we)
        yield ~access.we | access.write
        yield access.state <= 5
        answer = access.access
        yield ~(answer.resp_missing & answer.resp_refused)
        yield ~(answer.resp_missing | answer.resp_refused) | (access.state == 0) | (access.state == 5)

    def _axi(self, m: Module) -> Iterator[Value]:
        b = self.bridge
        sizes = {name: Signal(2, name=name) for name in ("owed_write", "owed_data", "owed_read")}
        for name, taken, answered in (
            ("owed_write", b.awvalid & b.awready, b.bvalid & b.bready),
            ("owed_data", b.wvalid & b.wready, b.bvalid & b.bready),
            ("owed_read", b.arvalid & b.arready, b.rvalid & b.rready),
        ):
            m.d.sync += sizes[name].eq(sizes[name] + taken - answered)
        writing, reading = b.busy & b.serves_write, b.busy & ~b.serves_write
        yield sizes["owed_write"] == b.has_address + writing
        yield sizes["owed_data"] == b.has_data + writing
        yield sizes["owed_read"] == b.has_read + reading
        yield b.busy == (self.access.state != 0)
        yield ~b.busy | (self.access.write == b.serves_write)
        yield ~b.bvalid | ((sizes["owed_write"] != 0) & (sizes["owed_data"] != 0))
        yield ~b.rvalid | (sizes["owed_read"] != 0)
        for valid, ready, held in ((b.bvalid, b.bready, (b.bresp,)), (b.rvalid, b.rready, (b.rresp, b.rdata))):
            waited = Signal(name=f"waited_{valid.name}")
            m.d.sync += waited.eq(valid & ~ready)
            yield ~waited | valid
            for value in held:
                before = Signal.like(value, name=f"before_{valid.name}_{value.name}")
                m.d.sync += before.eq(value)
                yield ~waited | (before == value)

    def _apb(self, m: Module) -> Iterator[Value]:
        b = self.bridge
        setup = Signal()  # the cycle before was a setup phase, or an access phase that goes on
        held = [Signal.like(Value.cast(port), name=f"before_{port.name}")
                for port in (b.paddr, b.pwrite, b.pwdata, b.pstrb)]  # fmt: skip
        now = (b.paddr, b.pwrite, b.pwdata, b.pstrb)
        m.d.sync += [setup.eq(b.psel & ~(b.penable & b.pready)), *(x.eq(y) for x, y in zip(held, now, strict=True))]
        m.d.comb += [  # what a master does: setup, then access until ready, and all of it stable
            Assume(b.penable == setup),
            Assume(~setup | b.psel),
            *(Assume(~setup | (x == y)) for x, y in zip(held, now, strict=True)),
        ]
        busy = self.access.state != 0
        yield busy == setup
        yield ~b.pready | (b.psel & b.penable)
        yield ~b.pslverr | b.pready
        yield ~setup | (self.access.write == held[1])

    def _wishbone(self, m: Module) -> Iterator[Value]:
        b = self.bridge
        asked, answer = b.cyc & b.stb, b.ack | b.err
        state = self.access.state
        behind = Signal()
        begun = Signal()
        m.d.sync += [behind.eq(answer), begun.eq(Mux(answer | ~asked, 0, begun | (state == 0)))]
        yield ~(b.ack & b.err)
        yield ~answer | asked
        yield ~(answer & behind)
        yield ~answer | begun  # since the cycle began, an access has begun
        yield ~begun | (state != 0)
        yield begun == (b.wanted & (state != 0))


def prove_bus(bus: str, *, mutant: str | None = None) -> bool:
    """Prove the rules of a bus.

    Parameters
    ----------
    bus : str
        One of `hopforge.hw.buses.on_bus.BRIDGES`.
    mutant : str, optional
        Key of `BUS_MUTANTS`, whose bus it must be.

    Returns
    -------
    bool
        Whether the proof succeeded.

    Raises
    ------
    YosysError
        If yosys fails otherwise, or takes too long.
    """
    proof = _BusProof(bus)
    return prove(proof, proof.inputs, steps=3, mutant=BUS_MUTANTS[mutant][1:] if mutant else None)
