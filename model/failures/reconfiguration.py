"""Run a network through failures: losses, then static reconfiguration (docs/network-simulation.md, Failures).

Static means that the packets of the old tables are out of the network before the first packet by the new tables is
sent, so that the two can never wait for each other.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hopforge.model.failures.epochs import Epoch
from hopforge.model.failures.purge import (
    buffered_flits,
    current_packets,
    flying_flits,
    free_output,
    refresh,
    remove_packets,
)
from hopforge.model.network.build import NetState
from hopforge.model.network.candidates import candidate
from hopforge.model.network.records import (
    ACTIVE,
    BERNOULLI,
    DRAIN,
    HEAD,
    HOST_VC_BITS,
    HOST_VC_MASK,
    ON_OFF,
    SCRIPT,
    TAIL,
    VA,
)
from hopforge.model.network.sources import NEVER


@dataclass
class FailureRecord:
    """What one failure or repair did.

    Attributes
    ----------
    flits_on_links, flits_in_switches : int
        Lost because they were on a link that failed, or in a switch that failed or between it and its hosts.
    flits_of_cut_packets : int
        Lost elsewhere in the network: the rest of packets that lost a flit, or that a failed link cut in two.
    packets_lost : int
        All packets of these flits.
    packets_unsent : int
        Created at a host whose switch failed and not sent.
    packets_set_aside : int
        That stood before a failed link and were taken by a host of their switch, to be sent again.
    packets_without_host : int
        The same at a switch without hosts: dropped.
    stopped_cycle, empty_cycle, reprogrammed_cycle : int
        When the hosts stopped sending, the network was empty, and the new tables were in force; −1: not yet.
    """

    cycle: int
    what: str
    flits_on_links: int = 0
    flits_in_switches: int = 0
    flits_of_cut_packets: int = 0
    packets_lost: int = 0
    packets_unsent: int = 0
    packets_set_aside: int = 0
    packets_without_host: int = 0
    stopped_cycle: int = -1
    empty_cycle: int = -1
    reprogrammed_cycle: int = -1

    @property
    def flits_lost(self) -> int:
        """All causes together."""
        return self.flits_on_links + self.flits_in_switches + self.flits_of_cut_packets


class Reconfiguration:
    """The failures of one run, and what follows from them.

    Parameters
    ----------
    state : NetState
        At cycle 0.
    epochs : list of Epoch
        In the order of their cycles.
    run : callable
        ``run(cycles) -> code``: the kernel, by the tables that are in force.
    install : callable
        Puts the routing of an epoch in force and empties the caches of lookup engines.
    series_cycles : int
        Bin of the time series.
    seed : int
        Of hosts that work again.
    """

    def __init__(
        self,
        state: NetState,
        epochs: list[Epoch],
        run: Callable[[int], int],
        install: Callable[[Epoch], None],
        series_cycles: int,
        seed: int,
    ) -> None:
        self.state, self.epochs, self._run, self._install = state, epochs, run, install
        self.records: list[FailureRecord] = []
        self.seed = seed
        self._waiting = list(epochs)  # that have not begun
        self._epoch: Epoch | None = None
        self._stop_at: int | None = None  # hosts stop sending
        self._emptying = False
        self._ready_at = 0  # not before: new tables
        self._aside: set[int] = set()  # packets on their way to a host that sets them aside
        self._resend: dict[int, list[int]] = {}  # packets that hosts have set aside
        self._series = _Series(state, series_cycles)

    @property
    def series(self) -> pd.DataFrame:
        """Time series in bins: cycle (of its begin), sent, accepted, lost_flits, in_flight (docs)."""
        return self._series.table()

    @property
    def to_come(self) -> list[Epoch]:
        """Failures and repairs that have not taken place."""
        return self._waiting

    @property
    def lost_flits(self) -> int:
        """Flits lost so far by failures, without those of packets that were dropped as unroutable."""
        return sum(record.flits_lost for record in self.records)

    @property
    def set_aside(self) -> int:
        """Packets that hosts hold for others at this moment."""
        return sum(map(len, self._resend.values()))

    def advance(self, cycles: int) -> int:
        """Simulate `cycles` cycles; returns the kernel's last code."""
        state = self.state
        end, code = int(state["cycle"]) + cycles, 0
        while (now := int(state["cycle"])) < end:
            while self._waiting and self._waiting[0].cycle <= now:
                self._begin(self._waiting.pop(0))
            if self._stop_at is not None and now >= self._stop_at:
                self._stop_sending()
            if self._emptying and now >= self._ready_at and self._empty():
                self._reprogram()
            limit = min([end, self._series.next_cycle, *(epoch.cycle for epoch in self._waiting[:1])])
            if self._stop_at is not None:
                limit = min(limit, self._stop_at)
            if self._emptying:
                limit = min(limit, self._step_emptying(now))
            elif self._resend:
                self._send_again()
                limit = now + 1
            code = self._run(limit - now)
            if self._emptying and self.records[-1].empty_cycle < 0 and self._empty():
                self.records[-1].empty_cycle = int(state["cycle"])
            self._series.note()
        return code

    def _begin(self, epoch: Epoch) -> None:
        """Let parts fail, or work again."""
        before = self._epoch
        shape = epoch.ports.shape
        old = np.zeros(shape, bool) if before is None else before.ports
        old_switches = np.zeros(shape[0], bool) if before is None else before.switches
        old_hosts = np.zeros(len(epoch.hosts), bool) if before is None else before.hosts
        self._epoch = epoch
        record = FailureRecord(epoch.cycle, epoch.what)
        self.records.append(record)
        self._fail((epoch.ports & ~old).reshape(-1), epoch.switches & ~old_switches, epoch.hosts & ~old_hosts, record)
        self._repair((old & ~epoch.ports).reshape(-1), old_hosts & ~epoch.hosts)
        detected = epoch.cycle + epoch.detection_cycles
        if self._emptying:
            record.stopped_cycle = epoch.cycle
            self._ready_at = max(self._ready_at, detected + epoch.reprogram_cycles)
        else:
            self._stop_at = detected if self._stop_at is None else min(self._stop_at, detected)

    def _fail(
        self,
        ports: NDArray[np.bool_],
        switches: NDArray[np.bool_],
        hosts: NDArray[np.bool_],
        record: FailureRecord,
    ) -> None:
        state = self.state
        vcs, outs, host = state["input_vc"], state["output_vc"], state["host"]
        V, pool = int(state["vcs"]), len(state["packet"])
        dead_output = np.repeat(ports, V)  # of output VCs
        on_link, on_switch = np.zeros(pool, bool), np.zeros(pool, bool)
        number, flit = buffered_flits(state)
        inside = switches[vcs["router"][number]]
        on_switch[flit[inside] >> 2] = True
        target, flying, _ = flying_flits(state)
        to_vc = target < len(vcs)
        code = np.where(to_vc, 0, target - len(vcs)) >> HOST_VC_BITS
        upstream = vcs["credit_to"][np.where(to_vc, target, 0)]
        over_link = to_vc & (upstream < len(outs)) & dead_output[np.where(upstream < len(outs), upstream, 0)]
        beside = np.where(to_vc, switches[vcs["router"][np.where(to_vc, target, 0)]], hosts[code]) & ~over_link
        on_link[flying[over_link] >> 2] = True
        on_switch[flying[beside] >> 2] = True
        # packets that a failed link cuts in two, and those that wait to cross it: they give their output VC back
        serving = current_packets(state)
        heads = np.zeros(len(vcs), bool)
        heads[number] = False
        first = np.concatenate([[True], number[1:] != number[:-1]]) if len(number) else np.zeros(0, bool)
        heads[number[first]] = (flit[first] & HEAD) != 0
        for n in np.flatnonzero((vcs["state"] == ACTIVE) & dead_output[np.maximum(vcs["out_vc"], 0)]).tolist():
            if heads[n]:
                vcs["state"][n] = VA
                free_output(state, int(vcs["out_vc"][n]))
            else:
                on_link[serving[n]] = True
        partly = hosts & (host["packet"] >= 0) & (host["sent"] > 0)
        on_switch[host["packet"][partly]] = True
        record.flits_on_links += int(over_link.sum())
        record.flits_in_switches += int(inside.sum() + beside.sum())
        gone = on_link | on_switch
        record.packets_lost += int(gone.sum())
        removed = remove_packets(state, gone)
        record.flits_of_cut_packets += removed - int(over_link.sum() + inside.sum() + beside.sum())
        state.record["flits_dropped"] += removed
        state.record["packets_dropped"] += int(gone.sum())
        self._aside -= set(np.flatnonzero(gone).tolist())
        self._silence(hosts, record)
        dead = np.flatnonzero(ports)
        state["output_port"]["free_mask"][dead] = 0
        closing = np.flatnonzero(dead_output & (outs["tail_sent"] != 0))
        outs["tail_sent"][closing], outs["owner"][closing] = 0, -1
        self._forget_releases(dead_output)
        refresh(state)

    def _forget_releases(self, outputs: NDArray[np.bool_]) -> None:
        """Let no output VC of `outputs` become free in the next cycle."""
        state = self.state
        queued = state["release_next"][: int(state["release_count"])]
        inside = queued < len(outputs)
        left = queued[~(inside & outputs[np.where(inside, queued, 0)])]
        state["release_next"][: len(left)] = left
        state.record["release_count"] = len(left)

    def _silence(self, hosts: NDArray[np.bool_], record: FailureRecord) -> None:
        """Stop hosts whose switch has failed; what they have not sent is abandoned."""
        state, host = self.state, self.state["host"]
        unsent = np.zeros(len(state["packet"]), bool)
        for h in np.flatnonzero(hosts).tolist():
            if host["packet"][h] >= 0:
                unsent[host["packet"][h]] = True
            unsent[self._resend.pop(h, [])] = True
        record.packets_unsent += int(unsent.sum())
        remove_packets(state, unsent)
        host["next_time"][hosts], state["host_wake"][hosts], host["inject_mask"][hosts] = NEVER, NEVER, 0

    def _repair(self, ports: NDArray[np.bool_], hosts: NDArray[np.bool_]) -> None:
        state = self.state
        out, host, now = state["output_vc"], state["host"], int(state["cycle"])
        for port in np.flatnonzero(ports).tolist():
            first = port * int(state["vcs"])
            for m in range(first, first + int(state["vcs"])):
                if out["owner"][m] < 0:
                    state["output_port"]["free_mask"][port] |= np.uint32(1 << int(out["vc"][m]))
        generator = np.random.default_rng((self.seed, 7, now))
        kind = int(state["source_kind"])
        for h in np.flatnonzero(hosts & (host["stopped"] == 0)).tolist():
            if kind == SCRIPT:
                k, last = int(state["script_next"][h]), int(state["script_first"][h + 1])
                due = int(state["script_time"][k]) if k < last else NEVER
            else:
                due = now + _next_packet(state, kind, generator)
            host["next_time"][h] = state["host_wake"][h] = due

    def _stop_sending(self) -> None:
        """Let the hosts begin no packet any more; what they have begun goes on."""
        assert self._epoch is not None
        state, now = self.state, int(self.state["cycle"])
        self._stop_at, self._emptying = None, True
        self._ready_at = now + self._epoch.reprogram_cycles
        state["host"]["inject_mask"][:] = 0
        for record in self.records:
            record.stopped_cycle = now if record.stopped_cycle < 0 else record.stopped_cycle

    def _empty(self) -> bool:
        """No flit is under way, and no host is in the middle of a packet."""
        host = self.state["host"]
        return not self.state.flits_in_flight and not ((host["packet"] >= 0) & (host["sent"] > 0)).any()

    def _step_emptying(self, now: int) -> int:
        """Move on a network that becomes empty; returns the cycle until which the kernel may run."""
        assert self._epoch is not None
        if self._empty():
            return self._ready_at if now < self._ready_at else now + 1
        if self._epoch.ports.any() or self._aside:
            self._take_aside(now)
            self._turn_away(self._epoch)
        return now + 1

    def _turn_away(self, epoch: Epoch) -> None:
        """Send packets that can only go over failed links to a host of their switch (without one: drop them)."""
        state, record = self.state, self.records[-1]
        vcs, P = state["input_vc"], int(state["ports"])
        most, V = int(state["max_candidates"]), int(state["vcs"])
        entries = state["candidate"].reshape(-1, most)
        waiting = np.flatnonzero(vcs["state"] == VA)
        router = vcs["router"][waiting].astype(np.int64)
        port = router[:, None] * P + (entries[waiting] & 255)
        given = np.arange(most) < vcs["candidates"][waiting, None]
        dead = epoch.ports.reshape(-1)[np.where(given, port, 0)] | ~given
        for n, r in zip(waiting[dead.all(axis=1)].tolist(), router[dead.all(axis=1)].tolist(), strict=True):
            ports = np.flatnonzero(epoch.topology.host_at[r] >= 0)
            if len(ports) == 0:
                self._drain(n)
                record.packets_without_host += 1
                continue
            packet = int(state["fifo"][n * int(state["buffer"]) + int(vcs["head"][n])]) >> 2
            entries[n, 0] = candidate(int(ports[n % len(ports)]), (1 << V) - 1)
            vcs["candidates"][n] = 1
            self._aside.add(packet)
            record.packets_set_aside += 1

    def _drain(self, n: int) -> None:
        """Let the packet at the front of input VC `n` be drained as an unroutable one."""
        state, P = self.state, int(self.state["ports"])
        vcs = state["input_vc"]
        port = int(vcs["port"][n])
        vcs["state"][n] = DRAIN
        state["input_port"]["drain_mask"][port] |= np.uint32(1 << int(vcs["vc"][n]))
        state["router"]["drain_ports"][port // P] |= np.uint64(1) << np.uint64(port % P)
        refresh(state)

    def _take_aside(self, now: int) -> None:
        """Let hosts take the flits that they set aside out of what would arrive at them in cycle `now`."""
        state = self.state
        slot, capacity = now & int(state["wheel_mask"]), int(state["event_capacity"])
        count, inputs = int(state["flit_events"][slot]), len(state["input_vc"])
        events = state["flit_event"][slot * capacity : slot * capacity + count]
        mine = [k for k in np.flatnonzero(events >> 32 >= inputs).tolist() if (int(events[k]) & 0xFFFFFFFF) >> 2 in
                self._aside]  # fmt: skip
        for k in mine:
            code, flit = (int(events[k]) >> 32) - inputs, int(events[k]) & 0xFFFFFFFF
            h, packet = code >> HOST_VC_BITS, flit >> 2
            port = int(state["host"]["output_port"][h])
            back = now + int(state["output_port"]["return_time"][port]) & int(state["wheel_mask"])
            place = int(state["credit_events"][back])
            state["credit_event"][back * capacity + place] = state["host"]["output_vc"][h] + (code & HOST_VC_MASK)
            state["credit_events"][back] = place + 1
            state.record["flits_injected"] -= 1  # it will be sent again
            state.record["last_move"] = now
            if flit & TAIL:
                self._aside.discard(packet)
                self._resend.setdefault(h, []).append(packet)
        if mine:
            left = np.delete(events, mine)
            state["flit_event"][slot * capacity : slot * capacity + len(left)] = left
            state["flit_events"][slot] = len(left)

    def _send_again(self) -> None:
        """Give every host that sends nothing the next packet that it has set aside, before its own."""
        state, host = self.state, self.state["host"]
        for h, packets in list(self._resend.items()):
            own = int(host["packet"][h])
            if own >= 0 and host["sent"][h] > 0:
                continue
            p = packets.pop(0)
            if own >= 0:
                packets.append(own)
            if not packets:
                del self._resend[h]
            packet = state["packet"]
            packet["via"][p] = -1
            if self._epoch is not None and self._epoch.plan.obligation == "checked":
                packet["src"][p] = h  # its layers are looked up by source and hop
            for name in ("phase", "user0", "user1", "hops"):
                packet[name][p] = 0
            host["packet"][h], host["sent"][h] = p, 0
            state["host_wake"][h] = state["cycle"]

    def _reprogram(self) -> None:
        """Put the new tables in force and let the hosts send."""
        assert self._epoch is not None
        now = int(self.state["cycle"])
        self._install(self._epoch)
        self.state["host"]["inject_mask"] = self._epoch.inject_mask
        self._emptying = False
        for record in self.records:
            record.empty_cycle = now if record.empty_cycle < 0 else record.empty_cycle
            record.reprogrammed_cycle = now if record.reprogrammed_cycle < 0 else record.reprogrammed_cycle

    def table(self) -> pd.DataFrame:
        """One row per failure or repair: the fields of `FailureRecord`."""
        return pd.DataFrame([asdict(record) for record in self.records])


def _next_packet(state: NetState, kind: int, generator: np.random.Generator) -> int:
    """Cycles until a host that works again creates its first packet."""
    if kind in (BERNOULLI, ON_OFF):
        rate = -np.expm1(float(state["log_failure"]))
        return int(generator.geometric(rate)) if rate > 0 else NEVER
    return NEVER


class _Series:
    """Counts in bins of equal length."""

    def __init__(self, state: NetState, bin_cycles: int) -> None:
        self.state, self.bin = state, bin_cycles
        self.next_cycle = bin_cycles
        self.rows: list[tuple[Any, ...]] = []
        self._before = self._counts()

    def _counts(self) -> tuple[int, ...]:
        state = self.state
        return int(state["host"]["flits_sent"].sum()), int(state["flits_ejected"]), int(state["flits_dropped"])

    def note(self) -> None:
        """Close a bin whose end has come."""
        now = int(self.state["cycle"])
        if now < self.next_cycle:
            return
        counts = self._counts()
        sent, accepted, lost = (new - old for new, old in zip(counts, self._before, strict=True))
        hosts = max(int(self.state["hosts"]), 1) * self.bin
        self.rows.append((now - self.bin, sent / hosts, accepted / hosts, lost, self.state.flits_in_flight))
        self._before, self.next_cycle = counts, now + self.bin

    def table(self) -> pd.DataFrame:
        """All bins; rates in flits per host and cycle."""
        return pd.DataFrame(self.rows, columns=["cycle", "sent", "accepted", "lost_flits", "in_flight"])
