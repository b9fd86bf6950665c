"""The service host of a configured network's routers as a component."""

from functools import partial
from typing import NamedTuple

from hopforge.gen.design.blocks import Block
from hopforge.gen.design.configured import acknowledge_setup, network_design
from hopforge.hw.network.routed_table import RoutedTable
from hopforge.hw.network.service_host import ServiceHost
from hopforge.model.config import Config
from hopforge.model.errors import UserError
from hopforge.model.router.acknowledging_host import HardwareRules
from hopforge.model.router.params import RouterParams

__all__ = ["ServiceHostDesign", "acknowledge_blocks", "service_host_design", "service_host_name"]

_RECIPES = ("lut-buffered", "lut-fast")
#: distance, and episode of an agent with 100 of them: what an entry of DQN routing holds beside packet, port and time
_DQN_NOTE_BITS = 4 + 7


def service_host_name(config: Config) -> str:
    """Name of the top module."""
    return f"{config.name}_service_host"


class ServiceHostDesign(NamedTuple):
    """What a service host is made with, see `ServiceHost`."""

    params: RouterParams
    rules: HardwareRules
    host_ports: tuple[int, ...]
    vcs: tuple[int, ...]

    def build(self) -> ServiceHost:
        """Return the component."""
        return ServiceHost(params=self.params, rules=self.rules, host_ports=self.host_ports, vcs=self.vcs)


def service_host_design(config: Config) -> ServiceHostDesign:
    """Return what the service host of router 0 is made with.

    Raises
    ------
    UserError
        A configuration without acknowledges, or with some that hardware cannot follow.
    """
    if config.traffic.acknowledge is None:
        raise UserError("traffic.acknowledge must be set for a service host, not null")
    design = network_design(config, service_ports=True)
    setup = acknowledge_setup(design)
    assert setup is not None, "it is set"
    return ServiceHostDesign(design.params[0], setup.rules, (int(design.topology.host_port[0]),), setup.vcs)


def acknowledge_blocks(config: Config) -> dict[str, Block]:
    """Return the service host of a configuration, and its table of routed packets with what agents of DQN need.

    Raises
    ------
    UserError
        As `service_host_design`.
    """
    design = service_host_design(config)
    params, rules = design.params, design.rules

    heads = params.ports - 1

    def table(heads: int) -> RoutedTable:
        return RoutedTable(
            depth=rules.table, heads=heads, label_bits=params.address_bits + params.tag_bits, note_bits=_DQN_NOTE_BITS,
            time_bits=rules.time_bits, age_limit=rules.age_limit_cycles,
        )  # fmt: skip

    block = partial(Block, clocked=True, recipes=_RECIPES, efforts=False, clock_gates=True)

    what = f"table of routed packets, {rules.table} entries with {_DQN_NOTE_BITS} bits of an agent's"
    blocks = [
        block(name="service_host", what=f"service host, table of {rules.table} entries, {rules.queue} places",
              build=design.build),
        block(name="event_table", what=f"{what}, {heads} heads a cycle", build=lambda: table(heads)),
        block(name="event_table_1", what=f"{what}, one head a cycle", build=lambda: table(1)),
    ]  # fmt: skip
    return {each.name: each for each in blocks}
