"""The router models of the network simulator by name (``router.model``): how a network is built and stepped."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from hopforge.model.config import Config
from hopforge.model.errors import UserError
from hopforge.model.network.core.state import NetState
from hopforge.model.network.settings import SourceParameters, Tables
from hopforge.model.topology import Topology
from hopforge.model.topology.link_times import queued_times
from hopforge.sim.queued.build import QueuedState, QueueParameters, build_queues


@dataclass(frozen=True)
class Built:
    """A network of one router model at cycle 0.

    Attributes
    ----------
    state : NetState
        With the counters that every model fills.
    run : function
        ``run(route, pattern, cycles) -> code`` of `model.network.core.records`.
    flit_cycles : int
        Cycles that a flit takes on the link of a host: a load of 1 is a flit in this time.
    bin_cycles : int
        Width of the bins of the latency histogram.
    cycle_ns : float
        Length of a cycle, 0 if it is not known.
    """

    state: NetState
    run: Callable[[Any, Any, int], int]
    flit_cycles: int = 1
    bin_cycles: int = 1
    cycle_ns: float = 0.0

    def derouted(self) -> int:
        """Packets that arrived on a way that was not minimal, since the last `reset` (0: the model does not count)."""
        return int(self.state.queue_record["derouted"][0]) if isinstance(self.state, QueuedState) else 0

    def reset(self) -> None:
        """Begin to count anew."""
        if isinstance(self.state, QueuedState):
            self.state.queue_record["derouted"] = 0


#: name → ``build(config, topology, source, tables, seed)``; `input_queued` is built by `sim.run.simulation` itself
ROUTER_MODELS: dict[str, Callable[[Config, Topology, SourceParameters, Tables, int], Built]] = {}


def _input_output_queued(
    config: Config, topology: Topology, source: SourceParameters, tables: Tables, seed: int
) -> Built:
    from hopforge.sim.queued.kernel import run_cycles  # noqa: PLC0415 - compiled where it is used

    router, times = config.router, queued_times(config.router, topology)
    per_flit = times.flit_cycles
    parameters = QueueParameters(
        vcs=router.vcs,
        input_packets=router.buffer_flits,
        output_packets=router.output_buffer_flits,
        packet_cycles=per_flit,
        match_cycles=times.crossbar_cycles,
        flight_cycles=times.flight_cycles,
        nic_packets=config.traffic.nic_packets,
        deadlock_cycles=config.simulation.deadlock_cycles * per_flit,
    )
    scaled = replace(
        source,
        packet_rate=source.packet_rate / per_flit,
        on_to_off=source.on_to_off / per_flit,
        off_to_on=source.off_to_on / per_flit,
    )
    state: QueuedState = build_queues(topology, parameters, scaled, tables, seed)

    def run(route: Any, pattern: Any, cycles: int) -> int:
        return int(run_cycles(route, pattern, state.record[0], state.queue_record[0], cycles))

    return Built(state, run, per_flit, int(state.queue_record["bin_cycles"][0]), times.cycle_ns)


ROUTER_MODELS["input_output_queued"] = _input_output_queued


def build_model(config: Config, topology: Topology, source: SourceParameters, tables: Tables, seed: int) -> Built:
    """Build the network with the routers of ``router.model``.

    Raises
    ------
    UserError
        A model that only `hopforge net` knows.
    """
    if config.router.model not in ROUTER_MODELS:
        known = ", ".join(["input_queued", *ROUTER_MODELS])
        raise UserError(f"router.model must be one of {known} here, not {config.router.model}")
    return ROUTER_MODELS[config.router.model](config, topology, source, tables, seed)
