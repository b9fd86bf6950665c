"""Section `energy`: what the parts of a switch cost beside its lookups (those: section `timing`)."""

from typing import Annotated

from pydantic import Field

from hopforge.model.config.base import Section

NonNegative = Annotated[float, Field(ge=0)]


class EnergyConfig(Section):
    """Energies and areas of the parts of a switch, 45 nm (docs/guides/energy.md tells where the values are from)."""

    buffer_pj_per_bit: NonNegative = 0.0197
    """A bit written into a flit buffer, or read (CACTI 7: RAM of 64 lines of 96 bits, 1.887 pJ a read)."""
    crossbar_pj_per_bit: NonNegative = 0.0103
    """A bit through the crossbar, for each output port that its input fans out to (own synthesis)."""
    vc_allocation_pj: NonNegative = 0.33
    """VC allocation of a packet, for each of the ports × VCs that ask (own synthesis)."""
    switch_allocation_pj: NonNegative = 0.061
    """Switch allocation of a flit, for each of the ports × VCs that ask (own synthesis)."""
    logic_mw_per_mm2: NonNegative = 25.0
    """Leakage of standard cells (own synthesis)."""
    sram_mw_per_kib: NonNegative = 0.54
    """Static power of flit buffers (seed 004: 13 mW for a cache of 24 KiB)."""
    buffer_um2_per_bit: NonNegative = 0.553
    """Flit buffers as memories (CACTI 7: 3400 µm² for 64 lines of 96 bits)."""
    latch_um2_per_bit: NonNegative = 2.66
    """Flit buffers as latches, `router.flit_buffers: latches` (own synthesis)."""
    flip_flop_um2_per_bit: NonNegative = 4.9
    """Flit buffers as flip-flops, `router.flit_buffers: flip_flops` (own synthesis of three routers)."""
    crossbar_um2_per_bit: NonNegative = 2.98
    """Crossbar, for each bit, input and output port (own synthesis: 5061 µm² for 5 ports of 68 bits)."""
    vc_allocator_um2: NonNegative = 24.2
    """VC allocator, for each pair of an input and an output VC (own synthesis: 9681 µm² for 5 ports of 4 VCs)."""
    switch_allocator_um2: NonNegative = 7.5
    """Switch allocator, for each pair of ports (of `input_first`; fitted to own synthesis of nine sizes)."""
    switch_allocator_vc_um2: NonNegative = 10.0
    """Switch allocator, for each pair of ports and each VC (fitted likewise)."""
    port_um2: NonNegative = 3300.0
    """Control of the two sides of a port: what else is in a router (own synthesis: 46 941 µm² in all)."""
    engine_um2: NonNegative = 22901.0
    """Lookup engine of a port without its memories (own synthesis)."""
    cache_um2_per_byte: NonNegative = 5.18
    """Memory of a cache (CACTI 7: 0.127 mm² for 24 KiB in 4 ways), 12 bytes an entry."""
    tcam_um2_per_row: NonNegative = 659.0
    """TCAM in the switch (own synthesis: 42 195 µm² for 64 rows of flip-flops); none if `lookup.tcam.kind` is
    `external`."""
