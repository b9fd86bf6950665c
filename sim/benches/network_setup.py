"""What the co-simulation of a network needs before its run: generated routers, and the packets that hosts send."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hopforge.gen.design.configured import NetworkDesign, check_interfaces, network_design
from hopforge.model.config import Config
from hopforge.model.errors import UserError
from hopforge.model.network.settings import Script
from hopforge.sim.benches.repeated_tags import refuse_repeated_tags
from hopforge.sim.run.packet_script import draw_class_packets, draw_packets
from hopforge.sim.run.simulation import Simulation

__all__ = ["NetworkSetup", "network_setup"]


@dataclass(frozen=True, eq=False)
class NetworkSetup:
    """Routers and packets.

    Attributes
    ----------
    design : NetworkDesign
        The routers.
    script : Script
        The packets.
    script_class : ndarray, optional
        Class of traffic of each.
    """

    design: NetworkDesign
    script: Script
    script_class: NDArray[np.int64] | None = None


def network_setup(config: Config, load: float, seed: int, cycles: int) -> NetworkSetup:
    """Compile the routers and draw the packets of `cycles` cycles.

    Raises
    ------
    UserError
        Routing or a router that the hardware cannot be; a deadlock; nothing to compare; tags that come again.
    """
    _refuse_failures(config)
    design = network_design(config, service_ports=True, failed=True)
    check_interfaces(design)
    most, longest = design.params[0].longest_packet, config.traffic.longest_flits()
    if longest > most:
        raise UserError(
            f"router.length_bits must hold the length of the longest packet ({longest} flits) under vct; "
            f"{design.params[0].length_bits} bits hold {most}"
        )
    lookup = design.params[0].lookup
    if lookup is not None and lookup.tcam_kind == "external":
        raise UserError("lookup.tcam.kind must be flops or sram for the co-simulation of a network, not external")
    _ = design.programs  # keys that do not fit the routes are found here
    run, number = Simulation(config, load, seed, design.plain_topology), None
    if run.classes is None:
        script = draw_packets(run, cycles)
    else:
        script, number = draw_class_packets(run, cycles)
    if not len(script[0]):
        raise UserError(f"no packet in {cycles} cycles at a load of {load:g}: there is nothing to compare")
    refuse_repeated_tags(config, script[0], design.params[0].tag_bits)
    return NetworkSetup(design, script, number)


def _refuse_failures(config: Config) -> None:
    """Refuse links that fail during the run: the simulator would run with them, and hardware would not."""
    if config.simulation.failures:
        raise UserError(
            "simulation.failures must be empty for --part network, whose hardware keeps its links, not "
            f"{len(config.simulation.failures)} failures"
        )
