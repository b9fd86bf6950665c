"""One run of the network simulator: from a configuration to measured latency, throughput, hops and channel loads."""

import math
import time
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
from hopforge.model.network.build import build_net
from hopforge.model.network.core.records import DEADLOCK, DONE, GROW, PROGRAM, SCRIPT
from hopforge.model.network.core.sources import NEVER
from hopforge.model.network.core.state import NetState, NetworkError
from hopforge.model.network.core.user_code import refuse_mistake
from hopforge.model.network.parts.agent_build import with_agents
from hopforge.model.network.parts.trail_tables import flush_tables
from hopforge.model.network.service_ports import with_service_ports
from hopforge.model.network.settings import Script, SourceParameters, Tables
from hopforge.model.routing import RoutingError, RoutingPlan
from hopforge.model.routing.configured import routing_plan
from hopforge.model.routing.deadlock import DeadlockError, channel_name, check_routing, find_cycle, waiting_cycle
from hopforge.model.routing.guard import spare_guard
from hopforge.model.routing.message_dependence import refuse_message_cycle
from hopforge.model.routing.reachable import packet_lengths
from hopforge.model.routing.short_proof import prove_routing
from hopforge.model.shared import once
from hopforge.model.topology import Topology
from hopforge.model.topology.configured import network_topology
from hopforge.model.topology.degraded import CYCLES, with_degraded
from hopforge.model.topology.failed import failed_hosts, without_failed
from hopforge.model.topology.limits import MAX_PORTS
from hopforge.sim.failures.epochs import Epoch, check_algorithm, make_epochs
from hopforge.sim.failures.flush import reprogram_engines
from hopforge.sim.failures.input_output_queued import InputOutputQueuedFailures
from hopforge.sim.failures.input_queued import InputQueuedFailures
from hopforge.sim.failures.program_messages import refuse_failing_ranks
from hopforge.sim.failures.reconfiguration import FailingNetwork, Reconfiguration
from hopforge.sim.queued.build import IntervalSource, QueuedState
from hopforge.sim.run.agent_watch import AgentWatch
from hopforge.sim.run.buffer_samples import BufferSamples
from hopforge.sim.run.class_latencies import acknowledge_age, class_latencies, reply_ages, reset_classes
from hopforge.sim.run.flit_networks import Plans, build_flit_network, check_has_flits, flit_router_parameters
from hopforge.sim.run.lookup_measures import lookup_totals
from hopforge.sim.run.lookup_routing import check_keys, route_lookup
from hopforge.sim.run.measurement import Measurement
from hopforge.sim.run.network_latency import network_latencies, reset_network_latency
from hopforge.sim.run.reordering import reordering, reset_reordering
from hopforge.sim.run.run_statistics import BATCHES, batch_interval, largest_of, mean_of, mser5, percentile
from hopforge.sim.run.slow_links import slowings
from hopforge.sim.run.sources import acknowledges, program_source, replies, source_parameters, spraying, with_skew
from hopforge.sim.run.starvation import StarvationWatch
from hopforge.sim.run.threads import choose_threads
from hopforge.sim.run.traffic_classes import class_traffic
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
        if topology is None:
            problem = simulated_ports_problem(config.topology, MAX_PORTS)
            if problem is not None:  # before a network of thousands of links per router is built
                raise NetworkError(str(problem))
        given = network_topology(config) if topology is None else topology
        whole = with_degraded(given, config.degraded, config.seed, times=CYCLES)
        if config.traffic.acknowledge is not None:
            whole = with_service_ports(whole)
        self.topology = without_failed(whole, config.failed)
        routing = config.routing
        if not config.failed.none or config.simulation.failures:
            check_algorithm(routing)
        self.plan = routing_plan(config, self.topology) if plan is None else plan
        traffic = config.traffic
        pattern = str(traffic.file) if traffic.file is not None else traffic.pattern
        generator = np.random.default_rng((seed, 3))
        self.traffic = prepare_traffic(self.topology, pattern, traffic.model_dump(), generator)
        self.placed: PlacedProgram | None = None
        #: flits of all messages of a program that go through the network
        self.message_flits = 0
        if script is not None:
            source = SourceParameters(
                kind=SCRIPT, script=script, replies=replies(config), acknowledges=acknowledges(config)
            )
        elif traffic.source == "program":
            workload = config.workload
            assert isinstance(workload, ProgramWorkload | JobsWorkload), "checked by model.config"
            if placed is None:
                assert isinstance(workload, ProgramWorkload), "checked by model.config"
                placed = place_program(workload, self.topology, seed)
            self.placed = placed
            program = program_source(config, self.placed)
            self.message_flits = message_flits(program)
            refuse_many_flits(self.message_flits, workload.max_flits)
            source = SourceParameters(kind=PROGRAM, program=program, acknowledges=acknowledges(config))
        else:
            source = source_parameters(config, load, self.traffic.round_packets)
        source = replace(with_skew(source, config, self.topology.routers, seed), spraying=spraying(config))
        self.classes = class_traffic(config, self.topology, load, seed, script_class)
        if self.classes is not None:
            source = replace(source, classes=self.classes.kernel)
        if self.plan.agents is not None:
            assert source.acknowledges is not None, "checked by routing_plan"
            source = replace(source, acknowledges=with_agents(source.acknowledges, self.plan.agents))
        tables = Tables(
            routing=self.plan.table,
            memory=self.plan.memory,
            pattern=self.traffic.table,
            max_candidates=self.plan.max_candidates,
            inject_mask=self.plan.inject_mask,
            inject_by_destination=self.plan.inject_by_destination,
            reply_mask=self.plan.reply_mask,
            ack_mask=self.plan.ack_mask,
            feedback=self.plan.feedback,
            agents=None if self.plan.agents is None else replace(self.plan.agents, seed=seed),
            decides=routing.decision != "router",
            decides_ahead=routing.decision == "ahead",
        )
        self.built = build_flit_network(config, self.topology, Plans(self.plan, source, tables, seed, log_events))
        self.state: NetState = self.built.state
        #: what its agents do, None: it has none
        self.agents = None if self.state.agents is None else AgentWatch(self.state)
        #: how full input buffers were at the end of each sample
        self.buffers = BufferSamples(self.state)
        #: packets and hosts that do not move while the others do, None: the router model has no such watch
        self.starvation: StarvationWatch | None = None
        if not isinstance(self.state, QueuedState):
            limit = config.simulation.deadlock_cycles * self.built.flit_cycles
            self.starvation = StarvationWatch(self.topology, self.state, limit, self.sample_cycles)
        if self.traffic.silent is not None:
            self.state.senders["next_time"][self.traffic.silent] = NEVER
            self.state.senders["stopped"][self.traffic.silent] = 1
        silent = failed_hosts(self.topology, config.failed)
        if self.classes is not None:
            self.classes.silence(self.state, silent)
        for name, value in (("next_time", NEVER), ("stopped", 1), ("inject_mask", 0), ("reply_mask", 0)):
            self.state.senders[name][silent] = value
        #: how it was proved free of deadlock, for people; empty: it was not
        self.proof = ""
        if routing.check and check:
            resends = bool(config.simulation.failures)
            self.proof = once(
                ("proof", self.topology, routing, config.tables, config.router, traffic, config.lookup, resends, seed),
                lambda: self._prove(silent, resends=resends),
            )
        #: changes of the rates of links that are still to come
        self._slowings = slowings(self.state, self.topology, config)
        #: what fails during the run, None: nothing
        self.reconfiguration = self._reconfiguration(whole, check=check) if config.simulation.failures else None
        #: threads that simulate it, and why it is one
        self.threads = choose_threads(threads, config, self.state, self.plan, self.traffic.pattern)

    def _prove(self, silent: NDArray[np.bool_], *, resends: bool) -> str:
        """Prove that the network cannot deadlock, and that keys tell apart what has different routes; says how."""
        proof = prove_routing(
            self.topology, self.plan, self.state, self.config.routing.algorithm, ~silent,
            build=self._smaller_state, resends=resends,
            seconds=self.config.routing.proof_limit_s,
        )  # fmt: skip
        if self.config.traffic.reply is not None:
            refuse_message_cycle(self.topology, self.plan, self.state, self.config.routing.algorithm)
        if not resends and not silent.any():
            spare_guard(self.plan, self.state["table"])
        if self.state.lookup is not None:
            check_keys(self.config, self.topology, self.plan, self.state)
        return proof

    def _smaller_state(self, topology: Topology, plan: RoutingPlan) -> NetState:
        """Build a smaller network of the same routers, for a proof; what computes its routes does not matter there."""
        router = self.config.router.model_copy(update={"route_computation": "table"})
        config = self.config.model_copy(update={"router": router})
        tables = Tables(plan.table, plan.memory, max_candidates=plan.max_candidates)
        return build_flit_network(config, topology, Plans(plan, SourceParameters(), tables, self.seed)).state

    def _reconfiguration(self, whole: Topology, *, check: bool) -> Reconfiguration:
        """Prepare the failures of section `simulation`: the routing of every state that the network comes to."""
        config = self.config
        if self.plan.estimates is None and (self.plan.feedback is not None or self.plan.memory.size > 1):
            raise RoutingError("simulation.failures: a routing algorithm that learns must say where its estimates are")

        def plan_for(topology: Topology, hosts: NDArray[np.bool_]) -> RoutingPlan:
            plan = routing_plan(config, topology)
            if plan.max_candidates > self.plan.max_candidates:
                raise RoutingError(
                    f"routing.algorithm {config.routing.algorithm}: max_candidates must be at most "
                    f"{self.plan.max_candidates} after a failure too, not {plan.max_candidates}"
                )
            if plan.memory.size != self.plan.memory.size:
                raise RoutingError(
                    f"routing.algorithm {config.routing.algorithm}: memory must have {self.plan.memory.size} entries "
                    f"after a failure too, not {plan.memory.size}"
                )
            if config.routing.check and check:
                source = SourceParameters(acknowledges=acknowledges(config))
                net = build_net(topology, flit_router_parameters(config, topology, plan), source, Tables(
                    routing=plan.table, max_candidates=plan.max_candidates, inject_mask=plan.inject_mask,
                    memory=plan.memory, ack_mask=plan.ack_mask,
                ), self.seed)  # fmt: skip
                net.senders["inject_mask"][hosts] = 0
                lengths = packet_lengths(self.state)
                check_routing(
                    topology, plan, net, config.routing.algorithm, ~hosts, lengths=lengths, resends=True,
                    seconds=config.routing.proof_limit_s,
                )  # fmt: skip
                if net.lookup is not None:
                    check_keys(config, topology, plan, net)
            return plan

        failing: FailingNetwork
        if isinstance(self.state, QueuedState):
            failing = InputOutputQueuedFailures(self.state, self.topology, self.seed)
        else:
            failing = InputQueuedFailures(self.state, self.seed)
        per_flit, runs = self.built.flit_cycles, config.simulation
        epochs = make_epochs(whole, runs.failures, config.failed, plan_for, per_flit)
        if self.placed is not None:
            refuse_failing_ranks(epochs, self.placed)
        return Reconfiguration(
            self.state,
            failing,
            epochs,
            self._run_kernel,
            self._install,
            runs.failure_series_cycles * per_flit,
            per_flit,
            self.built.cycle_ns,
        )

    def _install(self, epoch: Epoch) -> None:
        """Put the routing of `epoch` in force in all routers at once, and flush their lookup engines."""
        self.plan, state = epoch.plan, self.state
        state.put("table", np.ascontiguousarray(self.plan.table, np.int32))
        if self.plan.estimates is not None:  # ports that lead on now and did before keep what they have learned
            both = np.isfinite(self.plan.memory) & np.isfinite(state["memory"])
            state["memory"][:] = np.where(both, state["memory"], self.plan.memory)
        if state.agents is not None:
            assert self.plan.agents is not None
            state.agents.install(self.plan.agents)
        if self.config.traffic.acknowledge is not None:
            flush_tables(state)
        if state.lookup is not None:
            reprogram_engines(state.lookup, route_lookup(self.config, epoch.topology, self.plan))

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
                raise DeadlockError(self._deadlock_text())
            if code != DONE or left <= most:
                return int(code)

    @cached_property
    def _kernel(self) -> Callable[[Any, Any, int], int]:
        """What simulates a number of cycles, on one thread or on several."""
        if self.threads.threads == 1:
            return self.built.run
        from hopforge.model.network.threads.crew import Crew  # noqa: PLC0415 - compiled where it is used

        return Crew(self.state, self.threads.parts, self.threads.threads, self.built.run).run

    def check_conservation(self) -> None:
        """Every flit that was sent and has not arrived stands in a FIFO or on a link (our own mistake otherwise)."""
        counted, present = self.state.flits_in_flight, self.state.flits_present
        if counted != present:
            raise AssertionError(f"{counted} flits should be in flight, {present} are there")
        if self.reconfiguration is not None and self.reconfiguration.lost_flits > int(self.state["flits_dropped"]):
            raise AssertionError(
                f"of {int(self.state['flits_dropped'])} lost flits {self.reconfiguration.lost_flits} are told"
            )

    def _deadlock_text(self) -> str:
        state = self.state
        if isinstance(state, QueuedState):
            cycle = find_cycle(*state.waiting_channels(), len(state["output_vc"]))
        else:
            cycle = waiting_cycle(self.topology, state)
        names = " → ".join(channel_name(self.topology, int(self.state["vcs"]), m) for m in [*cycle, *cycle[:1]])
        router = self.config.router
        if self.plan.obligation == "escape" and (router.switching, router.vc_release) == ("wormhole", "tail"):
            names += (
                "; with router.vc_release: tail and wormhole switching a packet may wait behind others on an adaptive "
                "virtual channel, where it has no escape: take vc_release: credits or switching: vct"
            )
        return (
            f"deadlock at cycle {int(self.state['cycle'])}: {self.state.flits_in_flight} flits in flight and none has "
            f"moved since cycle {int(self.state['last_move'])}; waiting channels: {names or 'no cycle found'}"
        )

    def reset_measures(self) -> None:
        """Start a measurement: counters of latency, hops, rates and channel loads from zero."""
        record = self.state.record
        for name in (
            "measured", "latency_sum", "hops_sum", "latency_max", "packets_dropped",
            "messages_measured", "message_latency_sum", "message_latency_max",
        ):  # fmt: skip
            record[name] = 0
        record["latency_min"] = NEVER
        if "message_histogram" in self.state.arrays:
            self.state["message_histogram"][:] = 0
        reset_classes(self.state)
        reset_reordering(self.state)
        if self.classes is not None:
            self.classes.reset(self.state)
        self.state["histogram"][:] = 0
        reset_network_latency(self.state)
        self.built.reset()
        self.buffers.reset()
        if self.state.lookup is not None:
            self.state.lookup.reset_counts()
        self.state["output_port"]["flits"] = 0
        self.state["host"]["flits_received"] = 0

    def queue_delay(self) -> float:
        """Mean age in cycles of the packets at the heads of the source queues (0 for empty ones)."""
        host, now = self.state.senders, int(self.state["cycle"])
        waiting = host["packet"] >= 0
        age = np.where(
            waiting, now - self.state["packet"]["created"][np.maximum(host["packet"], 0)], now - host["next_time"]
        )
        if self.classes is not None:
            return self.classes.queue_delay(self.state)
        if "replier" in self.state.arrays:
            age = np.maximum(age, reply_ages(self.state))
        delay = float(np.maximum(age, 0).mean()) if len(age) else 0.0
        return delay + acknowledge_age(self.state)

    @property
    def sample_cycles(self) -> int:
        """Cycles of one sample."""
        return SAMPLE_CYCLES * self.built.flit_cycles

    def set_load(self, load: float) -> None:
        """Change the offered load; the packet that every host has scheduled keeps its time.

        Raises
        ------
        TrafficError
            The source is none of `bernoulli`, `interval` and `rounds`, or the present load is 0.
        """
        self.check_load_changes()
        source = source_parameters(self.config, load, self.traffic.round_packets)
        if isinstance(source, IntervalSource) and isinstance(self.state, QueuedState):
            self.state.set_interval(source.interval_packets)
        else:
            self.state.record["log_failure"] = np.log1p(-source.packet_rate / self.built.flit_cycles)
        self.load = load

    def check_load_changes(self) -> None:
        """Refuse a source whose load cannot change, and a change from a load of 0, whose next packet never comes.

        Raises
        ------
        TrafficError
            It is none of `bernoulli`, `interval` and `rounds`, or the load is 0.
        """
        if self.config.traffic.classes:
            raise TrafficError("simulation.load_steps are for traffic without classes")
        if self.config.traffic.source not in ("bernoulli", "interval", "rounds"):
            raise TrafficError(
                "simulation.load_steps need traffic.source bernoulli, interval or rounds, "
                f"not {self.config.traffic.source}"
            )
        if self.load == 0:
            raise TrafficError("simulation.load_steps: a load of 0 cannot change: no host has a next packet")

    def cycles_of_us(self, time_us: float) -> int:
        """Whole cycles of a time, at least one.

        Raises
        ------
        TrafficError
            The router has no times in ns.
        """
        if self.built.cycle_ns == 0.0:
            raise TrafficError("simulation: times in µs need router.cycle_ns")
        return max(round(time_us * 1000 / self.built.cycle_ns), 1)

    def lengths(self) -> tuple[int, int, int]:
        """Cycles of the warm-up (0: to be found), and least and most cycles of the measurement.

        Raises
        ------
        TrafficError
            Times in µs without a router that has times.
        """
        limits, per_flit = self.config.simulation, self.built.flit_cycles
        warmup = limits.warmup_cycles * per_flit
        if limits.warmup_us is not None:
            warmup = self.cycles_of_us(limits.warmup_us)
        if limits.measure_us is not None:
            return warmup, (measured := self.cycles_of_us(limits.measure_us)), measured
        return warmup, limits.min_cycles * per_flit, limits.max_cycles * per_flit

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
        fixed = self.lengths()[0]
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
        started = time.process_time()
        warmup = self.warm_up(progress)
        self.reset_measures()
        first_delay, cycles = self.queue_delay(), 0
        samples: list[tuple[int, int]] = []
        stop = "max_cycles"
        _, least, most = self.lengths()
        while cycles < most:
            sample = min(self.sample_cycles, most - cycles)  # the last one ends where it was asked to
            samples.append(self._sample(sample))
            cycles += sample
            if progress is not None:
                progress(warmup + cycles)
            if self.agents is not None and self.agents.diverged:
                stop = "diverged"
                break
            if cycles >= least and len(samples) >= BATCHES and self.reconfiguration is None:
                mean, half = batch_interval(samples)
                if half <= limits.precision * mean:
                    stop = "precision"
                    break
                if len(samples) % BATCHES == 0 and self._growth(first_delay, cycles) > 4 * SATURATED_GROWTH:
                    stop = "saturated"
                    break
        return self._measurement(
            samples, warmup, cycles, stop, self._growth(first_delay, cycles), time.process_time() - started
        )

    def _growth(self, first_delay: float, cycles: int) -> float:
        return (self.queue_delay() - first_delay) / cycles

    def _measurement(
        self, samples: list[tuple[int, int]], warmup: int, cycles: int, stop: str, growth: float, cpu: float
    ) -> Measurement:
        state = self.state
        mean, half = batch_interval(samples)
        packets = max(int(state["measured"]), 1)
        received = state.senders["flits_received"] * (self.built.flit_cycles / cycles)
        ports = state["output_port"]
        between = self.topology.peer_router.reshape(-1) >= 0
        channel = ports["flits"][between] * (self.built.flit_cycles / cycles) if between.any() else np.zeros(1)
        median, p95, p99 = (
            percentile(state["histogram"], share, int(state["latency_max"]), self.built.bin_cycles)
            for share in (0.5, 0.95, 0.99)
        )
        return Measurement(
            load=self.load,
            seed=self.seed,
            saturated=growth > SATURATED_GROWTH,
            stop=stop,
            warmup_cycles=warmup,
            cycles=cycles,
            packets=int(state["measured"]),
            latency=mean,
            latency_interval=half,
            latency_median=median,
            latency_p95=p95,
            latency_p99=p99,
            latency_max=largest_of(int(state["latency_max"]), int(state["measured"])),
            **network_latencies(state, self.built.bin_cycles),
            hops=mean_of(int(state["hops_sum"]), int(state["measured"])),
            **self._message_latencies(mean, median, p95, p99),
            # one nan for all, with which equal measurements are equal
            derouted_share=math.nan if math.isnan(derouted := self.built.derouted()) else derouted / packets,
            accepted=float(received.mean()),
            accepted_worst=float(received.min()),
            channel_load_max=float(channel.max()),
            channel_load_mean=float(channel.mean()),
            dropped_packets=int(state["packets_dropped"]),
            **lookup_totals(state.lookup),
            cycle_ns=self.built.cycle_ns,
            cpu_seconds=cpu,
            classes=class_latencies(state) if self.classes is None else self.classes.results(state, cycles),
            reordering=reordering(state),
        )

    def _message_latencies(self, mean: float, median: float, p95: float, p99: float) -> dict[str, Any]:
        """Return the latencies of messages; messages of one packet have those of their packets."""
        state, largest, count = self.state, int(self.state["latency_max"]), int(self.state["measured"])
        if "message_histogram" in state.arrays:
            largest, count = int(state["message_latency_max"]), int(state["messages_measured"])
            mean = mean_of(int(state["message_latency_sum"]), count)
            median, p95, p99 = (percentile(state["message_histogram"], share, largest) for share in (0.5, 0.95, 0.99))
        return {
            "message_latency": mean,
            "message_latency_median": median,
            "message_latency_p95": p95,
            "message_latency_p99": p99,
            "message_latency_max": largest_of(largest, count),
        }
