"""Node reduction: destination address and own position to the key of the routing cache.

Three combinational components, with registers of the engine between them (`hopforge.hw.keys.reduction_parameters`:
what is built):

``ReductionSetup`` (`hopforge.hw.keys.reduction_setup`)
    what the control registers hold (*shadow*) → what the comparators need (*active*), one register stage later;
``ReductionCompare`` (stage A1, `hopforge.hw.keys.reduction_compare`)
    destination and active registers → the decisions and the candidates for the key (*partial*);
``ReductionSelect`` (stage A2, `hopforge.hw.keys.reduction_select`)
    partial → key and payload.

``NodeReduction`` is the two last ones in a row, for a single stage.

Mesh and torus use interval comparators: plus is the cyclic interval (c, c + ⌊k/2⌋] of digits, given by two registers
c and t and the bit ``wrap`` (docs/definitions/lookup-engine.md,
"Configuration registers"). Only the destination is late, everything else comes from registers. The comparators are
segments of one tree over the bits of the whole address: the
results for chunks of 2 bits are combined to those for 4 and 8, those for 3 to those for 6, so that the run-time chunk
width selects between results, not between digits.
"""

from amaranth.hdl import Module, Signal
from amaranth.lib.data import View
from amaranth.lib.wiring import Component, In, Out

from hopforge.hw.keys.reduction_compare import ReductionCompare
from hopforge.hw.keys.reduction_parameters import ReductionParameters
from hopforge.hw.keys.reduction_select import ReductionSelect

__all__ = ["NodeReduction"]


class NodeReduction(Component):
    """Destination to cache key: `ReductionCompare` and `ReductionSelect`, with or without a register between them.

    Latency 0 without, 1 cycle with the register; one key per cycle, never stalls. The register has no reset value that
    matters: a key is used only with a valid bit that its user carries beside it.

    Parameters
    ----------
    parameters : ReductionParameters
        What is built.
    registered : bool
        Whether a register divides it into two stages.
    """

    dst: Signal
    active: View
    key: Signal
    payload: Signal

    def __init__(self, parameters: ReductionParameters, *, registered: bool = False) -> None:
        self.parameters = parameters
        self.registered = registered
        super().__init__(
            {
                "dst": In(parameters.address_bits),
                "active": In(parameters.active_layout),
                "key": Out(parameters.key_bits),
                "payload": Out(parameters.address_bits),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Connect the two halves."""
        m = Module()
        m.submodules.compare = compare = ReductionCompare(self.parameters)
        m.submodules.select = select = ReductionSelect(self.parameters)
        m.d.comb += [
            compare.dst.eq(self.dst),
            compare.active.eq(self.active),
            self.key.eq(select.key),
            self.payload.eq(select.payload),
        ]
        if self.registered:
            between = Signal(self.parameters.partial_layout, reset_less=True)
            m.d.sync += between.eq(compare.partial)
            m.d.comb += select.partial.eq(between)
        else:
            m.d.comb += select.partial.eq(compare.partial)
        return m
