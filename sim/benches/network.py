"""A whole network as a replay: the packets of the configured traffic, with the outputs that the simulator gives.

The network simulator runs the packets and logs when every flit is sent, granted and taken. From the log follow all
signals at the hosts' ports in every cycle, in both directions (router.md, Hosts): RTL that is fed the same inputs
must show the same outputs, or a host would have to do something else than in the simulator. Routers with lookup engines
get their programs first. At the end the counters of all ports and all engines of all routers are read.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hopforge.gen.design.configured import NetworkDesign
from hopforge.gen.packages.network import network_component
from hopforge.hw.network.network import Network
from hopforge.model.config import Config
from hopforge.model.errors import UserError
from hopforge.model.lookup.csr import csr_map
from hopforge.model.network.core.kinds import DRAINED, FINISHED, GRANTED, RECEIVED, SENT
from hopforge.model.router.csr import PORT_COUNTERS, ROUTER_CSR_ADDR_BITS, engine_address
from hopforge.model.router.params import RouterParams
from hopforge.model.topology import Topology
from hopforge.sim.benches.logged_packets import NUMBER_BITS, LoggedPackets
from hopforge.sim.benches.network_setup import NetworkSetup, network_setup
from hopforge.sim.benches.repeated_tags import refuse_early_tags
from hopforge.sim.benches.setup_writes import setup_writes
from hopforge.sim.drive.replay import WORD_BITS, Output, Replay
from hopforge.sim.drive.router import flit_words
from hopforge.sim.run.simulation import Simulation
from hopforge.sim.run.sources import replies

__all__ = ["NetworkTraffic", "RecordedNetwork", "record_network"]

_EVENTS_PER_FLIT = 8
_TAIL = 2  # bit of a flit's kind in the log
_MISSES = ("compulsory", "capacity", "conflict", "unmatched")


@dataclass(frozen=True, kw_only=True)
class NetworkTraffic:
    """What the hosts do.

    Parameters
    ----------
    load : float
        Offered flits per host and cycle.
    cycles : int
        Cycles in which packets are created; then everything is delivered.
    seed : int
        Of everything random.
    """

    load: float
    cycles: int
    seed: int = 1


@dataclass(frozen=True, eq=False)
class RecordedNetwork:
    """A run of the simulator, ready to be played on hardware.

    Attributes
    ----------
    component : Network
        Fresh hardware.
    replay : Replay
        All signals of the hosts' ports, and the register bus.
    traffic : NetworkTraffic
        What the hosts did.
    routers, hosts, packets, flits : int
        Size of the network, and what was delivered in it.
    simulated_cycles : int
        Cycles until the last flit was taken.
    lookups, hits : int
        Of the engines of all routers together; 0 without engines.
    """

    component: Network
    replay: Replay
    traffic: NetworkTraffic
    routers: int
    hosts: int
    packets: int
    flits: int
    simulated_cycles: int
    lookups: int = 0
    hits: int = 0


@dataclass(frozen=True, eq=False)
class _Log:
    """Events of a run by kind, in order of time.

    Attributes
    ----------
    cycle, place, vc, flit, kind : ndarray, int64[event]
        When; input VC or host; output VC or VC; number of the flit among all that are sent, packet by packet; its kind.
    """

    cycle: NDArray[np.int64]
    place: NDArray[np.int64]
    vc: NDArray[np.int64]
    flit: NDArray[np.int64]
    kind: NDArray[np.int64]


def record_network(config: Config, traffic: NetworkTraffic, setup: NetworkSetup | None = None) -> RecordedNetwork:
    """Run the simulator with the configured traffic and derive the signals of hardware with the same packets.

    Parameters
    ----------
    config : Config
        Sections topology, router, routing and traffic.
    traffic : NetworkTraffic
        Load, duration, seed.
    setup : NetworkSetup, optional
        What `network_setup` has made of them.

    Raises
    ------
    UserError
        Routing or a router that the hardware cannot be; a deadlock; nothing to compare; tags that come again.
    """
    ready = network_setup(config, traffic.load, traffic.seed, traffic.cycles) if setup is None else setup
    design, script = ready.design, ready.script
    topology, params = design.topology, design.params
    component = network_component(design)
    run, rows = _run(config, design.plain_topology, ready, traffic)
    own, acknowledges = _of_hosts(rows, topology.hosts)
    packets = LoggedPackets(script, own, replies(config), ready.script_class)
    logs = {kind: _of_kind(own, kind, packets) for kind in (SENT, RECEIVED, GRANTED, DRAINED)}
    if config.traffic.acknowledge is not None:
        sent, taken = np.zeros((2, packets.first[-1]), np.int64)
        for cycle, kinds in ((sent, (SENT,)), (taken, (RECEIVED, DRAINED))):
            for kind in kinds:
                cycle[logs[kind].flit] = logs[kind].cycle
        first, last = packets.first[:-1], packets.first[1:] - 1
        refuse_early_tags(config, script[0], params[0].tag_bits, sent[first], taken[last],
                          int(run.state["acks_late"]))  # fmt: skip
    logs[GRANTED] = _with_moves(logs[GRANTED], acknowledges)
    data = _payload(design, packets, np.random.default_rng((traffic.seed, 4)))
    end = int(logs[RECEIVED].cycle.max()) + 1
    programs = setup_writes(design) if params[0].rc == "lookup" else []
    for log in logs.values():
        log.cycle[:] += len(programs)
    recorder = _Recorder(topology, params[0], run, logs, (_as_sent(design, packets, data), data), programs, packets)
    counts = _engine_counts(run)
    return RecordedNetwork(
        component, recorder.replay(), traffic, topology.routers, topology.hosts, packets.count,
        len(logs[RECEIVED].cycle), end, int(counts["lookups"].sum()), int(counts["hits"].sum()),
    )  # fmt: skip


def _run(
    config: Config, topology: Topology | None, ready: NetworkSetup, traffic: NetworkTraffic
) -> tuple[Simulation, NDArray[np.int64]]:
    """Run until everything has arrived; returns the log's rows."""
    answers, script = replies(config), ready.script
    flits = int(script[3].sum()) + (0 if answers is None else int(answers.flits_of(script[3]).sum()))
    capacity = _EVENTS_PER_FLIT * flits
    while True:
        run = Simulation(
            config, traffic.load, traffic.seed, topology, script=script, log_events=capacity, check=False,
            script_class=ready.script_class,
        )  # fmt: skip
        # At least one flit moves in every cycle or so: a deadlock is found earlier.
        code = run.advance(traffic.cycles + 1000 * flits)
        if code != FINISHED:
            raise UserError(
                f"{run.state.flits_in_flight} flits have not arrived after {int(run.state['cycle'])} cycles"
            )
        length = int(run.state["log_length"])
        if length < capacity:
            lookup = config.lookup
            if run.state.lookup is not None:
                for _ in range(4 * lookup.mshrs + 2 * lookup.tcam.latency_cycles + 8):
                    run.advance(1)  # the last lines are written
            return run, run.state["log"].reshape(-1, 6)[:length].astype(np.int64)
        capacity *= 2


