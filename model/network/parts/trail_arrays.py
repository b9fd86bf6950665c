"""Tables of routed packets and acknowledges, as arrays for the kernel (docs/definitions/acknowledges.md)."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hopforge.model.dqn.rules import Rules
from hopforge.model.dqn.tables import COUNTERS, new_tables
from hopforge.model.network.core.records import CLASS_COUNT, CLASSES, HISTOGRAM_BINS, REPLIER, TRAIL
from hopforge.model.network.core.sources import NEVER
from hopforge.model.network.core.state import NetState
from hopforge.model.network.parts.acknowledges import follow_trails


@dataclass(frozen=True)
class Acknowledges:
    """Acknowledges of packets, and what an agent keeps in the tables for them.

    Attributes
    ----------
    flits : int
        Length of an acknowledge.
    ratio : int
        Every so many packets of a host ask for one, 0: none does.
    delay_cycles : int
        From taking a tail to the creation of what it causes, at least 1.
    depth : int
        Entries of a router's table.
    age_limit : int, optional
        Cycles that an entry lives; by default for ever.
    rules : Rules
        Places for acknowledges in a router, and an agent's.
    owner : ndarray, int64[router], optional
        Number of each router's agent; by default one for all.
    episodes, inputs : int
        Active ones of an agent, and numbers of an observation.
    skew : ndarray, int64[router], optional
        Of the routers' clocks.
    """

    flits: int = 3
    ratio: int = 1
    delay_cycles: int = 1
    depth: int = 1024
    age_limit: int | None = None
    rules: Rules = field(default_factory=Rules)
    owner: NDArray[np.int64] | None = None
    episodes: int = 1
    inputs: int = 1
    skew: NDArray[np.int64] | None = None


def put_acknowledges(state: NetState, home: NDArray[np.int32], mask: int, found: Acknowledges) -> None:
    """Let the routers of a network acknowledge packets.

    Parameters
    ----------
    state : NetState
        A network with service hosts behind its hosts.
    home : ndarray, int32[host]
        Router of each host.
    mask : int
        VCs of acknowledges.
    found : Acknowledges
        Settings.
    """
    routers, hosts, s = int(state["routers"]), int(state["hosts"]), state.record
    replier = np.zeros(hosts + routers, REPLIER)
    replier["first"] = replier["last"] = replier["packet"] = -1
    state.put("replier", replier)
    state.put("class_count", np.zeros(CLASSES, CLASS_COUNT))
    state.put("class_histogram", np.zeros(CLASSES * HISTOGRAM_BINS, np.int64))
    state.put("trail", np.zeros(len(state["packet"]), TRAIL))
    state.follow_pool(_grow_trail)
    state.put("trail_home", np.ascontiguousarray(home, np.int32))
    state.put("trail_head", np.zeros(routers * int(state["ports"]), np.int64))
    state.put("trail_taken", np.zeros(routers, np.int64))
    state.put("trail_rules", np.array([float(value) for value in found.rules.compiled]))
    owner = np.zeros(routers, np.int64) if found.owner is None else np.asarray(found.owner, np.int64)
    tables = new_tables(
        owner, depth=found.depth, episodes=found.episodes, inputs=found.inputs, age_limit=found.age_limit,
        skew=found.skew,
    )  # fmt: skip
    for name, array in tables._asdict().items():
        state.put("trail_owner" if name == "agents" else f"trail_{name}", array.reshape(-1))
    service = state["host"][hosts:]
    service["inject_mask"], service["reply_mask"] = 0, mask
    service["next_time"], service["stopped"] = NEVER, 1
    state["host_wake"][hosts:] = NEVER
    s["ack_flits"], s["ack_ratio"], s["ack_delay"], s["ack_mask"] = found.flits, found.ratio, found.delay_cycles, mask
    s["trail_depth"], s["trail_agents"] = found.depth, len(tables.active)
    s["trail_episodes"], s["trail_inputs"] = found.episodes, found.inputs
    state.put_function("acks", follow_trails)


def _grow_trail(state: NetState, pool: int) -> None:
    trail = np.zeros(pool, TRAIL)
    trail[: len(state["trail"])] = state["trail"]
    state.put("trail", trail)


def trail_counts(state: NetState) -> dict[str, int]:
    """What happened to entries and acknowledges since the start, by name."""
    return dict(zip(COUNTERS, state["trail_counts"].tolist(), strict=True))
