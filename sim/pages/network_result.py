"""The network of a result and what the result says of its links and routers: what the viewer draws."""

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import yaml
from numpy.typing import NDArray

from hopforge.model.config import Config, ConfigError, parse_config
from hopforge.model.config.load import suited
from hopforge.model.errors import UserError
from hopforge.model.topology import Topology
from hopforge.model.topology.configured import configured_network, network_topology
from hopforge.sim.pages.find import ResultSet

__all__ = [
    "NETWORK_KINDS",
    "channel_values",
    "has_network",
    "network_of",
    "result_config",
    "table_columns",
    "variant_configs",
]

#: commands whose results have a network of simulated routers
_SIMULATED = ("net", "series", "trace")
_PLACES = ("router", "port", "vc")
NETWORK_KINDS = (*_SIMULATED, "hits", "route", "app")
"""Commands whose results the viewer draws with values."""


def has_network(result: ResultSet) -> bool:
    """Tell whether the result says which network it is of, and has values for it."""
    if result.kind == "app" and "links" not in result.tables:
        return False
    return result.kind in NETWORK_KINDS and isinstance(result.config.get("topology"), Mapping)


def result_config(result: ResultSet) -> Config:
    """Return the configuration that the run noted.

    Raises
    ------
    UserError
        There is none, or this version of hopforge cannot read it.
    """
    if not isinstance(result.config.get("topology"), Mapping):
        raise UserError(f"{result.folder}: metadata.json has no config with a topology; give the folder of a run")
    text = yaml.safe_dump(dict(result.config), sort_keys=False)
    try:
        read = parse_config(text, f"{result.folder}/metadata.json", keys=False)
        return suited(read, hardware=False, keys=False)
    except ConfigError as error:
        first = str(error).split("\n", maxsplit=1)[0]
        raise UserError(re.sub(r"(metadata\.json):\d+:", r"\1:", first)) from error


def variant_configs(result: ResultSet) -> dict[str, Mapping[str, Any]]:
    """Return the configuration of every variant of a sweep, with all defaults; none if this version cannot read it.

    Without variants it is the only one, as it was noted, under an empty name.
    """
    simulation = result.config.get("simulation")
    if result.kind != "sweep" or not (isinstance(simulation, Mapping) and simulation.get("variants")):
        return {"": result.config}
    try:
        return {name: each.model_dump(mode="json") for name, each in result_config(result).variants.items()}
    except UserError:
        return {}


def network_of(result: ResultSet, config: Config) -> Topology:
    """Build the network again."""
    return network_topology(config) if result.kind in _SIMULATED else configured_network(config)


def table_columns(result: ResultSet, name: str, columns: tuple[str, ...]) -> pd.DataFrame | None:
    """Return a table that must have number columns; None if the result has no such table.

    Raises
    ------
    UserError
        A column is missing, or holds no numbers.
    """
    table = result.tables.get(name)
    if table is None:
        return None
    file = f"{result.folder}/{result.files.get(name, name)}"
    for column in columns:
        if column not in table:
            raise UserError(f"{file}: has no column {column}")
        if not pd.api.types.is_numeric_dtype(table[column]):
            raise UserError(f"{file}: column {column} must hold numbers")
        if column in _PLACES and table[column].isna().any():
            raise UserError(f"{file}: column {column} has fields without a number")
    return table


def channel_values(result: ResultSet, topology: Topology, name: str, columns: list[str]) -> NDArray[np.float64] | None:
    """Return columns of a table of channels in the order of `Topology.channels`: float64[column, channel].

    Raises
    ------
    UserError
        The table does not fit the network.
    """
    table = table_columns(result, name, ("router", "port", *columns))
    if table is None:
        return None
    ends = topology.channels()
    here = ends.src_router.astype(np.int64) * topology.max_ports + ends.src_port
    given = table["router"].to_numpy(np.float64) * topology.max_ports + table["port"].to_numpy(np.float64)
    order = np.argsort(given, kind="stable")
    if len(given) != len(here) or not np.array_equal(given[order], here):
        raise UserError(
            f"{result.folder}/{result.files.get(name, name)}: must have a row for each of the {len(here)} channels of "
            f"the {topology.name}, not {len(given)} of another network"
        )
    return table[columns].to_numpy(np.float64)[order].T
