"""The flow engine: a program on a network whose messages share bandwidth, from its begin to its end."""

from collections.abc import Callable

import numpy as np

from hopforge.model.config import Config
from hopforge.model.lookup.routes import Routes
from hopforge.model.lookup.spread_routes import SpreadRoutes
from hopforge.model.topology import Topology
from hopforge.model.workload.operations import COMPUTE, POST, SLEEP
from hopforge.sim.programs.cache_delays import CacheUse, cache_use
from hopforge.sim.programs.flow_kernel import (
    DONE,
    FREE,
    FULL,
    HOST,
    ITEM,
    LINK,
    MESSAGE,
    RANK,
    ROUTE,
    SLICE,
    STUCK,
    FlowState,
    advance,
    begin,
)
from hopforge.sim.programs.flow_network import flow_network
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
        known_routes: Routes | SpreadRoutes | None = None,
    ) -> None:
        app, program = config.app, placed.program
        source, destination = placed.source_host, placed.destination_host
        pair = source.astype(np.int64) * topology.hosts + destination
        remote = source != destination
        pairs, number = np.unique(pair[remote], return_inverse=True)
        #: what the routing caches do
        self.cache_use = cache_use(config, topology, placed) if use is None else use
        network = flow_network(
            config, topology, pairs // topology.hosts, pairs % topology.hosts, self.cache_use.miss, known_routes
        )
        route = np.full(program.messages, -1, np.int32)
        route[remote] = number
        latency = network.latency_s
        bound = np.full(len(pairs), np.inf)
        if app.tcp_window_bytes is not None and len(pairs):
            window = app.tcp_window_bytes / (2 * np.maximum(latency, 1e-300))
            bound = np.where(window < network.capacity.max() * app.bandwidth_factor, window, np.inf)
        amount_kind = np.zeros(len(program.amount), np.int8)
        timed = (program.kind == COMPUTE) | (program.kind == SLEEP)
        amount_kind[program.operand[timed]] = program.kind[timed]
        per_flop = 0.0 if app.host_gflops is None else 1e-9 / app.host_gflops
        posted = np.zeros(program.messages, np.bool_)
        posted[program.operand[program.kind == POST]] = True
        self.hops = int(np.diff(network.route_first).max(initial=1))
        messages, ranks, links = program.messages, program.ranks, len(network.capacity)
        slots = max(1, min(FIRST_SLOTS, messages))
        message = np.zeros(messages, MESSAGE)
        message["remaining"] = program.size_bytes + app.envelope_bytes
        message["route"], message["slot"] = route, -1
        message["source"], message["destination"] = program.source, program.destination
        # nobody knows when a rank that receives from anywhere is ready: such messages start at once
        message["early"] = (program.size_bytes < app.buffered_bytes) | ~posted
        message["eager"] = (program.size_bytes < app.eager_bytes) | ~posted
        rank = np.zeros(ranks, RANK)
        rank["at"], rank["last"], rank["finished"] = program.first[:-1], program.first[1:], -1.0
        routes = np.zeros(len(pairs), ROUTE)
        queued = app.injection == "queued"
        routes["first"], routes["last"] = network.route_first[:-1] + queued, network.route_first[1:]
        routes["host"] = pairs // topology.hosts
        buffer = app.buffer_bytes
        if buffer is None:
            buffer = config.router.buffer_flits * config.traffic.flit_bytes
        routes["inside"] = latency + (network.switches - 1) * buffer / network.capacity.min()
        host = np.zeros(topology.hosts if queued else 0, HOST)
        host["buffer"] = buffer
        host["first"] = host["last"] = host["sends"] = -1
        routes["latency"], routes["bound"] = latency * app.latency_factor, bound
        shares = np.where(latency > 0, latency, 1.0) if app.sharing == "latency" else np.ones(len(pairs))
        routes["weight"] = 1 / shares
        link = np.zeros(links, LINK)
        link["capacity"], link["head"] = network.capacity * app.bandwidth_factor, -1
        item = np.zeros(messages + ranks + len(host), ITEM)
        item["place"] = -1
        self.state = FlowState(
            kind=program.kind,
            operand=program.operand,
            size=message["remaining"].copy(),
            duration=np.where(amount_kind == COMPUTE, per_flop, 1.0) * program.amount,
            message=message,
            rank=rank,
            route=routes,
            link=link,
            item=item,
            route_link=network.route_link,
            holder=np.zeros(slots, np.int64),
            slot_mark=np.zeros(slots, np.int64),
            free=np.arange(slots, dtype=np.int32)[::-1].copy(),
            flows=np.zeros(slots, np.int32),
            near=np.zeros((slots * self.hops, 2), np.int32),
            changed=np.zeros(8 * links + 4 * self.hops, np.int32),
            links=np.zeros(links, np.int32),
            heap=np.zeros(len(item), np.int64),
            host=host,
            ready=np.zeros(ranks, np.int32),
            numbers=np.zeros(6, np.int64),
            clock=np.zeros(1),
        )
        self.state.numbers[FREE] = slots
        self.remote = remote
        #: switches on the way of each message through the network
        self.switches = network.switches[number]
        self._compile()  # which is no part of a run's processor time

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
        begin(self.state, self.hops)
        code = SLICE
        while code in (SLICE, FULL):
            code = advance(self.state, self.hops, SLICE_EVENTS)
            if code == FULL:
                self._add_slots()
            if progress is not None:
                progress(int(self.state.numbers[DONE]), len(self.state.message))
        return bool(code != STUCK)

    def _add_slots(self) -> None:
        """Make room for as many moving messages again; entries keep their numbers."""
        state, old = self.state, len(self.state.holder)
        grow = {name: np.concatenate([getattr(state, name), np.zeros_like(getattr(state, name))]) for name in (
            "holder", "free", "near", "slot_mark", "flows",
        )}
        grow["free"][:old] = np.arange(old, 2 * old, dtype=np.int32)
        state.numbers[FREE] = old
        self.state = state._replace(**grow)
