"""Proofs about the choice between the input ports that share a lookup engine (docs/definitions/router.md).

The engine is free: it accepts when it likes, and answers with any tag. For 2 and 4 members, in every cycle:

- *No loss*: the engine sees a request exactly if a member asks; it is that of one member, whole, with the member's
  number in its tag; only that member sees it accepted. A response goes to the member and the VC of its tag, whole, and
  to nobody else, and is never held up.
- *Fair*: while a member asks, at most K − 1 requests of others are accepted before its own.

By induction over one cycle, with the invariant (requests of others accepted since it asks) + (steps from the pointer to
it) < K. The mutants are faults with which the proofs must fail.
"""

from collections.abc import Iterator
from typing import Any

from amaranth.hdl import Assume, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring

from hopforge.gen.formal.induction import Proof, prove
from hopforge.hw.lookup.base import lookup_ports
from hopforge.hw.ports.shared_lookup import SharedLookup
from hopforge.model.lookup.params import LookupParams
from hopforge.model.router.params import RouterParams

__all__ = ["SHARING_MUTANTS", "AnyEngine", "prove_sharing"]

SHARING_MUTANTS = {
    "the pointer stays": ("dut.turn.advance", "1'b0"),
    "every response is for member 0": ("dut.member__0__resp_valid", "1'b1"),
    "requests name the wrong member": ("dut.req_tag", "4'b0000"),
    "a request is taken from two members": ("dut.turn.grant", "4'b0011"),
}
"""Faults of a shared engine of 4 ports and 3 VCs: (wire of the flattened proof, what it is tied to)."""

_VCS = 3


class AnyEngine(wiring.Component):
    """Ports of an engine; what it shows is up to the proof."""

    def __init__(self, *, params: LookupParams):
        super().__init__(lookup_ports(params))
        self.shown = {
            name: Signal(len(Value.cast(getattr(self, name))), name=f"any_{name}")
            for name, member in self.signature.members.items()
            if member.flow is wiring.Out
        }

    def elaborate(self, platform: object) -> Module:
        """Show anything."""
        m = Module()
        m.d.comb += [getattr(self, name).eq(word) for name, word in self.shown.items()]
        return m


class _SharingProof(Proof):
    def __init__(self, members: int) -> None:
        super().__init__()
        lookup = LookupParams(
            address_bits=12, functions=("arbitrary",), chunk_bits=(3,), comparators=2, entries=4, ways=2, tag_bits=16,
            output_bits=10, request_tag_bits=4, tcam_kind="external",
        )  # fmt: skip
        params = RouterParams(
            ports=members, vcs=_VCS, buffer_flits=2, rc="lookup", address_bits=12, width_bits=32, tag_bits=2,
            lookup=lookup, ports_per_engine=2 if members == 2 else 4,
        )  # fmt: skip
        self.engine = AnyEngine(params=lookup)
        self.dut = SharedLookup(params=params, members=members, engine=lambda params: self.engine)
        self.inputs += [*self.engine.shown.values()]
        for member in self.dut.member:
            self.inputs += [member.req_valid, member.req_dst, member.req_tag]

    def elaborate(self, platform: object) -> Module:
        """Build the choice and the claims."""
        m = self.module()
        m.submodules.dut = self.dut
        for member in self.dut.member:
            m.d.comb += [Assume(member.req_tag < _VCS), member.resp_ready.eq(1)]
        self.claim(m, self._claims(m))
        return m

    def _claims(self, m: Module) -> Iterator[Value]:
        engine: Any = self.engine
        members = self.dut.member
        count = len(members)
        accepted = Cat(member.req_valid & member.req_ready for member in members)
        yield engine.req_valid == Cat(member.req_valid for member in members).any()
        yield engine.resp_ready == 1
        yield (engine.req_valid & engine.req_ready) == accepted.any()
        pointer = Signal(range(count))  # of the definition
        for number, member in enumerate(members):
            yield ~accepted[number] | (engine.req_dst == member.req_dst)
            yield ~accepted[number] | (engine.req_tag == Cat(member.req_tag, Const(number, 2)))
            yield ~accepted[number] | (accepted == 1 << number)
            mine = engine.resp_tag[2:] == number
            yield member.resp_valid == (engine.resp_valid & mine)
            yield (member.resp_tag == engine.resp_tag[:2]) & (member.resp_output == engine.resp_output)
            yield member.resp_match == engine.resp_match
            passed = Signal(range(count + 1), name=f"passed{number}")
            asks = member.req_valid
            m.d.sync += passed.eq(Mux(asks & ~accepted[number], passed + accepted.any(), 0))
            distance = (number - pointer)[: len(pointer)]  # modulo a power of two
            yield passed + distance < count
            with m.If(accepted[number]):
                m.d.sync += pointer.eq(number + 1)
        # the thermometer code of the hardware says where the pointer is; no bit is the same as all
        code = self.dut.turn.at_or_after
        yield (code == ~((1 << pointer) - 1)[:count]) | ((pointer == 0) & (code == 0))


def prove_sharing(members: int, *, mutant: str | None = None, timeout_s: float = 120) -> bool:
    """Prove that `members` input ports (2 or 4) share an engine fairly and without loss.

    Parameters
    ----------
    members : int
        Input ports.
    mutant : str, optional
        Key of `SHARING_MUTANTS` (4 members): a fault with which the proof must fail.
    timeout_s : float
        Limit in seconds.

    Returns
    -------
    bool
        Whether the proof succeeded.
    """
    proof = _SharingProof(members)
    fault = SHARING_MUTANTS[mutant] if mutant else None
    return prove(proof, proof.inputs, mutant=fault, timeout_s=timeout_s)
