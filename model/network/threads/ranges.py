"""How a network is divided into parts: ranges of routers about equal in work, with their hosts and delays."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hopforge.model.network.core.state import NetState
from hopforge.model.network.core.switch_allocation import BLOCK

#: longest window in cycles: longer ones save hardly any time, but need more free packet records
MOST_WINDOW = 8


@dataclass(frozen=True)
class Ranges:
    """The parts of a network.

    Attributes
    ----------
    routers : ndarray
        First router of each part, and the number of all: int64[parts + 1].
    hosts : ndarray
        The same of hosts: int64[parts + 1].
    part_of : ndarray
        Part of each router: int32[routers].
    window : int
        Cycles between two barriers: the shortest delay of a flit or credit between routers.
    lane_time, lane_host : ndarray
        Delay of each lane, and 1 for lanes from hosts, in the order in which what comes at a time was sent:
        int64[lanes].
    links : ndarray
        Links from part to part: int64[parts, parts].
    """

    routers: NDArray[np.int64]
    hosts: NDArray[np.int64]
    part_of: NDArray[np.int32]
    window: int
    lane_time: NDArray[np.int64]
    lane_host: NDArray[np.int64]
    links: NDArray[np.int64]

    @property
    def parts(self) -> int:
        """How many."""
        return len(self.routers) - 1


def most_parts(state: NetState) -> int:
    """Return the largest number of parts of a network: each holds a block of routers that VA and SA serve together."""
    return -(-int(state["routers"]) // BLOCK)


def host_routers(state: NetState) -> NDArray[np.int64]:
    """Return the router of each host."""
    return np.asarray(state.senders["output_vc"].astype(np.int64) // int(state["ports"] * state["vcs"]))


def router_links(state: NetState) -> NDArray[np.int64]:
    """Return the numbers of the output ports that lead to other routers."""
    target = state["output_vc"]["target"].reshape(-1, int(state["vcs"]))[:, 0]
    return np.flatnonzero((target >= 0) & (target < int(state["input_vcs"])))


def lanes(state: NetState) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the delays of all lanes, and which come from hosts: the longest was sent first, routers before hosts."""
    routers = np.unique(state["output_port"]["flit_time"][router_links(state)]).tolist()
    hosts = np.unique(state.senders["flit_time"]).tolist()
    order = sorted([(-time, 0) for time in routers] + [(-time, 1) for time in hosts])
    return np.array([-time for time, _ in order], np.int64), np.array([host for _, host in order], np.int64)


def divide(state: NetState, parts: int) -> Ranges:
    """Divide a network whose hosts are numbered in the order of their routers.

    Raises
    ------
    ValueError
        No part, or more than `most_parts`.
    """
    most, R, P = most_parts(state), int(state["routers"]), int(state["ports"])
    if not 1 <= parts <= most:
        raise ValueError(f"parts must be 1 to {most}, not {parts}")
    routers = _balanced(state, parts, most)
    routers[-1] = R
    part_of = np.repeat(np.arange(parts, dtype=np.int32), np.diff(routers))
    here = router_links(state)
    there = state["output_vc"]["target"][here * int(state["vcs"])] // (P * int(state["vcs"]))
    back = state["input_vc"]["port"][state["output_vc"]["target"][here * int(state["vcs"])]]
    times = np.concatenate([state["output_port"]["flit_time"][here], state["input_port"]["credit_time"][back]])
    links = np.zeros((parts, parts), np.int64)
    np.add.at(links, (part_of[here // P], part_of[there]), 1)
    time, of_host = lanes(state)
    return Ranges(
        routers=routers,
        hosts=np.searchsorted(host_routers(state), routers).astype(np.int64),
        part_of=part_of,
        window=min([MOST_WINDOW, *times.tolist()]),
        lane_time=time,
        lane_host=of_host,
        links=links,
    )


def _balanced(state: NetState, parts: int, most: int) -> NDArray[np.int64]:
    """First routers of parts with about equal numbers of connected ports; each has a block of routers at least."""
    ports = state["output_port"]["connected"].reshape(int(state["routers"]), -1).sum(axis=1)
    blocks = np.add.reduceat(ports, np.arange(0, len(ports), BLOCK)).astype(np.int64)
    before = np.concatenate([[0], np.cumsum(blocks)])
    middles = (before[1:] + before[:-1]) / 2
    firsts = np.searchsorted(middles, before[-1] * np.arange(parts + 1) / parts).astype(np.int64)
    for part in range(parts + 1):  # in order, none empty
        firsts[part] = min(max(firsts[part], part if part == 0 else firsts[part - 1] + 1), most - parts + part)
    firsts[0] = 0
    return firsts * BLOCK
