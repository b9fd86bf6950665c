"""The whole file."""

from typing import Annotated, Literal

from pydantic import Field

from hopforge.model.config.base import Section
from hopforge.model.config.lookup import AddressConfig, LookupConfig
from hopforge.model.config.topology import TopologyConfig
from hopforge.model.config.workload import WorkloadConfig


class TimingConfig(Section):
    """Times and energies for the derived figures (seed 004, ch. 4)."""

    cache_ns: Annotated[float, Field(gt=0)] = 1.0
    second_level_ns: Annotated[float, Field(gt=0)] = 4.0
    tcam_ns: Annotated[float, Field(gt=0)] = 25.0
    switch_base_ns: Annotated[float, Field(ge=0)] = 51.0
    miss_penalty_ns: Annotated[float, Field(ge=0)] = 25.0
    conventional_switch_ns: Annotated[float, Field(ge=0)] = 75.0
    cable_ns: Annotated[float, Field(ge=0)] = 50.0
    slot_bytes: Annotated[int, Field(ge=1)] = 84
    cache_energy_nj: Annotated[float, Field(ge=0)] = 0.039
    cache_power_mw: Annotated[float, Field(ge=0)] = 13.0
    tcam_energy_nj: Annotated[float, Field(ge=0)] = 42.0
    tcam_power_mw: Annotated[float, Field(ge=0)] = 36.0


class CosimConfig(Section):
    """Co-simulation of the generated engine."""

    simulator: Literal["icarus", "verilator"] = "icarus"
    lookups: Annotated[int, Field(ge=1)] = 2000


class Config(Section):
    """One switch and its network."""

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
    seed: Annotated[int, Field(ge=0)] = 1
    topology: TopologyConfig
    address: AddressConfig = AddressConfig()
    lookup: LookupConfig = LookupConfig()
    workload: WorkloadConfig | None = None
    timing: TimingConfig = TimingConfig()
    cosim: CosimConfig = CosimConfig()
