"""The whole file."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field, PrivateAttr

from hopforge.model.config.app import AppConfig
from hopforge.model.config.base import CsrConfig, Problem, Section
from hopforge.model.config.collective_plane import CollectivePlaneConfig
from hopforge.model.config.energy import EnergyConfig
from hopforge.model.config.jobs import JobsWorkload, WorkloadConfig
from hopforge.model.config.limits import (
    ahead_problems,
    group_problems,
    key_problems,
    route_computation_problems,
    router_model_problems,
)
from hopforge.model.config.lookup import AddressConfig, LookupConfig, RuleCacheConfig, WavelengthsConfig
from hopforge.model.config.router import PacketConfig, RouterConfig
from hopforge.model.config.routing import RoutingConfig
from hopforge.model.config.simulation import DegradedConfig, FailedConfig, SimulationConfig, failure_problems
from hopforge.model.config.tables import TablesConfig
from hopforge.model.config.topology import TopologyConfig
from hopforge.model.config.traffic import TrafficConfig, path_problems, quality_problems, spraying_problems
from hopforge.model.config.workload import ProgramWorkload
from hopforge.model.seeds import MOST_SEED

NAME = r"^[a-z][a-z0-9_]*$"
"""What key `name` may be."""


class TimingConfig(Section):
    """Times and energies for the derived figures (seed 004, ch. 4)."""

    cache_ns: Annotated[float, Field(gt=0)] = 1.0
    """Time per lookup that hits."""
    second_level_ns: Annotated[float, Field(gt=0)] = 4.0
    """Time per lookup that hits in the second-level cache."""
    tcam_ns: Annotated[float, Field(gt=0)] = 25.0
    """Time per lookup in the TCAM."""
    switch_base_ns: Annotated[float, Field(ge=0)] = 51.0
    """Latency of a switch without lookup penalty (S_base)."""
    miss_penalty_ns: Annotated[float, Field(ge=0)] = 25.0
    """Latency that a miss adds (S_pnl)."""
    conventional_switch_ns: Annotated[float, Field(ge=0)] = 75.0
    """Latency of a switch that asks its TCAM for every packet."""
    cable_ns: Annotated[float, Field(ge=0)] = 50.0
    """Latency of one cable (C)."""
    link_gbps: Annotated[float, Field(gt=0)] = 100.0
    """Rate of a link: in `hopforge app`, of tiers without a rate of their own, and in a platform for SimGrid."""
    slot_bytes: Annotated[int, Field(ge=1)] = 84
    """Bytes that the smallest packet takes on the link (Ethernet: 64 + preamble + gap)."""
    cache_energy_nj: Annotated[float, Field(ge=0)] = 0.039
    """Energy of a cache lookup (E_cache)."""
    cache_power_mw: Annotated[float, Field(ge=0)] = 13.0
    """Static power of a cache (P_cache)."""
    tcam_energy_nj: Annotated[float, Field(ge=0)] = 42.0
    """Energy of a TCAM lookup (E_cam)."""
    tcam_power_mw: Annotated[float, Field(ge=0)] = 36.0
    """Static power of a TCAM (P_cam)."""


class CosimConfig(Section):
    """Co-simulation of the generated hardware."""

    simulator: Literal["icarus", "verilator"] = "icarus"
    """Icarus starts fast, Verilator runs fast."""
    lookups: Annotated[int, Field(ge=1, le=1_000_000_000)] = 2000
    """Lookups to compare."""
    cycles: Annotated[int, Field(ge=1, le=100_000_000)] = 400
    """Routers and networks: cycles in which packets are created; then everything is let out."""


class Config(Section):
    """One switch and its network."""

    name: Annotated[str, Field(pattern=NAME)]
    """Name of the design: prefix of the Verilog modules and of every output."""
    seed: Annotated[int, Field(ge=0, le=MOST_SEED)] = 1
    """Seed of every random choice."""
    topology: TopologyConfig
    """Network."""
    failed: FailedConfig = FailedConfig()
    """What of the network does not work."""
    degraded: DegradedConfig = DegradedConfig()
    """What of the network is slow."""
    address: AddressConfig = AddressConfig()
    """Destination addresses."""
    lookup: LookupConfig = LookupConfig()
    """Lookup engine of every input port."""
    workload: WorkloadConfig | None = None
    """What `hopforge hits` replays, `app` runs, and with `traffic.source: program` `net`."""
    timing: TimingConfig = TimingConfig()
    """Times and energies."""
    energy: EnergyConfig = EnergyConfig()
    """Energies and areas of the parts of a switch."""
    router: RouterConfig = RouterConfig()
    """Routers of the network simulator."""
    csr: CsrConfig = CsrConfig()
    """Registers of a generated lookup engine or router."""
    routing: RoutingConfig = RoutingConfig()
    """Routing algorithm of the network simulator."""
    packet: PacketConfig = PacketConfig()
    """Routers, links and sources with `router.model: packet`."""
    tables: TablesConfig = TablesConfig()
    """Routing tables and virtual layers of `hopforge route` and `routing.algorithm: tables`."""
    traffic: TrafficConfig = TrafficConfig()
    """Traffic of the network simulator."""
    simulation: SimulationConfig = SimulationConfig()
    """Runs of `hopforge net` and `hopforge sweep`."""
    wavelengths: WavelengthsConfig = WavelengthsConfig()
    """Links of several wavelengths."""
    app: AppConfig = AppConfig()
    """A program on the network, timed by `hopforge app`."""
    collective_plane: CollectivePlaneConfig = CollectivePlaneConfig()
    """Units that combine and copy words in the network."""
    rule_cache: RuleCacheConfig = RuleCacheConfig()
    """A cache before a TCAM of prefix rules."""
    cosim: CosimConfig = CosimConfig()
    """Co-simulation."""

    _variants: dict[str, "Config"] = PrivateAttr(default_factory=dict)
    _written: tuple[str, ...] = PrivateAttr(default=())
    _unused: tuple[str, ...] = PrivateAttr(default=())

    def __eq__(self, other: object) -> bool:
        """Tell whether all keys are equal, in all variants, wherever they were read."""
        return isinstance(other, Config) and (vars(self), self._variants) == (vars(other), other._variants)

    __hash__ = None  # type: ignore[assignment]

    @property
    def variants(self) -> dict[str, "Config"]:
        """The whole configuration of each of ``simulation.variants``, by name; set by `parse_config`."""
        return self._variants

    @property
    def written(self) -> tuple[str, ...]:
        """Sections and keys that stand in the file itself, in its order; set by `parse_config`."""
        return self._written

    @property
    def unused(self) -> tuple[str, ...]:
        """Sections and keys in the file that the command does not use; set by `sim.start.preparation`."""
        return self._unused

    @property
    def lids(self) -> int:
        """Addresses of a host among which sources choose (docs/definitions/several-paths.md)."""
        several = self.routing.algorithm == "tables" and self.tables.scheme == "k_shortest"
        return self.tables.lids if several else 1

    def problems(self) -> Iterator[Problem]:
        """Check what concerns several sections; `load_config` checks keys where they are used."""
        yield from group_problems(self.topology)
        if self.router.route_computation == "lookup":
            yield from key_problems(self.topology, self.address, self.lookup)
        yield from route_computation_problems(self.router, self.address, self.lookup)
        yield from ahead_problems(self.router, self.topology, self.lookup, self.routing.spread)
        yield from router_model_problems(self.router, self.traffic)
        yield from quality_problems(self.router, self.routing, self.traffic)
        traffic = self.traffic
        asked = {key: bool(getattr(traffic, key)) for key in ("entropy", "reorder", "reply", "acknowledge", "classes")}
        yield from spraying_problems(self.router, self.routing, traffic.entropy, asked)
        yield from path_problems(self.routing, self.tables)
        runs = self.simulation
        yield from failure_problems(runs.failures, runs.deadlock_cycles, self.router, self.traffic)
        for key, program in _programs(self.workload):
            if program.mapping.links != "turns" and getattr(self.topology, "host_links", 1) == 1:
                yield Problem(f"{key}.mapping.links", "needs hosts with several links (topology.host_links)")
        if self.traffic.source == "program" and not isinstance(self.workload, ProgramWorkload):
            reason = "program needs a section workload that is a program (kind: npb, trace, collective, …)"
            if isinstance(self.workload, JobsWorkload):
                reason = "program runs one program; `hopforge app` with app.engine=packet runs jobs"
            yield Problem("traffic.source", reason)


def _programs(workload: WorkloadConfig | None) -> Iterator[tuple[str, ProgramWorkload]]:
    """Yield the programs of a section, each with its key."""
    if isinstance(workload, ProgramWorkload):
        yield "workload", workload
    elif isinstance(workload, JobsWorkload):
        for number, job in enumerate(workload.jobs):
            yield f"workload.jobs[{number}].program", job.program
