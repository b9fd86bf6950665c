"""One run of the network simulator: from a configuration to measured latency, throughput, hops and channel loads."""

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopforge.model.config import Config
from hopforge.model.config.jobs import JobsWorkload
from hopforge.model.config.limits import simulated_ports_problem
from hopforge.model.config.workload import ProgramWorkload
from hopforge.model.kernel.run_clock import run_seconds
from hopforge.model.network.arrays import change_rates
from hopforge.model.network.core.kinds import DEADLOCK, DONE, GROW, PROGRAM, SCRIPT
from hopforge.model.network.core.sources import NEVER
from hopforge.model.network.core.state import NetState, NetworkError
from hopforge.model.network.core.user_code import refuse_mistake
from hopforge.model.network.parts.agent_build import with_agents
from hopforge.model.network.service_ports import with_service_ports
from hopforge.model.network.settings import Script, SourceParameters, Tables
from hopforge.model.routing import RoutingPlan
from hopforge.model.routing.combined.configured import routing_plan
from hopforge.model.routing.contract.around_failures import check_algorithm
from hopforge.model.routing.proof.deadlock import DeadlockError
from hopforge.model.shared import once
from hopforge.model.topology import Topology
from hopforge.model.topology.configured import network_topology
from hopforge.model.topology.degraded import CYCLES, with_degraded
from hopforge.model.topology.failed import failed_hosts, without_failed
from hopforge.model.topology.limits import MAX_PORTS
from hopforge.sim.failures.epochs import Epoch, make_epochs
from hopforge.sim.failures.input_output_queued import InputOutputQueuedFailures
from hopforge.sim.failures.input_queued import InputQueuedFailures
from hopforge.sim.failures.program_messages import refuse_failed_ranks, refuse_failing_ranks
from hopforge.sim.failures.reconfiguration import FailingNetwork, Reconfiguration
from hopforge.sim.queued.build import IntervalSource, QueuedState
from hopforge.sim.run.agent_watch import AgentWatch
from hopforge.sim.run.buffer_samples import BufferSamples
from hopforge.sim.run.class_latencies import queue_delays
from hopforge.sim.run.counters import read_counters, reset_counters
from hopforge.sim.run.deadlock_text import deadlock_text
from hopforge.sim.run.epoch_routing import EpochRouting
from hopforge.sim.run.flit_networks import Plans, build_flit_network, check_has_flits
from hopforge.sim.run.load_changes import check_load_changes
from hopforge.sim.run.measurement import Measurement
from hopforge.sim.run.routing_proof import RoutingProof
from hopforge.sim.run.run_lengths import run_lengths
from hopforge.sim.run.run_statistics import BATCHES, batch_interval, mser5
from hopforge.sim.run.slow_links import slowings
from hopforge.sim.run.sources import acknowledges, program_source, replies, source_parameters, spraying, with_skew
from hopforge.sim.run.standing_sources import stand_still
from hopforge.sim.run.starvation import StarvationWatch
from hopforge.sim.run.threads import choose_threads
from hopforge.sim.run.traffic_classes import class_traffic, pattern_of
from hopforge.sim.traffic import TrafficError, prepare_traffic
from hopforge.sim.traffic.forecast import message_flits, refuse_many_flits
from hopforge.sim.traffic.placed import PlacedProgram, place_program

#: cycles of one sample; batches of the interval are made of whole samples
SAMPLE_CYCLES = 500
#: routers × cycles of one call of the kernel, about a second, or one sample
SLICE_ROUTER_CYCLES = 500_000
#: samples of the warm-up before it is judged, and at most
WARMUP_SAMPLES, MAX_WARMUP_SAMPLES = 10, 60
_SAMPLES_OF_PROGRESS = 20  # of a fixed warm-up
#: growth of the source queues' delay, cycles per cycle, beyond which a run counts as saturated
SATURATED_GROWTH = 0.005


