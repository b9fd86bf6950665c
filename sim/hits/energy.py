"""Area of a switch and energy of what goes through it: lookups, buffers, crossbar, allocators (docs/guides/energy.md).

The baseline is the same switch without caches, whose one TCAM answers every packet (seed 004, section 4.4.1).
"""

from dataclasses import dataclass

from hopforge.model.config import Config
from hopforge.sim.hits.analytic import LookupPowers, lookup_energy

#: bytes of a line of the routing cache (spec/lookup.md)
LINE_BYTES = 12
#: queues at a port of a packet router: adaptive, to an intermediate destination, to the destination
PACKET_QUEUES = 3
#: bits of a flit beside its data: head, tail, VC
FLIT_CONTROL_BITS = 4
#: a VC allocator by wavefront beside separable ones (own synthesis of six sizes: 1.40 to 1.98)
WAVEFRONT_VC = 1.7
#: µm² of a switch allocator for each pair of ports (own synthesis): of a plain one, for each VC; more of one whose
#: outputs grant first; by wavefront; for each further iteration
PLAIN_SWITCH_UM2, SWITCH_VC_UM2 = 7.5, 10.0
OUTPUT_FIRST_SWITCH_UM2 = 16.0
WAVEFRONT_SWITCH_UM2 = 18.5
ITERATION_SWITCH_UM2 = 22.0
#: those that make several iterations in hardware
_ITERATED = ("output_first", "islip")
#: allocators that no part in hardware has: counted as separable ones of one iteration
NOT_IN_HARDWARE = ("rr_wavefront", "max_size", "loa", "pim", "input_first_ports")


@dataclass(frozen=True)
class Traffic:
    """What went through all switches together.

    Attributes
    ----------
    seconds : float
        How long.
    packets, flits : float
        Visits of a packet, of a flit, to a switch.
    tcam_share : float
        Share of the lookups that ask the TCAM, with caches.
    """

    seconds: float
    packets: float
    flits: float
    tcam_share: float


@dataclass(frozen=True)
class SwitchShape:
    """Size of a switch.

    Attributes
    ----------
    ports, vcs, flits, bits : int
        Ports; virtual channels of each; flits of each; bits of data of a flit.
    output_flits : int
        Flits of the queue of each output VC (input-output-queued switches); 0: there is none.
    grant_flits : int
        Flits that follow a grant of the switch allocator: those of a whole packet in switches of packets.
    """

    ports: int
    vcs: int
    flits: int
    bits: int
    output_flits: int = 0
    grant_flits: int = 1

    @property
    def word(self) -> int:
        """Bits of a flit as it is stored."""
        return self.bits + FLIT_CONTROL_BITS

    @property
    def stored(self) -> int:
        """Flits that all its buffers hold."""
        return self.ports * self.vcs * (self.flits + self.output_flits)


def _allocates_vcs(config: Config) -> bool:
    """Whether switches have a VC allocator; in those of other models a packet enters a queue that has space."""
    return config.router.model == "input_queued" and config.router.va != "free_queue"


def _allocator_sizes(config: Config, vcs: int) -> tuple[float, float]:
    """How many times a plain separable allocator the VC and the switch allocator are, in area and energy."""
    router = config.router
    if router.model != "input_queued":
        return 1.0, 1.0
    vc = WAVEFRONT_VC if router.va == "wavefront" else 1.0
    if router.va in _ITERATED:
        vc *= router.va_iterations or router.allocator_iterations
    more = WAVEFRONT_SWITCH_UM2 if router.sa == "wavefront" else 0.0
    if router.sa in _ITERATED:
        more = OUTPUT_FIRST_SWITCH_UM2 + ITERATION_SWITCH_UM2 * (router.allocator_iterations - 1)
    switch = 1 + more / (PLAIN_SWITCH_UM2 + vcs * SWITCH_VC_UM2)
    return vc, switch * (2 if router.speculation is True else 1)


