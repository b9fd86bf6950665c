"""The YAML description of a switch and its network: the only place where a user's value is checked.

May import: model.numbers. Read first: `root.py`.
"""

from hopforge.model.config.jobs import WorkloadConfig
from hopforge.model.config.load import ConfigError, load_config, parse_config
from hopforge.model.config.lookup import (
    AddressConfig,
    CacheConfig,
    CrcConfig,
    LagConfig,
    LookupConfig,
    SecondLevelConfig,
    TcamConfig,
)
from hopforge.model.config.root import Config, CosimConfig, TimingConfig
from hopforge.model.config.router import RouterConfig
from hopforge.model.config.routing import RoutingConfig
from hopforge.model.config.simulation import SimulationConfig
from hopforge.model.config.topology import (
    ButterflyConfig,
    CascadeConfig,
    ClosConfig,
    DirectorConfig,
    DragonflyConfig,
    DragonflyPlusConfig,
    EdgeListConfig,
    FatTreeConfig,
    FullyConnectedConfig,
    HyperXConfig,
    LayoutRandomConfig,
    MeshConfig,
    PolarFlyConfig,
    RandomRegularConfig,
    SlimFlyConfig,
    TiersConfig,
    TopologyConfig,
    TorusConfig,
)
from hopforge.model.config.traffic import TrafficConfig

__all__ = [
    "AddressConfig",
    "ButterflyConfig",
    "CacheConfig",
    "CascadeConfig",
    "ClosConfig",
    "Config",
    "ConfigError",
    "CosimConfig",
    "CrcConfig",
    "DirectorConfig",
    "DragonflyConfig",
    "DragonflyPlusConfig",
    "EdgeListConfig",
    "FatTreeConfig",
    "FullyConnectedConfig",
    "HyperXConfig",
    "LagConfig",
    "LayoutRandomConfig",
    "LookupConfig",
    "MeshConfig",
    "PolarFlyConfig",
    "RandomRegularConfig",
    "RouterConfig",
    "RoutingConfig",
    "SecondLevelConfig",
    "SimulationConfig",
    "SlimFlyConfig",
    "TcamConfig",
    "TiersConfig",
    "TimingConfig",
    "TopologyConfig",
    "TorusConfig",
    "TrafficConfig",
    "WorkloadConfig",
    "load_config",
    "parse_config",
]
