"""Patterns that draw from a short list of hosts: those of BookSim 2 that no other pattern here is.

Definitions: docs/definitions/traffic-patterns.md.
"""

from typing import Any

import numpy as np

from hopforge.model.topology import Topology
from hopforge.sim.traffic.patterns import TrafficError, TrafficPlan, mixed_plan, one_of_list_plan, register

#: patterns of lists; `taper64` is mixed: half of its packets are uniform
DRAWN_LISTS = ("diagonal", "asymmetric", "badperm_yarc")
TAPERED = "taper64"
_TAPERED_HOSTS = 64


@register("diagonal")
def prepare_diagonal(topology: Topology, options: dict[str, Any], generator: np.random.Generator) -> TrafficPlan:
    """Two of three packets of host s to s itself, the third to s + 1 (mod hosts)."""
    hosts = topology.hosts
    return one_of_list_plan([np.array([s, s, (s + 1) % hosts]) for s in range(hosts)])


@register("asymmetric")
def prepare_asymmetric(topology: Topology, options: dict[str, Any], generator: np.random.Generator) -> TrafficPlan:
    """Host s to s mod H/2 or to H/2 + s mod H/2, each as often; H hosts, an even number."""
    if topology.hosts % 2:
        raise TrafficError(f"traffic.pattern asymmetric needs an even number of hosts, not {topology.hosts}")
    half = topology.hosts // 2
    return one_of_list_plan([np.array([s % half, s % half + half]) for s in range(topology.hosts)])


@register("badperm_yarc")
def prepare_badperm_yarc(topology: Topology, options: dict[str, Any], generator: np.random.Generator) -> TrafficPlan:
    """All k hosts of row ⌊s/k⌋ of a k × k grid of hosts to one of column ⌊s/k⌋."""
    k = round(topology.hosts**0.5)
    if k * k != topology.hosts:
        raise TrafficError(f"traffic.pattern badperm_yarc needs a square number of hosts, not {topology.hosts}")
    return one_of_list_plan([k * np.arange(k) + s // k for s in range(topology.hosts)])


@register(TAPERED)
def prepare_taper64(topology: Topology, options: dict[str, Any], generator: np.random.Generator) -> TrafficPlan:
    """Half of the packets to s + 8·y + x (mod 64), x and y drawn from −1, 0, 1; the others uniform; 64 hosts."""
    if topology.hosts != _TAPERED_HOSTS:
        raise TrafficError(f"traffic.pattern taper64 needs {_TAPERED_HOSTS} hosts, not {topology.hosts}")
    near = np.array([8 * y + x for y in (-1, 0, 1) for x in (-1, 0, 1)])
    return mixed_plan(0.5, [(s + near) % _TAPERED_HOSTS for s in range(_TAPERED_HOSTS)])
