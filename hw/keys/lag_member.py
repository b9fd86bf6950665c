"""Link-aggregation member of any destination, for rows of the TCAM that ask for it."""

from dataclasses import replace

from amaranth.hdl import Const, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hopforge.hw.keys.reduction_compare import ReductionCompare
from hopforge.hw.keys.reduction_parameters import ReductionParameters
from hopforge.hw.keys.reduction_select import ReductionSelect
from hopforge.hw.keys.reduction_setup import ReductionSetup
from hopforge.model.lookup.params import MEMBER_BITS


class LagMember(wiring.Component):
    """Member = CRC(d) mod m or d mod m, whatever the mode of the keys is.

    It is the member part of a key, made by the same circuits with a single mode built (the rest of them drives
    nothing and disappears in synthesis). ``members`` and ``member_hash`` are shadows of the control registers; they
    pass a register here as they do for the keys. Combinational from ``dst`` to ``member``.

    Parameters
    ----------
    reduction : ReductionParameters
        Node reduction of the engine, with more than one member.
    loaded : bool
        The register takes the shadows in cycles with ``load`` only (deep engines).

    Raises
    ------
    ValueError
        At most one member.
    """

    dst: Signal
    members: Signal
    member_hash: Signal
    member: Signal
    load: Signal

    def __init__(self, *, reduction: ReductionParameters, loaded: bool = False):
        if reduction.max_members < 2:
            raise ValueError(f"max_members must be at least 2, not {reduction.max_members}")
        self.parameters = replace(
            reduction, functions=("mesh",), chunk_bits=reduction.chunk_bits[:1], comparators=1, expression=None
        )
        self.loaded = loaded
        ports = {
            "dst": In(reduction.address_bits),
            "members": In(5),
            "member_hash": In(1),
            "member": Out(MEMBER_BITS),
        }
        super().__init__(ports | ({"load": In(1)} if loaded else {}))

    def elaborate(self, platform: object) -> Module:
        """Connect setup, register and the two stages of the reduction."""
        m = Module()
        p = self.parameters
        m.submodules.setup = setup = ReductionSetup(p)
        m.submodules.compare = compare = ReductionCompare(p)
        m.submodules.select = select = ReductionSelect(p)
        m.d.comb += [
            setup.shadow.members.eq(self.members),
            setup.shadow.member_hash.eq(self.member_hash),
            compare.dst.eq(self.dst),
            select.partial.eq(compare.partial),
            self.member.eq(select.payload[-MEMBER_BITS:]),
        ]
        with m.If(self.load if self.loaded else Const(1, 1)):
            m.d.sync += compare.active.eq(setup.active)
        return m
