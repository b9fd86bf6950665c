"""Failures in networks of input-queued routers: what is lost, and what waits before a failed link.

All of it happens between two cycles of the kernel (`purge`).
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from hopforge.model.network.core.candidates import candidate_port
from hopforge.model.network.core.kinds import (
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
from hopforge.model.network.core.sources import NEVER, take_due
from hopforge.model.network.core.state import NetState
from hopforge.sim.failures.acknowledges import acknowledges_of, waiting_acknowledges
from hopforge.sim.failures.epochs import Epoch
from hopforge.sim.failures.program_messages import LostMessages
from hopforge.sim.failures.purge import (
    buffered_flits,
    count_lost_hops,
    current_packets,
    flying_flits,
    forget_released,
    free_output,
    refresh,
    refresh_heads,
    remove_packets,
)
from hopforge.sim.failures.record import FailureRecord
from hopforge.sim.failures.source_queues import abandon_created


class InputQueuedFailures:
    """Failures and repairs in the arrays of a `NetState`; see `sim.failures.reconfiguration.FailingNetwork`.

    Attributes
    ----------
    aside : set of int
        Packets on their way to a host that sets them aside.
    resend : dict of list
        By host: packets that it has set aside.
    lost : LostMessages
        Of the program, if hosts run one.
    """

    def __init__(self, state: NetState, seed: int, pattern: Callable[..., int]) -> None:
        self.state, self.seed, self._pattern = state, seed, pattern
        self.aside: set[int] = set()
        self.resend: dict[int, list[int]] = {}
        # by host: code of the packet that it sends next, and of its own that stands at the end of `resend`
        self._next: dict[int, int] = {}
        self._own: dict[int, int] = {}
        self.lost = LostMessages(state)

    @property
    def set_aside(self) -> int:
        """Packets that hosts hold for others at this moment."""
        return sum(map(len, self.resend.values()))

    def fail(
        self,
        ports: NDArray[np.bool_],
        switches: NDArray[np.bool_],
        hosts: NDArray[np.bool_],
        record: FailureRecord,
    ) -> None:
        """Let ports, switches and hosts fail: what is lost is counted in `record`."""
        state = self.state
        vcs, outs, host = state["input_vc"], state["output_vc"], state.senders
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
        behind = np.concatenate([hosts, switches])[code]  # service hosts come after the others
        beside = np.where(to_vc, switches[vcs["router"][np.where(to_vc, target, 0)]], behind) & ~over_link
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
        on_switch |= waiting_acknowledges(state, np.zeros((len(switches), int(state["ports"])), bool), switches)
        partly = hosts & (host["packet"] >= 0) & (host["sent"] > 0)
        on_switch[host["packet"][partly]] = True
        record.flits_on_links += int(over_link.sum())
        record.flits_in_switches += int(inside.sum() + beside.sum())
        gone = on_link | on_switch
        acknowledges = int(acknowledges_of(state, gone).sum())
        packets = int(gone.sum()) - acknowledges
        record.packets_lost += packets
        record.acknowledges_lost += acknowledges
        record.messages_lost += self.lost.lose(gone & (state["packet"]["dst"] < int(state["hosts"])))
        removed = remove_packets(state, gone)
        record.flits_of_cut_packets += removed - int(over_link.sum() + inside.sum() + beside.sum())
        state.record["flits_dropped"] += removed
        state.record["packets_dropped"] += packets
        self.aside -= set(np.flatnonzero(gone).tolist())
        self._silence(hosts, record)
        dead = np.flatnonzero(ports)
        state["output_port"]["free_mask"][dead] = 0
        forget_released(state, ports)
        closing = np.flatnonzero(dead_output & (outs["tail_sent"] != 0))
        outs["tail_sent"][closing], outs["owner"][closing] = 0, -1
        refresh(state)

    def _silence(self, hosts: NDArray[np.bool_], record: FailureRecord) -> None:
        """Stop hosts whose switch has failed; what they have not sent is abandoned."""
        state, host = self.state, self.state.senders
        unsent = np.zeros(len(state["packet"]), bool)
        for h in np.flatnonzero(hosts).tolist():
            if host["packet"][h] >= 0:
                unsent[host["packet"][h]] = True
            unsent[self.resend.pop(h, [])] = True
        record.packets_unsent += int(unsent.sum())
        record.messages_lost += self.lost.lose(unsent)
        if self.lost.of_program:  # it ends, or stands, when all packets have arrived or are dropped
            state.record["packets_dropped"] += int(unsent.sum())
        remove_packets(state, unsent)
        now = int(state["cycle"])
        record.packets_unsent += abandon_created(
            state, hosts, lambda h: int(take_due(self._pattern, state.record[0], h, now))
        )
        host["next_time"][hosts], host["inject_mask"][hosts] = NEVER, 0
        state["host_wake"][: len(host)][hosts] = NEVER

    def repair(self, ports: NDArray[np.bool_], hosts: NDArray[np.bool_]) -> None:
        """Let ports and hosts work again."""
        state = self.state
        out, host, now = state["output_vc"], state.senders, int(state["cycle"])
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
                due = now + next_packet(state, kind, generator)
            host["next_time"][h] = state["host_wake"][h] = due

    def stop(self) -> None:
        """Let the hosts begin no packet any more; what they have begun goes on."""
        self.state["host"]["inject_mask"][:] = 0

    def start(self, epoch: Epoch) -> None:
        """Let the hosts send that work."""
        self.state.senders["inject_mask"] = epoch.inject_mask

    def empty(self) -> bool:
        """No flit and no acknowledge is under way, and no host is in the middle of a packet."""
        host = self.state["host"]
        if self.state["acks"] and self.state["acks_alive"]:
            return False
        return not self.state.flits_in_flight and not ((host["packet"] >= 0) & (host["sent"] > 0)).any()

    def turn_away(self, epoch: Epoch, record: FailureRecord) -> int:
        """Turn packets away that can only go over failed links; returns when to call again."""
        now = int(self.state["cycle"])
        if epoch.ports.any() or self.aside:
            self._take_aside(now)
            self._turn_away(epoch, record)
            self._lose(waiting_acknowledges(self.state, epoch.ports, epoch.switches), record)
        return now + 1

    def _lose(self, gone: NDArray[np.bool_], record: FailureRecord) -> None:
        """Lose acknowledges that can only leave through failed ports."""
        if gone.any():
            record.acknowledges_lost += int(gone.sum())
            self.state.record["flits_dropped"] += remove_packets(self.state, gone)

    def _turn_away(self, epoch: Epoch, record: FailureRecord) -> None:
        """Send packets that can only go over failed links to a host of their switch (without one: drop them)."""
        state = self.state
        vcs, P = state["input_vc"], int(state["ports"])
        V, entries = int(state["vcs"]), state.candidates
        waiting = np.flatnonzero(vcs["state"] == VA)
        router = vcs["router"][waiting].astype(np.int64)
        port = router[:, None] * P + candidate_port.py_func(entries[waiting])
        given = np.arange(entries.shape[1]) < vcs["candidates"][waiting, None]
        dead = epoch.ports.reshape(-1)[np.where(given, port, 0)] | ~given
        stuck = np.zeros(len(state["packet"]), bool)  # acknowledges, which nobody sends again
        for n, r in zip(waiting[dead.all(axis=1)].tolist(), router[dead.all(axis=1)].tolist(), strict=True):
            packet = int(state["fifo"][n, int(vcs["head"][n])]) >> 2
            if state["packet"]["dst"][packet] >= int(state["hosts"]):
                stuck[packet] = True
                continue
            ports = np.flatnonzero(epoch.topology.host_at[r] >= 0)
            if len(ports) == 0:
                self._drain(n)
                record.packets_without_host += 1
                record.messages_lost += self.lost.lose(np.arange(len(state["packet"])) == packet)
                continue
            state.put_candidate(n, int(ports[n % len(ports)]), (1 << V) - 1)
            self.aside.add(packet)
            record.packets_set_aside += 1
        if dead.all(axis=1).any():
            refresh_heads(state)
        self._lose(stuck, record)

    def _drain(self, n: int) -> None:
        """Let the packet at the front of input VC `n` be drained as an unroutable one."""
        state, P = self.state, int(self.state["ports"])
        vcs = state["input_vc"]
        port = int(vcs["port"][n])
        vcs["state"][n] = DRAIN
        state["router"]["drain_ports"][port // P] += state["input_port"]["drain_mask"][port] == 0
        state["input_port"]["drain_mask"][port] |= np.uint32(1 << n % int(state["vcs"]))
        refresh(state)

    def _take_aside(self, now: int) -> None:
        """Let hosts take the flits that they set aside out of what would arrive at them in cycle `now`."""
        state = self.state
        slot, capacity = now & int(state["wheel_mask"]), int(state["event_capacity"])
        count, inputs = int(state["flit_events"][slot]), len(state["input_vc"])
        events = state["flit_event"][slot * capacity : slot * capacity + count]
        mine = [k for k in np.flatnonzero(events >> 32 >= inputs).tolist() if (int(events[k]) & 0xFFFFFFFF) >> 2 in
                self.aside]  # fmt: skip
        for k in mine:
            code, flit = (int(events[k]) >> 32) - inputs, int(events[k]) & 0xFFFFFFFF
            h, packet = code >> HOST_VC_BITS, flit >> 2
            back = now + int(state["host"]["return_time"][h]) & int(state["wheel_mask"])
            place = int(state["credit_events"][back])
            state["credit_event"][back * capacity + place] = state["host"]["output_vc"][h] + (code & HOST_VC_MASK)
            state["credit_events"][back] = place + 1
            state.record["flits_injected"] -= 1  # it will be sent again
            state.record["last_move"] = now
            if flit & TAIL:
                self.aside.discard(packet)
                self.lost.send_again(packet)
                packets = self.resend.setdefault(h, [])
                own = bool(packets) and self._code(packets[-1]) == self._own.get(h)
                packets.insert(len(packets) - own, packet)
        if mine:
            left = np.delete(events, mine)
            state["flit_event"][slot * capacity : slot * capacity + len(left)] = left
            state["flit_events"][slot] = len(left)

    def send_again(self, epoch: Epoch) -> int:
        """Give every host that sends nothing the next packet that it has set aside, before its own.

        Returns when to call again.
        """
        state, host = self.state, self.state["host"]
        for h, packets in list(self.resend.items()):
            own = int(host["packet"][h])
            if own >= 0 and (host["sent"][h] > 0 or self._next.get(h) == self._code(own)):
                continue
            p = packets.pop(0)
            self._next[h] = self._code(p)
            if self._own.get(h) == self._next[h]:
                del self._own[h], self._next[h]  # what is set aside from now on goes before it
            if own >= 0:
                packets.append(own)
                self._own[h] = self._code(own)
            if not packets:
                del self.resend[h]
            packet = state["packet"]
            packet["via"][p] = -1
            count_lost_hops(state, np.array([p]))
            for name in ("phase", "user0", "user1", "hops"):
                packet[name][p] = 0
            if epoch.plan.obligation == "checked":
                packet["user0"][p] = h + 1  # its layers are those of the path from here
            host["packet"][h], host["sent"][h] = p, 0
            state["host_wake"][h] = state["cycle"]
        return int(state["cycle"]) + 1

    def _code(self, packet: int) -> int:
        """Source and number of a packet: its record is used again for others."""
        sent = self.state["packet"][packet]
        return (int(sent["src"]) << 40) | int(sent["number"])


def next_packet(state: NetState, kind: int, generator: np.random.Generator) -> int:
    """Cycles until a host that works again creates its first packet."""
    if kind not in (BERNOULLI, ON_OFF):
        return NEVER
    if int(state["load_changes"]) == 0:
        return _trials(float(state["log_failure"]), generator)
    now, changes = int(state["cycle"]), state["change_time"]
    k, time = int(np.searchsorted(changes, now, side="right")), now
    while True:
        time += _trials(float(state["change_log"][k]), generator)
        if k == len(changes) or time < int(changes[k]):
            return time - now
        time = int(changes[k]) - 1  # at the new rate from this cycle on
        k += 1


def _trials(log_failure: float, generator: np.random.Generator) -> int:
    """Trials up to the first packet."""
    rate = -np.expm1(log_failure)
    return int(generator.geometric(rate)) if rate > 0 else NEVER