def _engines(config: Config, shape: SwitchShape) -> int:
    """Return how many engines, with their caches, a switch has."""
    return -(-shape.ports // config.lookup.ports_per_engine)


def switch_areas(config: Config, shape: SwitchShape, *, cached: bool) -> dict[str, float]:
    """Area of each part of a switch in µm²; without caches neither lookup engines nor their memories.

    A TCAM is counted once, as in eq. 4.5; one outside of the switch has no area.
    """
    energy, lookup, p = config.energy, config.lookup, shape.ports
    engines = _engines(config, shape)
    vc_size, switch_size = _allocator_sizes(config, shape.vcs)
    switch_allocator = energy.switch_allocator_um2 + shape.vcs * energy.switch_allocator_vc_um2
    per_bit = {
        "memory": energy.buffer_um2_per_bit,
        "latches": energy.latch_um2_per_bit,
        "flip_flops": energy.flip_flop_um2_per_bit,
    }
    return {
        "buffers": shape.stored * shape.word * per_bit[config.router.flit_buffers],
        "crossbar": p * p * shape.word * energy.crossbar_um2_per_bit,
        "VC allocator": vc_size * (p * shape.vcs) ** 2 * energy.vc_allocator_um2 if _allocates_vcs(config) else 0.0,
        "switch allocator": switch_size * p * p * switch_allocator,
        "port control": p * energy.port_um2,
        "lookup engines": engines * energy.engine_um2 if cached else 0.0,
        "caches": engines * lookup.cache.entries * LINE_BYTES * energy.cache_um2_per_byte if cached else 0.0,
        "TCAM": 0.0 if lookup.tcam.kind == "external" else lookup.tcam.rows * energy.tcam_um2_per_row,
    }


def switch_energy(
    config: Config, shape: SwitchShape, switches: int, traffic: Traffic, *, cached: bool
) -> dict[str, float]:
    """Energy in J that all switches together take, part by part.

    Parameters
    ----------
    config : Config
        Sections `energy` and `timing`.
    shape : SwitchShape
        Of every switch.
    switches : int
        How many.
    traffic : Traffic
        What went through them.
    cached : bool
        False: every packet asks the TCAM.
    """
    energy, timing, seconds = config.energy, config.timing, traffic.seconds
    bits = traffic.flits * shape.word
    powers = LookupPowers(timing.cache_energy_nj, timing.cache_power_mw, timing.tcam_energy_nj, timing.tcam_power_mw)
    static_lookup_w = lookup_energy(
        packets_per_second=0, miss_ratio=0, ports=_engines(config, shape), powers=powers, cached=cached
    )
    lookup_j = (
        traffic.packets
        * 1e-9
        * (timing.cache_energy_nj + timing.tcam_energy_nj * traffic.tcam_share if cached else timing.tcam_energy_nj)
    )
    askers = shape.ports * shape.vcs
    vc_size, switch_size = _allocator_sizes(config, shape.vcs)
    vc_askers = vc_size * askers if _allocates_vcs(config) else 0.0
    switch_askers = switch_size * askers
    areas = switch_areas(config, shape, cached=cached)
    memory = {"caches", "TCAM"} | ({"buffers"} if config.router.flit_buffers == "memory" else set())
    logic_mm2 = sum(area for part, area in areas.items() if part not in memory) * 1e-6
    buffer_kib = shape.stored * shape.word / 8192 if "buffers" in memory else 0.0
    buffers = 1 if shape.output_flits == 0 else 2  # that a flit passes
    return {
        "lookup": lookup_j,
        "buffers": 2e-12 * buffers * bits * energy.buffer_pj_per_bit,
        "crossbar": 1e-12 * bits * shape.ports * energy.crossbar_pj_per_bit,
        "VC allocation": 1e-12 * traffic.packets * vc_askers * energy.vc_allocation_pj,
        "switch allocation": 1e-12 * traffic.flits / shape.grant_flits * switch_askers * energy.switch_allocation_pj,
        "static, caches and TCAM": switches * seconds * static_lookup_w,
        "static, buffers": switches * seconds * buffer_kib * energy.sram_mw_per_kib * 1e-3,
        "static, logic": switches * seconds * logic_mm2 * energy.logic_mw_per_mm2 * 1e-3,
    }


def shape_of(config: Config, ports: int, bits: int) -> SwitchShape:
    """Return the size of the switches of section `router`, with `ports` ports and flits of `bits` bits of data."""
    router = config.router
    if router.model == "packet":  # three queues of whole packets at every port (docs/definitions/torus-router.md)
        flits = -(-8 * config.packet.packet_bytes // bits)
        return SwitchShape(ports, PACKET_QUEUES, flits * config.packet.queue_packets, bits, grant_flits=flits)
    output_flits = router.output_buffer_flits if router.model == "input_output_queued" else 0
    return SwitchShape(ports, router.vcs, router.buffer_flits, bits, output_flits)


def energy_rows(config: Config, shape: SwitchShape, switches: int, traffic: Traffic) -> list[dict[str, float | str]]:
    """Return rows of a table: part; J and nJ per visit of a packet to a switch, with caches and without."""
    cached, conventional = (
        switch_energy(config, shape, switches, traffic, cached=with_caches) for with_caches in (True, False)
    )
    visits = max(traffic.packets, 1.0)
    parts = [*cached, "all"]
    for found in (cached, conventional):
        found["all"] = sum(found.values())
    return [
        {
            "part": part,
            "cache_j": cached[part],
            "conventional_j": conventional[part],
            "cache_nj_per_packet": cached[part] / visits * 1e9,
            "conventional_nj_per_packet": conventional[part] / visits * 1e9,
        }
        for part in parts
    ]


def guessed_allocators(config: Config) -> str:
    """Say which allocators have no part in hardware, so that their size is a guess; "": none."""
    if config.router.model != "input_queued":  # which takes neither key
        return ""
    kinds = ((key, getattr(config.router, key)) for key in ("va", "sa"))
    unknown = [f"{key}={kind}" for key, kind in kinds if kind in NOT_IN_HARDWARE]
    return f"; {' and '.join(unknown)}, not in hardware, counted as input_first" if unknown else ""


def area_rows(config: Config, ports: int) -> list[tuple[str, str]]:
    """Say what `hopforge check` shows of the areas of a switch with `ports` ports: subject and words."""
    shape = shape_of(config, ports, config.router.flit_bits)
    cached, conventional = (sum(switch_areas(config, shape, cached=each).values()) for each in (True, False))
    parts = ", ".join(
        f"{part} {area * 1e-6:.4f}" for part, area in switch_areas(config, shape, cached=True).items() if area
    )
    return [
        ("switch area", f"{cached * 1e-6:.3f} mm² at 45 nm; without caches {conventional * 1e-6:.3f} mm²"),
        ("its parts", f"{parts} mm²{guessed_allocators(config)}"),
    ]
