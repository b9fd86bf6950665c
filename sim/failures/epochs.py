"""What is down when, and the routing of every such state, proved before the run begins."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hopforge.model.config.simulation import FailedConfig, FailureConfig, describe_failed
from hopforge.model.routing import RoutingPlan
from hopforge.model.topology import Topology
from hopforge.model.topology.failed import failed_hosts, failed_ports, failed_switches, without_failed


@dataclass(frozen=True)
class Epoch:
    """The network from one failure or repair to the next.

    Attributes
    ----------
    cycle : int
        In which it begins.
    what : str
        What fails or works again, for people.
    topology : Topology
        Without what is down.
    ports : ndarray, bool[router, port]
        Ports whose link is down; of a failed switch also those to its hosts.
    switches, hosts : ndarray, bool[router], bool[host]
        That are down.
    detection_cycles, reprogram_cycles : int
        From its begin until hosts stop sending, and from then until the new tables may be in force.
    plan : RoutingPlan
        Its routing.
    """

    cycle: int
    what: str
    topology: Topology
    ports: NDArray[np.bool_]
    switches: NDArray[np.bool_]
    hosts: NDArray[np.bool_]
    detection_cycles: int
    reprogram_cycles: int
    plan: RoutingPlan

    @property
    def inject_mask(self) -> NDArray[np.uint32]:
        """Virtual channels that every host may use, none at failed switches: uint32[host]."""
        mask = np.uint32(0xFFFF) if self.plan.inject_mask is None else self.plan.inject_mask
        return np.where(self.hosts, np.uint32(0), np.asarray(mask, np.uint32)).astype(np.uint32)


def make_epochs(
    topology: Topology,
    failures: tuple[FailureConfig, ...],
    always: FailedConfig,
    plan_for: Callable[[Topology, NDArray[np.bool_]], RoutingPlan],
    flit_cycles: int = 1,
) -> list[Epoch]:
    """Put failures and repairs into their order, and find the routing of each state.

    Parameters
    ----------
    topology : Topology
        Before anything failed.
    failures : tuple of FailureConfig
        In any order.
    always : FailedConfig
        What is down during the whole run.
    plan_for : callable
        Routing of a network, given it and the hosts that are down; proves it.
    flit_cycles : int
        Cycles of the simulator for each that the failures count.

    Raises
    ------
    FailureError
        Parts that do not exist, or a state in which the network falls apart.
    """
    for number, failure in enumerate(failures):
        failed_ports(topology, failure, f"simulation.failures[{number}]")
    moments: dict[int, tuple[list[FailureConfig], list[FailureConfig]]] = {}
    for failure in failures:
        moments.setdefault(failure.cycle, ([], []))[0].append(failure)
        if failure.repair_cycles is not None:
            moments.setdefault(failure.cycle + failure.repair_cycles, ([], []))[1].append(failure)
    down: list[FailureConfig] = []
    epochs = []
    for cycle in sorted(moments):
        failing, repaired = moments[cycle]
        down = [failure for failure in [*down, *failing] if failure not in repaired]
        parts = always
        for failure in down:
            parts = parts + failure
        key = f"simulation.failures[{failures.index((failing or repaired)[0])}]"
        left = without_failed(topology, parts, key)
        hosts = failed_hosts(topology, parts)
        ports = failed_ports(topology, parts)
        switches = failed_switches(topology, parts)
        words = [f"{describe_failed(failure)} fails" for failure in failing]
        for failure in repaired:
            held = (ports & failed_ports(topology, failure)).any()
            held |= (switches & failed_switches(topology, failure)).any()
            again = "is repaired, but not what another failure holds down" if held else "works again"
            words.append(f"{describe_failed(failure)} {again}")
        ports |= switches[:, None] & (topology.host_at >= 0)
        causes = [*failing, *repaired]
        epochs.append(
            Epoch(
                cycle * flit_cycles,
                "; ".join(words),
                left,
                ports,
                switches,
                hosts,
                min(cause.detection_cycles for cause in causes) * flit_cycles,
                max(cause.reprogram_cycles for cause in causes) * flit_cycles,
                plan_for(left, hosts),
            )
        )
    return epochs


def unknown_cycles(epochs: Sequence[Epoch]) -> int:
    """Cycles in which something has failed or works again that the routers do not know of."""
    cycles, known = 0, 0
    for epoch in epochs:
        begin = max(epoch.cycle, known)
        known = max(known, epoch.cycle + epoch.detection_cycles + epoch.reprogram_cycles)
        cycles += known - begin
    return cycles