def _engine_counts(run: Simulation) -> dict[str, NDArray[np.int64]]:
    """Return the counters that all engines have for lookups: int64[engine] by name."""
    if run.state.lookup is None:
        return {"lookups": np.zeros(1, np.int64), "hits": np.zeros(1, np.int64)}
    counts = run.state.lookup.counts
    misses = np.sum([counts[cause] for cause in _MISSES], axis=0)
    words = {name: counts[name] for name in ("hits", "merges", "fills", "evictions", "drops")}
    return {"lookups": counts["hits"] + counts["merges"] + misses, "misses": misses, **words}


def _of_kind(rows: NDArray[np.int64], kind: int, packets: LoggedPackets) -> _Log:
    """Return the events of a kind; those of one packet at one place are its flits in order."""
    chosen = rows[rows[:, 1] == kind]
    packet = packets.number(chosen[:, 4])
    place = chosen[:, 2]
    order = np.lexsort((np.arange(len(chosen)), place, packet))
    key = np.stack([packet[order], place[order]])
    new = np.r_[True, (key[:, 1:] != key[:, :-1]).any(axis=0)] if len(chosen) else np.zeros(0, bool)
    starts = np.flatnonzero(new)
    number = np.empty(len(chosen), np.int64)
    number[order] = np.arange(len(chosen)) - np.repeat(starts, np.diff(np.append(starts, len(chosen))))
    return _Log(chosen[:, 0], place, chosen[:, 3], packets.first[packet] + number, chosen[:, 5])


