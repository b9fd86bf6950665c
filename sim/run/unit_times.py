"""Collectives of a program in collective units: when each rank has its results."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hopforge.model.config import Config
from hopforge.model.config.workload import ProgramWorkload
from hopforge.model.errors import UserError
from hopforge.model.router.collective_plane import PlaneDesign, configured_plane
from hopforge.model.router.collective_times import GroupTimes, steps_of
from hopforge.model.topology import Topology, build
from hopforge.model.topology.link_times import in_cycles
from hopforge.model.workload.unit_calls import UnitCalls, UnitGroups
from hopforge.sim.traffic.placed import PlacedProgram, place_program

__all__ = ["UnitTimes", "placed_with_units", "unit_groups", "unit_times"]

#: words of all operations times units and hosts of their trees: about a minute
MOST_STEPS = 10**10


def unit_groups(config: Config, topology: Topology) -> UnitGroups | None:
    """Return the groups that do collectives of the program of a file; None: it wants none.

    Parameters
    ----------
    config : Config
        Sections `workload` and `collective_plane`.
    topology : Topology
        The network.

    Raises
    ------
    UserError
        Hosts with several links, other router models, or links that fail during the run.
    """
    workload = config.workload
    if not isinstance(workload, ProgramWorkload) or not workload.collectives.in_network:
        return None
    wanted = f"with workload.collectives.{workload.collectives.in_network[0]}: in_network"
    if topology.host_links != 1:
        raise UserError(f"topology.host_links: must be 1 {wanted}, not {topology.host_links}")
    if config.router.model != "input_queued":
        raise UserError(f"router.model: must be input_queued {wanted}, not {config.router.model}")
    if config.simulation.failures:
        raise UserError(f"simulation.failures: must be empty {wanted}")
    plane = config.collective_plane
    everybody = tuple(range(topology.hosts))
    groups = tuple(everybody if each.hosts is None else tuple(sorted(each.hosts)) for each in plane.groups)
    return UnitGroups(groups, plane.width_bits)


def placed_with_units(config: Config, seed: int) -> PlacedProgram | None:
    """Return the program of a file on its hosts, if it wants collective units; None: it does not.

    Raises
    ------
    UserError
        As of `unit_groups`; a program that does not fit, or asks of units what they cannot do.
    """
    if not isinstance(config.workload, ProgramWorkload) or not config.workload.collectives.in_network:
        return None
    topology = build(config.topology, config.address)
    return place_program(config.workload, topology, seed, unit_groups(config, topology))


def unit_times(config: Config, placed: PlacedProgram) -> "UnitTimes | None":
    """Return the units that do collectives of a program; None: it has none.

    Parameters
    ----------
    config : Config
        Sections `collective_plane`, `router`, `topology` and `failed`.
    placed : PlacedProgram
        The program on its hosts.

    Raises
    ------
    UserError
        Groups that do not fit the network, or operations of too many words.
    """
    calls = placed.program.units
    if calls is None:
        return None
    design = configured_plane(config)
    steps = sum(call.words * steps_of(design, call.group) for call in calls.calls)
    if steps > MOST_STEPS:
        raise UserError(
            f"workload.collectives: the words that collective units combine take {steps:,} steps, more than "
            f"{MOST_STEPS:,}; name algorithms of hosts"
        )
    return UnitTimes(design, in_cycles(config.router, "host_latency_cycles"), calls, placed.host)


class UnitTimes:
    """The units while a program runs.

    Parameters
    ----------
    design : PlaneDesign
        The plane.
    host_cycles : int
        Latency of the links to hosts.
    calls : UnitCalls
        What the program asks of them.
    host : ndarray, int32[rank]
        Where its ranks are.

    Attributes
    ----------
    operations : int
        Calls that are done.
    overlaps : int
        Those during which another group used a unit of the same tree: its words are not seen.
    """

    def __init__(self, design: PlaneDesign, host_cycles: int, calls: UnitCalls, host: NDArray[np.int32]) -> None:
        self.calls = calls
        self._groups = {call.group: GroupTimes(design, call.group, host_cycles) for call in calls.calls}
        self._host = host
        routers = {group: {write.router for write in design.trees[group].writes} for group in self._groups}
        self._beside = {
            group: [other for other in routers if other != group and routers[group] & routers[other]]
            for group in routers
        }
        self._busy_until = dict.fromkeys(self._groups, -1)
        self.operations = self.overlaps = 0

    def finish(self, call: int, entered: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the cycle in which each member can go on.

        Parameters
        ----------
        call : int
            Number of the call.
        entered : ndarray, int64[member]
            Cycle in which each member calls it; of members that send nothing it does not matter.
        """
        done = self.calls.calls[call]
        group = self._groups[done.group]
        place = np.searchsorted(group.hosts, self._host[list(done.members)])
        by_host = np.empty(len(place), np.int64)
        by_host[place] = entered
        source = -1 if done.source < 0 else int(place[done.source])
        found: NDArray[np.int64] = group.finish(done.words, by_host, source)[place]
        begins = int(entered.min() if done.source < 0 else entered[done.source])
        self.operations += 1
        self.overlaps += any(self._busy_until[other] > begins for other in self._beside[done.group])
        self._busy_until[done.group] = int(found.max())
        return found

    def columns(self) -> dict[str, int]:
        """As columns of a table."""
        return {"unit_collectives": self.operations, "unit_overlaps": self.overlaps}

    def rows(self) -> Sequence[tuple[str, str]]:
        """Say what the units did: subject and words."""
        groups = len(self._groups)
        words = f"{self.operations:,} collectives by units, in {groups} group{'s' * (groups > 1)}"
        if self.overlaps:
            words += f"; {self.overlaps:,} of them beside another group, whose words they do not wait for here"
        return [("in the network", words)]
