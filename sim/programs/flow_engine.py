"""The flow engine: a program on a network whose messages share bandwidth, from its begin to its end."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopforge.model.config import Config
from hopforge.model.lookup.lid_routes import KnownRoutes
from hopforge.model.topology import Topology
from hopforge.model.workload.operations import COMPUTE, JOIN, SLEEP
from hopforge.model.workload.program import Program
from hopforge.sim.programs.cache_delays import CacheUse, cache_use
from hopforge.sim.programs.flow_change import Change, alter, changes
from hopforge.sim.programs.flow_kernel import CHANGE, FULL, SLICE, STUCK, UNITS, advance, begin, let_go
from hopforge.sim.programs.flow_messages import new_messages
from hopforge.sim.programs.flow_state import (
    BASE,
    CALLED,
    DONE,
    EVENT,
    FLOW,
    FREE,
    HOST,
    LINK,
    LINKS,
    NUMBERS,
    RANK,
    FlowState,
)
from hopforge.sim.programs.flow_ways import FlowWays, buffer_bytes, flow_ways
from hopforge.sim.run.unit_times import UnitTimes
from hopforge.sim.traffic.placed import PlacedProgram

#: points in time between two looks at the keyboard
SLICE_EVENTS = 20_000
FIRST_SLOTS = 1024


class FlowRun:
    """A program on a network, at the flow level.

    Parameters
    ----------
    config : Config
        Sections `app`, `timing`, `lookup` and `address` are used.
    topology : Topology
        The network.
    placed : PlacedProgram
        The program on its hosts.
    use : CacheUse, optional
        What its lookups find, if that is known already.
    known_routes : Routes, optional
        Those of the configuration, if they are known already.
    units : UnitTimes, optional
        Of a program with collectives that units do.
    cycle_s : float
        Seconds of a cycle of the units.
    ways : FlowWays, optional
        The routes of its messages, if they are known already.

    Attributes
    ----------
    state : FlowState
        Arrays of the kernel.
    """

    def __init__(
        self,
        config: Config,
        topology: Topology,
        placed: PlacedProgram,
        use: CacheUse | None = None,
        known_routes: KnownRoutes | None = None,
        units: UnitTimes | None = None,
        cycle_s: float = 0.0,
        ways: FlowWays | None = None,
    ) -> None:
        self._units, self._cycle_s = units, cycle_s
        program, hosts = placed.program, topology.hosts
        #: what the routing caches do
        self.cache_use = cache_use(config, topology, placed) if use is None else use
        self._factor = config.app.bandwidth_factor
        self._changes: list[Change] = changes(config, topology)
        if ways is None:
            ways = flow_ways(config, topology, placed, self.cache_use, known_routes)
        network = ways.network
        routes: Any = ways.routes
        bounded = bool(np.isfinite(routes["bound"]).any())
        self.hops = int((routes["last"] - routes["first"]).max(initial=1)) + bounded
        links = len(network.capacity)
        slots = max(1, min(FIRST_SLOTS, program.messages))
        rank = np.zeros(program.ranks, RANK)
        rank["at"], rank["last"], rank["finished"] = program.first[:-1], program.first[1:], -1.0
        rank["waits"] = -1
        host = np.zeros(hosts if config.app.injection == "queued" else 0, HOST)
        host["buffer"] = buffer_bytes(config)
        host["first"] = host["last"] = host["sends"] = -1
        link = np.zeros(links + bounded * slots, LINK)
        link["capacity"][:links] = network.capacity * config.app.bandwidth_factor
        link["head"], link["hard"][links:] = -1, True
        base = program.ranks + len(host) + links
        self.state = FlowState(
            kind=np.ascontiguousarray(program.kind),
            operand=np.ascontiguousarray(_operands(program)),
            source=np.ascontiguousarray(program.source),
            destination=np.ascontiguousarray(program.destination),
            size=np.ascontiguousarray(program.size_bytes),
            duration=_durations(config, placed),
            message=_with_parts(
                new_messages(program, ways.pairs.number, config.app.buffered_bytes, config.app.eager_bytes), program
            ),
            flow=np.zeros(slots, FLOW),
            rank=rank,
            route=routes,
            link=link,
            host=host,
            next=np.zeros(program.messages if len(host) else 0, np.int32),
            route_link=np.ascontiguousarray(network.route_link),
            way=np.zeros(slots * self.hops, np.int32),
            near=np.zeros((slots * self.hops, 2), np.int32),
            heap=np.zeros(base + slots, EVENT),
            place=np.full(base + slots, -1, np.int32),
            free=np.arange(slots, dtype=np.int32)[::-1].copy(),
            fresh=np.zeros(slots, np.int32),
            news=np.zeros(slots, np.int32),
            flows=np.zeros(slots, np.int32),
            dirty=np.zeros(len(link), np.int32),
            links=np.zeros(len(link), np.int32),
            touched=np.zeros(len(link), np.int32),
            opened=np.zeros(len(link), np.int32),
            ready=np.zeros(program.ranks, np.int32),
            numbers=np.zeros(NUMBERS, np.int64),
            clock=np.array([0.0, config.app.envelope_bytes, np.inf]),
        )
        self.state.numbers[[FREE, LINKS, BASE]] = slots, links, base
        self._messages = program.messages
        #: switches on each route
        self.route_switches = network.switches
        if self._changes:
            self.state.clock[2] = self._changes[0].time_s
        self._compile()  # which is no part of a run's processor time

    @property
    def remote(self) -> NDArray[np.bool_]:
        """Messages that go through the network, bool[message]."""
        return np.asarray(self.messages["route"] >= 0)

    @property
    def messages(self) -> NDArray[np.void]:
        """Records `MESSAGE` of the messages."""
        return self.state.message[: self._messages]

    @property
    def switches(self) -> NDArray[np.int64]:
        """Switches on the way of each message through the network."""
        found: NDArray[np.int64] = self.route_switches[self.messages["route"][self.remote]]
        return found

    def _compile(self) -> None:
        advance(self.state, self.hops, 0)

    def run(self, progress: Callable[[int, int], None] | None = None) -> bool:
        """Run to the end.

        Parameters
        ----------
        progress : callable, optional
            Called with the messages that have arrived, and all.

        Returns
        -------
        bool
            False: ranks wait for ever; ``state.at`` tells where.
        """
        begin(self.state)
        code = SLICE
        while code in (SLICE, FULL, UNITS, CHANGE):
            code = advance(self.state, self.hops, SLICE_EVENTS)
            if code == FULL:
                self._add_slots()
            elif code == UNITS:
                self._join()
                continue
            elif code == CHANGE:
                self._change()
            if progress is not None:
                progress(int(self.state.numbers[DONE]), self._messages)
        return bool(code != STUCK)

    def _change(self) -> None:
        """Let links have their new rates."""
        change = self._changes.pop(0)
        alter(self.state, self.hops, change.capacity * self._factor)
        self.state.clock[2] = self._changes[0].time_s if self._changes else np.inf

    def _join(self) -> None:
        """Let units do the calls that are complete."""
        units, state, cycle = self._units, self.state, self._cycle_s
        assert units is not None, "the program has collectives of units"
        calls, at = units.calls, int(state.numbers[CALLED])
        state.numbers[CALLED] = 0
        while at > 0:
            call = at - self._messages - calls.parts
            first, last = calls.first[call : call + 2].tolist()
            parts = state.message[self._messages + first : self._messages + last]
            # a time that is a cycle but for rounding is that cycle
            entered = np.ceil(parts["began"] / cycle - 1e-6).astype(np.int64)
            finish = units.finish(call, entered) * cycle
            at = int(state.message[at]["route"])
            let_go(state, calls.rank[first:last], self._messages + first, finish)

    def _add_slots(self) -> None:
        """Make room for as many moving messages again; entries keep their numbers."""
        state, old = self.state, len(self.state.flow)
        base, links = int(state.numbers[BASE]), int(state.numbers[LINKS])
        grow = {name: _doubled(getattr(state, name)) for name in (
            "flow", "way", "near", "free", "fresh", "news", "flows",
        )}
        grow["free"][:old] = np.arange(old, 2 * old, dtype=np.int32)
        grow |= {"heap": _longer(state.heap, base + 2 * old), "place": _longer(state.place, base + 2 * old)}
        grow["place"][base + old:] = -1
        if len(state.link) > links:  # bounds of the flows
            grow |= {name: _longer(getattr(state, name), links + 2 * old) for name in (
                "link", "dirty", "links", "touched", "opened",
            )}
            grow["link"]["head"][links + old:], grow["link"]["hard"][links + old:] = -1, True
        state.numbers[FREE] = old
        self.state = state.with_fields(**grow)


def _operands(program: Program) -> NDArray[np.int64]:
    """Return operands, those of JOIN as places behind the messages."""
    if program.units is None:
        return program.operand
    return program.operand + (program.kind == JOIN) * program.messages


def _with_parts(message: NDArray[np.void], program: Program) -> NDArray[np.void]:
    """Return the messages, and the records of collectives of units behind them."""
    units = program.units
    if units is None:
        return message
    found = _longer(message, program.messages + units.parts + len(units.calls))
    parts, calls = np.split(found[program.messages :], [units.parts])
    parts["began"] = parts["arrived"] = -1.0
    parts["route"], parts["early"] = program.messages + units.parts + units.call, units.sends
    calls["route"] = np.bincount(units.call, units.sends, len(units.calls))
    return found


def _longer(array: NDArray[Any], size: int) -> NDArray[Any]:
    return np.concatenate([array, np.zeros((size - len(array), *array.shape[1:]), array.dtype)])


def _doubled(array: NDArray[Any]) -> NDArray[Any]:
    return _longer(array, 2 * len(array))


def _durations(config: Config, placed: PlacedProgram) -> NDArray[np.float64]:
    """Return the seconds of each amount, of COMPUTE and SLEEP."""
    program = placed.program
    if not len(program.amount):
        return np.zeros(0)
    amount_kind = np.zeros(len(program.amount), np.int8)
    timed = (program.kind == COMPUTE) | (program.kind == SLEEP)
    amount_kind[program.operand[timed]] = program.kind[timed]
    per_flop = 0.0 if config.app.host_gflops is None else 1e-9 / config.app.host_gflops
    found: NDArray[np.float64] = np.where(amount_kind == COMPUTE, per_flop, 1.0) * program.amount
    return found
