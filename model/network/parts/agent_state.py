"""Agents of DQN routing in a network: their arrays, behind one address for the kernels (docs/definitions/dqn.md)."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numba import carray
from numpy.typing import NDArray

from hopforge.model.dqn.agents import COUNTS, LIMITS, RATES, SUMS, Agents, agent_bytes, new_agents
from hopforge.model.dqn.archive import ArchiveError, load_agents, refuse_large_state
from hopforge.model.dqn.dense import part
from hopforge.model.dqn.int8_forward import Int8Agents, int8_agents
from hopforge.model.dqn.int8_network import given_observations, quantised
from hopforge.model.dqn.int8_table import LEAST_ACTIVATION_BITS, TABLE_END
from hopforge.model.dqn.rules import Rules
from hopforge.model.dqn.settings import AgentSettings
from hopforge.model.dqn.shape import NetworkShape
from hopforge.model.free_memory import refuse_beyond_memory
from hopforge.model.kernel.compile import inlined
from hopforge.model.kernel.constant_record import constant_record
from hopforge.model.kernel.memory import floats, int32s, int64s, record_reader, singles, words
from hopforge.model.network.parts.number_order import LOW

__all__ = ["AGENTS", "AgentParameters", "AgentState", "ListedWays", "agents_of", "record_of"]


class ListedWays(NamedTuple):
    """Minimal ways of a network that is no grid, or has lost links.

    Attributes
    ----------
    hops : int64[router, router]
        To each router; -1: there is no way.
    nearer : int64[router, router]
        Mask of the actions that bring a packet nearer to it.
    """

    hops: NDArray[np.int64]
    nearer: NDArray[np.int64]


@dataclass(frozen=True)
class AgentParameters:
    """Agents of a grid, or of a network whose ways are listed (docs/definitions/dqn.md).

    Attributes
    ----------
    shape, settings, rules
        Networks, how they learn, and when packets leave them.
    topology : str
        What an archive of weights has to be made for.
    agents : int64[router]
        Number of each router's agent.
    radices, coordinates : int64[n], int64[router, n]
        The grid; of another network what agents see of a router's place.
    wraps : bool
        Whether it is a torus.
    listed : ListedWays, optional
        Of a network that is no grid, or has lost links.
    swapped : bool
        The ports of actions 2i and 2i + 1 change places: it is a grid.
    home : int64[host]
        Router of each host.
    allowed : int64[router]
        Mask of the actions that have a link.
    first_port : int
        Of those without hosts.
    escapes, vcs : int
        The lowest VCs are the escape, those from there to below `vcs` are adaptive.
    scales : float64[3]
        Payload, local and remote flits that count as 1; a first of 0: numbers as they are.
    max_episodes : int
        Of an agent.
    minimal : bool
        Agents propose only ports that bring a packet nearer.
    one_hop : bool
        A packet that takes dimension order does so for one hop.
    decision_cycles, decision_interval, decision_queue : int
        How long a decision takes (0: no time), cycles from one to the next, and packets that wait for an agent.
    int8 : bool
        Agents decide in whole numbers (docs/definitions/dqn-inference.md); they have learned before.
    activation_bits : int
        Of these numbers.
    seed : int
        Of weights and random choices.
    weights : Path, optional
        Archive to begin with.
    resume : bool
        Go on with the whole state of that archive.
    hints : tuple of int
        Cycles at which all agents begin anew.
    save_state : bool
        What a run writes is the whole state.
    """

    shape: NetworkShape
    settings: AgentSettings
    rules: Rules
    topology: str
    agents: NDArray[np.int64]
    radices: NDArray[np.int64]
    coordinates: NDArray[np.int64]
    wraps: bool
    home: NDArray[np.int64]
    allowed: NDArray[np.int64]
    first_port: int
    escapes: int
    vcs: int
    scales: NDArray[np.float64]
    max_episodes: int
    minimal: bool = False
    one_hop: bool = False
    decision_cycles: int = 0
    decision_interval: int = 1
    decision_queue: int = 0
    listed: ListedWays | None = None
    swapped: bool = False
    int8: bool = False
    activation_bits: int = LEAST_ACTIVATION_BITS
    seed: int = 1
    weights: Path | None = None
    resume: bool = False
    hints: tuple[int, ...] = ()
    save_state: bool = False

    @property
    def count(self) -> int:
        """Number of agents."""
        return int(self.agents.max()) + 1


#: after the last hint
NEVER = 1 << 62
_SIZES = ("count", "inputs", "outputs", "dimensions", "routers", "weight_count", "places", "later", "rows", "work_size",
          "wraps", "first_port", "escapes", "adaptive_end", "minimal", "one_hop", "decision_cycles",
          "decision_interval", "decision_queue", "flights", "listed", "swapped", "int8", "int8_weight_count",
          "int8_bias_count", "widest")  # fmt: skip
_EXTRA = ("radices", "coordinates", "ways", "nearer", "home", "allowed", "scales", "observation", "local", "remote",
          "hints", "hint", "asked", "asked_count", "queue", "waiting", "flight", "flight_ends", "int8_lost",
          *Int8Agents._fields)  # fmt: skip
#: `waiting` of an agent: first place and fill of its queue, earliest begin of its next decision
FIRST, FILL, NEXT_BEGIN = range(3)
QUEUE_FIELDS = 3
#: a decision under way: input VC and packet, last cycle, what it came to
FLIGHT_PLACE, FLIGHT_END, FLIGHT_ACTION, FLIGHT_EPISODE = range(4)
FLIGHT_FIELDS = 4
#: what the kernels get: sizes, the unit of rewards, and the addresses of the arrays
AGENTS = np.dtype([("unit", "f8"), *((name, "i8") for name in (*_SIZES, *Agents._fields, *_EXTRA))])

_read_agents = record_reader(constant_record(AGENTS, AGENTS.names or ()))


@inlined
def record_of(net: Any) -> Any:
    """Sizes, settings and addresses (only if ``net.agents`` is not 0)."""
    return _read_agents(net.agents, 0)


@part
def agents_of(r: Any) -> Any:
    """Return the arrays behind the addresses as `Agents`."""
    n, w, inputs, rows = r.count, r.weight_count, r.inputs, r.rows
    return Agents(
        carray(int64s(r.widths), (5,)),
        carray(int64s(r.starts), (13,)),
        carray(floats(r.rates), (RATES,)),
        carray(int64s(r.limits), (LIMITS,)),
        carray(singles(r.weights), (n, w)),
        carray(singles(r.target), (n, w)),
        carray(singles(r.moment1), (n, w)),
        carray(singles(r.moment2), (n, w)),
        carray(singles(r.samples), (n, r.places, inputs)),
        carray(int32s(r.actions), (n, r.places)),
        carray(singles(r.rewards), (n, r.places)),
        carray(singles(r.next_samples), (n, r.later, inputs)),
        carray(int32s(r.next_agents), (n, r.later)),
        carray(int32s(r.next_allowed), (n, r.later)),
        carray(words(r.streams), (2 * n,)),
        carray(int64s(r.counts), (n, COUNTS)),
        carray(floats(r.sums), (n, SUMS)),
        carray(singles(r.batch), (rows, inputs)),
        carray(int32s(r.batch_actions), (rows,)),
        carray(singles(r.batch_targets), (rows,)),
        carray(singles(r.gradient), (w,)),
        carray(singles(r.work), (r.work_size,)),
        carray(singles(r.lanes), (16,)),
        carray(floats(r.norms), (12,)),
    )


@part
def int8_of(r: Any) -> Any:
    """Return the networks in whole numbers (only if ``r.int8`` is not 0)."""
    return Int8Agents(
        carray(int32s(r.int8_weights), (r.count, r.int8_weight_count)),
        carray(int32s(r.int8_biases), (r.count, r.int8_bias_count)),
        carray(int32s(r.int8_shifts), (r.count, 4)),
        carray(int32s(r.int8_tanh), (TABLE_END + 1,)),
        carray(int32s(r.int8_work), (2, r.widest)),
    )


def _forget(ring: NDArray[np.int64], ends: NDArray[np.int64], gone: NDArray[np.bool_]) -> int:
    """Take packets out of a ring of rows that begin with input VC << 32 | packet; `ends`: its first place, its fill."""
    first, fill = ends.tolist()
    rows = ring[(first + np.arange(fill)) % max(len(ring), 1)]
    kept = rows[~gone[rows[:, 0] & LOW]]
    ring[: len(kept)] = kept
    ends[:] = 0, len(kept)
    return fill - len(kept)


class AgentState:
    """The agents of a network and the record that the kernels get; it keeps the arrays alive.

    Attributes
    ----------
    agents : Agents
        Networks, samples, counters.
    parameters : AgentParameters
        What they were built from.
    record : ndarray
        ``AGENTS[1]``: sizes and the addresses of all arrays.

    Parameters
    ----------
    parameters : AgentParameters
    ports : int
        Of all routers.
    """

    def __init__(self, parameters: AgentParameters, ports: int) -> None:
        self.parameters, shape = parameters, parameters.shape
        refuse_beyond_memory(
            agent_bytes(shape, parameters.settings, parameters.count),
            f"routing.dqn: {parameters.count} agents with {shape.weights:,} weights and a replay of "
            f"{parameters.settings.replay:,}",
        )
        self.agents = new_agents(shape, parameters.settings, parameters.count, parameters.seed)
        if parameters.save_state:
            refuse_large_state(self.agents)
        if parameters.weights is not None:
            try:
                load_agents(parameters.weights, self.agents, parameters.topology, complete=parameters.resume)
            except ArchiveError as error:
                raise ArchiveError(f"routing.dqn.weights: {error}") from error
        self.record = np.zeros(1, AGENTS)
        n, listed = len(parameters.radices), parameters.listed or ListedWays(*[np.zeros((1, 1), np.int64)] * 2)
        self._arrays: dict[str, NDArray[Any]] = {
            **self.agents._asdict(),
            "radices": parameters.radices, "coordinates": parameters.coordinates, "home": parameters.home,
            "ways": listed.hops, "nearer": listed.nearer, "allowed": parameters.allowed, "scales": parameters.scales,
            "observation": np.zeros(shape.inputs, np.float32),
            "local": np.zeros(shape.actions, np.int64), "remote": np.zeros(shape.actions, np.int64),
            **self._decisions(ports),
            "hints": np.array([*parameters.hints, NEVER], np.int64), "hint": np.zeros(1, np.int64),
            "int8_lost": np.zeros(1), **self._in_whole_numbers()._asdict(),
        }  # fmt: skip
        for name, array in self._arrays.items():  # the kernels read rows one behind the other
            self._arrays[name] = np.ascontiguousarray(array)
            self.record[name] = self._arrays[name].ctypes.data
        later = self.agents.next_agents.shape[1]
        sizes = (
            parameters.count, shape.inputs, shape.actions, n, len(parameters.agents), shape.weights,
            parameters.settings.replay, later, parameters.settings.batch, len(self.agents.work), parameters.wraps,
            parameters.first_port, parameters.escapes, parameters.vcs, parameters.minimal, parameters.one_hop,
            parameters.decision_cycles, parameters.decision_interval, parameters.decision_queue,
            len(self._arrays["flight"]) // FLIGHT_FIELDS, parameters.listed is not None, parameters.swapped,
            parameters.int8,
            *(self._arrays[name].shape[1] for name in ("int8_weights", "int8_biases", "int8_work")),
        )  # fmt: skip
        for name, value in zip(_SIZES, sizes, strict=True):
            self.record[name] = value
        self.record["unit"] = parameters.rules.reward_unit_cycles

    def install(self, parameters: AgentParameters) -> None:
        """Take the ways and the allowed actions of the same network, but with other links (docs/definitions/dqn.md)."""
        listed = parameters.listed or ListedWays(*[np.zeros((1, 1), np.int64)] * 2)
        for name, array in (("ways", listed.hops), ("nearer", listed.nearer), ("allowed", parameters.allowed)):
            self._arrays[name] = np.ascontiguousarray(array, np.int64)
            self.record[name] = self._arrays[name].ctypes.data
        self.record["listed"] = parameters.listed is not None
        self.parameters = replace(self.parameters, listed=parameters.listed, allowed=parameters.allowed)

    def forget(self, gone: NDArray[np.bool_]) -> int:
        """Take packets that are no more (bool[pool]) out of the queues and decisions; return how many were there."""
        found, depth = 0, self.parameters.decision_queue
        for agent in range(self.parameters.count):
            waiting = self._arrays["waiting"][QUEUE_FIELDS * agent : QUEUE_FIELDS * (agent + 1)]
            queue = self._arrays["queue"][2 * agent * depth : 2 * (agent + 1) * depth].reshape(-1, 2)
            found += _forget(queue, waiting[FIRST : FILL + 1], gone)
        return found + _forget(self._arrays["flight"].reshape(-1, FLIGHT_FIELDS), self._arrays["flight_ends"], gone)

    def _decisions(self, ports: int) -> dict[str, NDArray[np.int64]]:
        """Return what holds the requests of a cycle, the agents' queues and the decisions under way."""
        p = self.parameters
        flights = p.count * (p.decision_cycles // p.decision_interval + 2)
        sizes = {
            "asked": ports, "asked_count": 1, "queue": max(2 * p.count * p.decision_queue, 1),
            "waiting": QUEUE_FIELDS * p.count, "flight": FLIGHT_FIELDS * flights, "flight_ends": 2,
        }  # fmt: skip
        return {name: np.zeros(size, np.int64) for name, size in sizes.items()}

    def _in_whole_numbers(self) -> Int8Agents:
        """Return the networks in whole numbers; without `int8` one of no use."""
        shape = self.parameters.shape
        if not self.parameters.int8:
            return Int8Agents(*(np.zeros((1, 1), np.int32) for _ in Int8Agents._fields))
        seen = given_observations(shape)
        try:
            bits = self.parameters.activation_bits
            return int8_agents([quantised(shape, weights, seen, bits) for weights in self.agents.weights])
        except ValueError as error:
            raise ArchiveError(f"routing.dqn.weights: {self.parameters.weights}: {error}") from error

    @property
    def int8_loss(self) -> float:
        """Q that the decisions in whole numbers have lost in all, as the float network says it."""
        return float(self._arrays["int8_lost"][0])