class Simulation:
    """A network at one load and seed, ready to run.

    Parameters
    ----------
    config : Config
        The whole configuration.
    load : float
        Offered flits per host and cycle.
    seed : int
        Of all random choices.
    topology : Topology, optional
        If already built.
    log_events : int
        Capacity of the event log.
    script : tuple of arrays, optional
        Listed packets (host, time, destination, length) in place of section `traffic`.
    plan : RoutingPlan, optional
        Section `routing`, if already prepared for this network (`routing_plan`).
    placed : PlacedProgram, optional
        The program on its hosts, in place of that of section `workload`.
    script_class : ndarray, optional
        Class of traffic of each listed packet.
    threads : int, optional
        Threads that simulate it, if they can; None: as many as pay (`sim.run.threads`).

    Raises
    ------
    UserError
        Unsuitable routing or traffic, a combination that can deadlock, or more threads than parts.
    """

    def __init__(
        self,
        config: Config,
        load: float,
        seed: int,
        topology: Topology | None = None,
        *,
        log_events: int = 0,
        script: Script | None = None,
        check: bool = True,
        plan: RoutingPlan | None = None,
        placed: PlacedProgram | None = None,
        script_class: NDArray[np.int64] | None = None,
        threads: int | None = 1,
    ) -> None:
        self.config, self.load, self.seed = config, load, seed
        check_has_flits(config)
        whole = self._whole(topology)
        self.topology = without_failed(whole, config.failed)
        if not config.failed.none or config.simulation.failures:
            check_algorithm(config.routing, in_a_run=bool(config.simulation.failures))
        self.plan = routing_plan(config, self.topology) if plan is None else plan
        traffic = config.traffic
        pattern = pattern_of(traffic)
        generator = np.random.default_rng((seed, 3))
        self.traffic = prepare_traffic(self.topology, pattern, traffic.model_dump(), generator)
        self.placed: PlacedProgram | None = None
        #: flits of all messages of a program that go through the network
        self.message_flits = 0
        source = self._source(script, placed)
        self.classes = class_traffic(config, self.topology, load, seed, script_class)
        plans = Plans(self.plan, self._completed(source), self._tables(), seed, log_events)
        self.built = build_flit_network(config, self.topology, plans)
        self.state: NetState = self.built.state
        #: what its agents do, None: it has none
        self.agents = None if self.state.agents is None else AgentWatch(self.state)
        #: how full input buffers were at the end of each sample
        self.buffers = BufferSamples(self.state)
        #: packets and hosts that do not move while the others do, None: the router model has no such watch
        self.starvation: StarvationWatch | None = None
        if not isinstance(self.state, QueuedState):
            limit = int(self.state["deadlock_cycles"])
            self.starvation = StarvationWatch(self.topology, self.state, limit, self.sample_cycles)
        silent = failed_hosts(self.topology, config.failed)
        if self.placed is not None:
            refuse_failed_ranks(silent, self.placed)
        self._silence(silent)
        proof = RoutingProof(config, self.topology, self.plan, self.state, seed)
        #: how it was proved free of deadlock, for people; empty: it was not
        self.proof = ""
        if config.routing.check and check:
            again = bool(config.simulation.failures)
            self.proof = once(
                ("proof", self.topology, config.routing, config.tables, config.router, traffic, config.lookup, again,
                 seed),
                lambda: proof.prove(silent, resends=again),
            )  # fmt: skip
        #: changes of the rates of links that are still to come
        self._slowings = slowings(self.state, self.topology, config)
        #: what fails during the run, None: nothing
        self.reconfiguration: Reconfiguration | None = None
        if config.simulation.failures:
            self.reconfiguration = self._reconfiguration(whole, check=check)
        #: threads that simulate it, and why it is one
        self.threads = choose_threads(threads, config, self.state, self.plan, self.traffic.pattern)

    def _whole(self, topology: Topology | None) -> Topology:
        """Build the network before anything has failed, with the ports of services."""
        config = self.config
        if topology is None:
            problem = simulated_ports_problem(config.topology, MAX_PORTS)
            if problem is not None:  # before a network of thousands of links per router is built
                raise NetworkError(str(problem))
            topology = network_topology(config)
        whole = with_degraded(topology, config.degraded, config.seed, times=CYCLES)
        return whole if config.traffic.acknowledge is None else with_service_ports(whole)

    def _source(self, script: Script | None, placed: PlacedProgram | None) -> SourceParameters:
        """Prepare what hosts send: listed packets, a program, or traffic at the load."""
        config = self.config
        if script is not None:
            return SourceParameters(
                kind=SCRIPT, script=script, replies=replies(config), acknowledges=acknowledges(config)
            )
        if config.traffic.source != "program":
            return source_parameters(config, self.load, self.traffic.round_packets)
        workload = config.workload
        assert isinstance(workload, ProgramWorkload | JobsWorkload), "checked by model.config"
        if placed is None:
            assert isinstance(workload, ProgramWorkload), "checked by model.config"
            placed = place_program(workload, self.topology, self.seed)
        self.placed = placed
        program = program_source(config, placed)
        self.message_flits = message_flits(program)
        refuse_many_flits(self.message_flits, workload.max_flits)
        return SourceParameters(kind=PROGRAM, program=program, acknowledges=acknowledges(config))

    def _completed(self, source: SourceParameters) -> SourceParameters:
        """Add to what hosts send its skew, spraying, classes of traffic, and the agents that acknowledges inform."""
        source = replace(
            with_skew(source, self.config, self.topology.routers, self.seed), spraying=spraying(self.config)
        )
        if self.classes is not None:
            source = replace(source, classes=self.classes.kernel)
        if self.plan.agents is not None:
            assert source.acknowledges is not None, "checked by routing_plan"
            source = replace(source, acknowledges=with_agents(source.acknowledges, self.plan.agents))
        return source

    def _tables(self) -> Tables:
        """Tables of routing and traffic."""
        plan, decision = self.plan, self.config.routing.decision
        return Tables(
            routing=plan.table,
            memory=plan.memory,
            pattern=self.traffic.table,
            max_candidates=plan.max_candidates,
            inject_mask=plan.inject_mask,
            inject_by_destination=plan.inject_by_destination,
            reply_mask=plan.reply_mask,
            ack_mask=plan.ack_mask,
            feedback=plan.feedback,
            agents=None if plan.agents is None else replace(plan.agents, seed=self.seed),
            decides=decision != "router",
            decides_ahead=decision == "ahead",
            rows=plan.rows,
        )

    def _silence(self, failed: NDArray[np.bool_]) -> None:
        """Stop the sources of hosts that the pattern leaves out, and all that `failed` hosts do."""
        senders = self.state.senders
        if self.traffic.silent is not None:
            senders["next_time"][self.traffic.silent] = NEVER
            senders["stopped"][self.traffic.silent] = 1
        if self.classes is not None:
            self.classes.silence(self.state, failed)
        for name, value in (("next_time", NEVER), ("stopped", 1), ("inject_mask", 0), ("reply_mask", 0)):
            senders[name][failed] = value

    def _reconfiguration(self, whole: Topology, *, check: bool) -> Reconfiguration:
        """Prepare the failures of section `simulation`: the routing of every state that the network comes to."""
        routing = EpochRouting(self.config, self.plan, self.state, self.seed, check=check)
        failing: FailingNetwork
        if isinstance(self.state, QueuedState):
            failing = InputOutputQueuedFailures(self.state, self.topology, self.seed, self.traffic.pattern)
        else:
            failing = InputQueuedFailures(self.state, self.seed, self.traffic.pattern)
        per_flit, runs = self.built.flit_cycles, self.config.simulation
        epochs = make_epochs(whole, runs.failures, self.config.failed, routing.prepare, per_flit)
        if self.placed is not None:
            refuse_failing_ranks(epochs, self.placed)

        def install(epoch: Epoch) -> None:
            self.plan = epoch.plan
            routing.install(epoch)

        return Reconfiguration(
            self.state,
            failing,
            epochs,
            self._run_kernel,
            install,
            runs.failure_series_cycles * per_flit,
            per_flit,
            self.built.cycle_ns,
        )

    def advance(self, cycles: int) -> int:
        """Simulate `cycles` cycles, through what fails in them; returns the kernel's last code.

        Raises
        ------
        DeadlockError
            Nothing has moved for ``simulation.deadlock_cycles`` with flits in flight.
        """
        end = int(self.state["cycle"]) + cycles
        while self._slowings and self._slowings[0].cycle < end:
            before = self._slowings[0].cycle - int(self.state["cycle"])
            code = self._advance(before) if before > 0 else DONE
            if code != DONE:
                return code
            self._slowings.pop(0).happen(self.state)
        return self._advance(end - int(self.state["cycle"]))

    def compile(self) -> None:
        """Compile the kernel now: that is no part of the processor time of a run."""
        self._run_kernel(0)

    def _advance(self, cycles: int) -> int:
        return self._run_kernel(cycles) if self.reconfiguration is None else self.reconfiguration.advance(cycles)

    def _run_kernel(self, cycles: int) -> int:
        end, most = int(self.state["cycle"]) + cycles, max(SLICE_ROUTER_CYCLES // self.topology.routers, SAMPLE_CYCLES)
        while True:  # in slices: Python hears no signal while the kernel runs
            left = end - int(self.state["cycle"])
            code = self._kernel(self.plan.route, self.traffic.pattern, min(left, most))
            refuse_mistake(self.state.record[0])
            if code == GROW:
                self.state.grow_packets()
                continue
            if code == DEADLOCK:
                raise DeadlockError(deadlock_text(self.topology, self.plan, self.state, self.config.router))
            if code != DONE or left <= most:
                return int(code)

    @cached_property
    def _kernel(self) -> Callable[[Any, Any, int], int]:
        """What simulates a number of cycles, as one part or as several."""
        if self.threads.parts == 1:
            return self.built.run
        from hopforge.model.network.threads.crew import Crew  # noqa: PLC0415 - compiled where it is used

        return Crew(self.state, self.threads.parts, self.threads.threads, self.built.run).run

    @property
    def unroutable_packets(self) -> int:
        """Packets of a program that were dropped for want of an output, without those that failures cost."""
        lost = 0 if self.reconfiguration is None else self.reconfiguration.lost_packets
        return max(int(self.state["packets_dropped"]) - lost, 0)

    def check_conservation(self) -> None:
        """Every flit that was sent and has not arrived stands in a FIFO or on a link (our own mistake otherwise)."""
        counted, present = self.state.flits_in_flight, self.state.flits_present
        if counted != present:
            raise AssertionError(f"{counted} flits should be in flight, {present} are there")
        if self.reconfiguration is not None and self.reconfiguration.lost_flits > int(self.state["flits_dropped"]):
            raise AssertionError(
                f"of {int(self.state['flits_dropped'])} lost flits {self.reconfiguration.lost_flits} are told"
            )

    def reset_measures(self) -> None:
        """Start a measurement: all counters from zero."""
        reset_counters(self.built, self.classes)
        self.buffers.reset()

    @property
    def sample_cycles(self) -> int:
        """Cycles of one sample."""
        return SAMPLE_CYCLES * self.built.flit_cycles

    def plan_loads(self, loads: dict[int, float]) -> None:
        """Say before the first cycle from which cycles on which load is offered; `set_load` then follows.

        A Bernoulli source needs to know: packets of a source queue, and the next one of every host, are drawn at other
        times than those in which they are created.

        Raises
        ------
        TrafficError
            The source is none of `bernoulli`, `interval` and `rounds`, or the present load is 0.
        """
        check_load_changes(self.config, self.load)
        if self.config.traffic.source != "bernoulli":
            return
        cycles = sorted(loads)
        change_rates(self.state, cycles, [self._packet_rate(loads[cycle]) for cycle in cycles])
        if isinstance(self.state, QueuedState):
            self.state.enter_hosts()

    def _packet_rate(self, load: float) -> float:
        """Packets per host and cycle of a Bernoulli source."""
        rate = source_parameters(self.config, load, self.traffic.round_packets).packet_rate
        return float(rate) / self.built.flit_cycles

    def set_load(self, load: float) -> None:
        """Change the offered load, as planned; of `interval` and `rounds` the next packet of a host keeps its time."""
        source = source_parameters(self.config, load, self.traffic.round_packets)
        if isinstance(source, IntervalSource) and isinstance(self.state, QueuedState):
            self.state.set_interval(source.interval_packets)
        else:  # for hosts that work again
            with np.errstate(divide="ignore"):
                self.state.record["log_failure"] = np.log1p(-self._packet_rate(load))
        self.load = load

    def _sample(self, cycles: int) -> tuple[int, int]:
        """Run one sample; returns packets and sum of latencies."""
        before = int(self.state["measured"]), int(self.state["latency_sum"])
        self.advance(cycles)
        self.check_conservation()
        if self.agents is not None:
            self.agents.note()
        self.buffers.note()
        if self.starvation is not None:
            self.starvation.note()
        return int(self.state["measured"]) - before[0], int(self.state["latency_sum"]) - before[1]

    def _advance_noting(self, cycles: int, progress: Callable[[int], None] | None) -> int:
        """Advance, and note what agents do in every sample of it; ends early if they get no numbers."""
        step = self.sample_cycles * (1 if self.agents is not None else _SAMPLES_OF_PROGRESS)
        for begin in range(0, cycles, step):
            self.advance(min(step, cycles - begin))
            if self.agents is not None:
                self.agents.note()
            if progress is not None:
                progress(min(begin + step, cycles))
            if self.agents is not None and self.agents.diverged:
                return min(begin + step, cycles)
        return cycles

    def warm_up(self, progress: Callable[[int], None] | None = None) -> int:
        """Run until the start-up is over; returns the cycles it took.

        With ``warmup_cycles: 0`` the end is found by MSER-5 on the mean latencies of samples: the truncation point that
        minimises the standard error of the rest must lie in the first half.
        """
        fixed = run_lengths(self.config, self.built).warmup
        if fixed:
            return self._advance_noting(fixed, progress)
        means: list[float] = []
        while len(means) < MAX_WARMUP_SAMPLES and not (self.agents is not None and self.agents.diverged):
            packets, total = self._sample(self.sample_cycles)
            means.append(total / packets if packets else 0.0)
            if progress is not None:
                progress(len(means) * self.sample_cycles)
            if len(means) >= WARMUP_SAMPLES and mser5(means) <= len(means) // 2:
                break
        return len(means) * self.sample_cycles

    def run(self, progress: Callable[[int], None] | None = None) -> Measurement:
        """Warm up, measure until the interval is tight enough or a limit is reached.

        Parameters
        ----------
        progress : callable, optional
            Called with the cycles done after every sample.

        Raises
        ------
        TrafficError
            Hosts run a program (`sim.run.program_run`).
        """
        if self.placed is not None:
            raise TrafficError("traffic.source: a program has no load; hopforge net runs it once, from begin to end")
        limits = self.config.simulation
        self.compile()
        started = run_seconds()
        warmup = self.warm_up(progress)
        self.reset_measures()
        first_delays, cycles, made = queue_delays(self.state), 0, int(self.state["packets_created"])
        samples: list[tuple[int, int]] = []
        stop = "max_cycles" if limits.measure_us is None else "measure_us"
        _, least, most = run_lengths(self.config, self.built)
        while cycles < most:
            sample = min(self.sample_cycles, most - cycles)  # the last one ends where it was asked to
            samples.append(self._sample(sample))
            cycles += sample
            if progress is not None:
                progress(warmup + cycles)
            if self.agents is not None and self.agents.diverged:
                stop = "diverged"
                break
            ends_by_itself = limits.measure_us is None and self.reconfiguration is None
            if ends_by_itself and cycles >= least and len(samples) >= BATCHES:
                mean, half = batch_interval(samples)
                if half <= limits.precision * mean:
                    stop = "precision"
                    break
                if len(samples) % BATCHES == 0 and self._growth(first_delays, cycles) > 4 * SATURATED_GROWTH:
                    stop = "saturated"
                    break
        growth, (mean, half) = self._growth(first_delays, cycles), batch_interval(samples)
        return Measurement(
            load=self.load,
            seed=self.seed,
            saturated=growth > SATURATED_GROWTH or self._stands_still(made, cycles),
            stop=stop,
            warmup_cycles=warmup,
            cycles=cycles,
            latency=mean,
            latency_interval=half,
            cycle_ns=self.built.cycle_ns,
            cpu_seconds=run_seconds() - started,
            **read_counters(self.built, self.topology, self.classes, cycles, mean),
        )

    def _stands_still(self, made: int, cycles: int) -> bool:
        """Whether hosts have stood still for want of places in their NICs since they had made so many packets."""
        if not isinstance(self.state, QueuedState) or self.reconfiguration is not None:
            return False
        packets = int(self.state["packets_created"]) - made
        return stand_still(self.state, packets, cycles)

    def _growth(self, first_delays: NDArray[np.float64], cycles: int) -> float:
        if self.classes is not None:
            return float(self.classes.growth(self.state, cycles).max())
        return float((queue_delays(self.state) - first_delays).max()) / cycles