def _of_hosts(rows: NDArray[np.int64], hosts: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the events of packets, and those of acknowledges, which come from service hosts."""
    mine = rows[:, 4] >> NUMBER_BITS < hosts
    return rows[mine], rows[~mine]


def _with_moves(log: _Log, acknowledges: NDArray[np.int64]) -> _Log:
    """Return grants with those of acknowledges behind them, as flit 0: they move, and nobody outside sees them."""
    moves = acknowledges[acknowledges[:, 1] == GRANTED]
    columns = moves[:, 0], moves[:, 2], moves[:, 3], np.zeros(len(moves), np.int64), moves[:, 5]
    held = log.cycle, log.place, log.vc, log.flit, log.kind
    return _Log(*(np.concatenate(pair) for pair in zip(held, columns, strict=True)))


def _payload(design: NetworkDesign, packets: LoggedPackets, rng: np.random.Generator) -> NDArray[np.uint64]:
    """Make the data of all flits: random, with a header in heads; of replies the header alone; uint64[flit, word]."""
    params, topology = design.params[0], design.topology
    first, asked = packets.first, packets.asked
    words = -(-params.width_bits // WORD_BITS)
    data = rng.integers(0, 1 << 64, (int(first[-1]), words), np.uint64)
    if params.width_bits % WORD_BITS:
        data[:, -1] &= np.uint64((1 << params.width_bits % WORD_BITS) - 1)
    number = np.arange(topology.hosts) if params.rc == "table" else topology.host_address
    number = number * design.tables.lids
    source, _, destination, _ = packets.script
    of_source = np.arange(len(source)) - np.searchsorted(source, source)
    ends = [number[np.r_[destination, source[asked]]], number[np.r_[source, destination[asked]]]]
    if design.paths is not None:
        ends[0] = ends[0] + design.paths.paths(source, destination)
    fields = [(end, params.address_bits) for end in ends]
    fields.append((np.r_[of_source, of_source[asked]], params.tag_bits))
    length = np.diff(first)
    if params.switching == "vct":
        fields.append((length, params.length_bits))
    if params.lookahead is not None:  # a host may write what it likes; what it gets is 0
        fields.append((np.zeros_like(length), params.route_bits))
    if params.entropy_bits:
        fields.append((_entropy(design.config, source, destination), params.entropy_bits))
    heads, lsb = data[first[:-1]], 0
    heads[len(source) :] = 0
    for values, width in fields:
        _put(heads, lsb, width, values.astype(np.uint64))
        lsb += width
    data[first[:-1]] = heads
    if len(asked):
        data[first[len(source)] :] = np.repeat(heads[len(source) :], length[len(source) :], axis=0)
    return data


def _entropy(config: Config, source: NDArray[np.int64], destination: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the entropy that hosts write into listed packets (spraying.md), which are in the order of sending."""
    found = config.traffic.entropy
    assert found is not None
    if found.per not in ("flow", "packet"):
        raise UserError(
            f"traffic.entropy.per must be flow or packet for the co-simulation of a network, not {found.per}"
        )
    if found.per == "flow":
        return np.zeros(len(source), np.int64)
    flow = source.astype(np.int64) << 32 | destination
    order = np.argsort(flow, kind="stable")
    begins = np.searchsorted(flow[order], flow[order])
    turn = np.empty(len(flow), np.int64)
    turn[order] = np.arange(len(flow)) - begins
    return turn % found.values


def _as_sent(design: NetworkDesign, packets: LoggedPackets, data: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the data of all flits as hosts give them: with the first address of their destination."""
    if design.paths is None:
        return data
    sent, heads = data.copy(), packets.first[:-1]
    sent[heads, 0] &= ~np.uint64(design.tables.lids - 1)
    return sent


def _put(words: NDArray[np.uint64], lsb: int, width: int, values: NDArray[np.uint64]) -> None:
    """Write a field of up to 64 bits into rows of words."""
    done = 0
    while done < width:
        place, shift = divmod(lsb + done, WORD_BITS)
        bits = min(width - done, WORD_BITS - shift)
        mask = np.uint64((1 << bits) - 1)
        part = values >> np.uint64(done) & mask
        words[:, place] = words[:, place] & ~(mask << np.uint64(shift)) | part << np.uint64(shift)
        done += bits


class _Recorder:
    """Signals of the hosts' ports from the log of a run."""

    def __init__(
        self,
        topology: Topology,
        params: RouterParams,
        run: Simulation,
        logs: dict[int, _Log],
        data: tuple[NDArray[np.uint64], NDArray[np.uint64]],
        setup: list[tuple[int, int] | None],
        packets: LoggedPackets,
    ) -> None:
        self.packets = packets
        self.topology, self.params, self.logs, self.data, self.setup = topology, params, logs, data, setup
        self.latency = run.state["host"]["flit_time"].astype(np.int64) - 1
        last = max(int(log.cycle.max(initial=0)) for log in logs.values())
        self.traffic_cycles = last + int(self.latency.max()) + params.credit_delay_cycles + 2
        self.counters = [*self._counters(), *self._engine_counters(run)]
        self.cycles = self.traffic_cycles + len(self.counters) + 1
        self._ins: list[tuple[str, NDArray[np.uint64]]] = []
        self._outs: list[tuple[Output, NDArray[np.uint64]]] = []

    def _counters(self) -> Iterator[tuple[int, int]]:
        """Address and final value of the counters of all ports."""
        V, P = self.params.vcs, self.params.ports
        granted, drained = self.logs[GRANTED], self.logs[DRAINED]
        size = self.topology.routers * P
        came = np.bincount(np.concatenate([granted.place, drained.place]) // V, minlength=size)
        left = np.bincount(granted.vc // V, minlength=size)
        dropped = np.bincount(drained.place[drained.kind & _TAIL != 0] // V, minlength=size)
        values = {"FLITS_IN": came, "FLITS_OUT": left, "DROPS": dropped}
        for router in range(self.topology.routers):
            for name, base, _ in PORT_COUNTERS:
                for port in range(P):
                    address = router << ROUTER_CSR_ADDR_BITS | base + port
                    yield address, int(values[name][router * P + port])

    def _engine_counters(self, run: Simulation) -> Iterator[tuple[int, int]]:
        """Address and final value of what the lookup engines count."""
        if self.params.lookup is None:
            return
        registers = csr_map(self.params.lookup)
        for name, counts in _engine_counts(run).items():
            register = registers[f"COUNT_{name.upper()}"].address
            for number, count in enumerate(counts.tolist()):
                router, engine = divmod(number, self.params.engines)
                yield router << ROUTER_CSR_ADDR_BITS | engine_address(engine, register), count

    def replay(self) -> Replay:
        """All signals."""
        self._bus()
        sent, taken = self.logs[SENT], self.logs[RECEIVED]
        credits = self._credits()
        for host in range(self.topology.hosts):
            name, latency = f"host__{host}", int(self.latency[host])
            mine, theirs, (when, of_vc) = sent.place == host, taken.place == host, credits[host]
            if len(self.packets.asked):
                self._interface(name, mine, theirs, when + latency - 1, of_vc)
                continue
            self._ins += self._flits(f"{name}__in", sent, mine, latency, self.data[0])
            self._ins += self._pair(f"{name}__out_credit", taken.cycle[theirs] + latency, taken.vc[theirs])
            gate = ""
            for column, words in self._flits(f"{name}__out", taken, theirs, -latency, self.data[1]):
                self._outs.append((Output(column, gate or None), words))
                gate = f"{name}__out_valid"
            (valid, flag), (vc, numbers) = self._pair(f"{name}__in_credit", when, of_vc)
            self._outs += [(Output(valid), flag), (Output(vc, valid), numbers)]
        return Replay(
            inputs=tuple(name for name, _ in self._ins),
            outputs=tuple(output for output, _ in self._outs),
            driven=np.stack([words for _, words in self._ins], axis=1),
            expected=np.stack([words for _, words in self._outs], axis=1),
            settle_cycles=len(self.setup),
        )

    def _interface(
        self, name: str, mine: NDArray[np.bool_], theirs: NDArray[np.bool_], when: NDArray[np.int64],
        of_vc: NDArray[np.int64],
    ) -> None:  # fmt: skip
        """Signals of the host at an interface that answers: it gives requests and takes what has been taken."""
        sent, taken = self.logs[SENT], self.logs[RECEIVED]
        request = sent.flit < self.packets.first[len(self.packets.script[0])]
        self._ins += self._flits(f"{name}__in", sent, mine & request, 1, self.data[0])
        busy = self._zeros()
        busy[sent.cycle[mine & ~request]] = 1
        self._outs.append((Output(f"{name}__busy"), busy))
        gate = ""
        for column, words in self._flits(f"{name}__out", taken, theirs, 0, self.data[1]):
            self._outs.append((Output(column, gate or None), words))
            gate = f"{name}__out_valid"
        lower = of_vc < self.params.vcs // 2
        (valid, flag), (vc, numbers) = self._pair(f"{name}__in_credit", when[lower], of_vc[lower])
        self._outs += [(Output(valid), flag), (Output(vc, valid), numbers)]

    def _zeros(self) -> NDArray[np.uint64]:
        return np.zeros(self.cycles, np.uint64)

    def _bus(self) -> None:
        """Write the programs before the traffic, read all counters after it; a word stays until the next is read."""
        address, read, write = self._zeros(), self._zeros(), self._zeros()
        written, word = self._zeros(), self._zeros()
        for cycle, step in enumerate(self.setup):
            if step is not None:
                write[cycle] = 1
                address[cycle], written[cycle] = step
        start, end = self.traffic_cycles, self.traffic_cycles + len(self.counters)
        address[start:end] = [where for where, _ in self.counters]
        read[start:end] = 1
        word[start + 1 :] = [value for _, value in self.counters]
        self._ins += [("csr__addr", address), ("csr__we", write), ("csr__re", read), ("csr__wdata", written)]
        if self.params.rc == "lookup":
            self._ins.append(("link_change", self._zeros()))
        self._outs.append((Output("csr__rdata"), word))

    def _credits(self) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """When each host gets a credit, and of which VC: a cycle after a flit has left its input VC."""
        V, P = self.params.vcs, self.params.ports
        log = [self.logs[GRANTED], self.logs[DRAINED]]
        cycle, place = (np.concatenate([getattr(part, name) for part in log]) for name in ("cycle", "place"))
        host = self.topology.host_at.reshape(-1)[place // V]
        assert self.topology.host_at.shape[1] == P, "all routers have the ports of the largest"
        return [(cycle[host == number] + 1, place[host == number] % V) for number in range(self.topology.hosts)]

    def _flits(
        self, name: str, log: _Log, chosen: NDArray[np.bool_], shift: int, data: NDArray[np.uint64]
    ) -> Iterator[tuple[str, NDArray[np.uint64]]]:
        """Yield the columns of a channel on which the chosen flits stand `shift` cycles after their event."""
        cycle = log.cycle[chosen] + shift
        valid = self._zeros()
        valid[cycle] = 1
        yield f"{name}_valid", valid
        label = np.stack([log.kind[chosen], log.vc[chosen]], axis=1)
        for part in flit_words(self.params, label, data[log.flit[chosen]].view(np.int64)):
            words = self._zeros()
            words[cycle] = part
            yield f"{name}_flit", words

    def _pair(
        self, name: str, cycle: NDArray[np.int64], vc: NDArray[np.int64]
    ) -> tuple[tuple[str, NDArray[np.uint64]], tuple[str, NDArray[np.uint64]]]:
        """Return the columns of a credit channel."""
        valid, number = self._zeros(), self._zeros()
        valid[cycle] = 1
        number[cycle] = vc.astype(np.uint64)
        return (f"{name}_valid", valid), (f"{name}_vc", number)
