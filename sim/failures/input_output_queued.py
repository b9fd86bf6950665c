"""Failures in networks of input-output-queued routers: what is lost, and what waits in the queue of a failed link.

All of it happens between two cycles of the kernel. An output port that has failed sends nothing because its credits are
negative by `DOWN`; a host that sends nothing of its own is out of the calendar, and with a program its link is busy for
ever (`HELD` is added to the time).
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopforge.model.network.core.event_log import note_event
from hopforge.model.network.core.kinds import HOST_VC_BITS, HOST_VC_MASK
from hopforge.model.topology import Topology
from hopforge.sim.failures.epochs import Epoch
from hopforge.sim.failures.input_queued import next_packet
from hopforge.sim.failures.program_messages import LostMessages
from hopforge.sim.failures.purge import count_lost_hops, free_records
from hopforge.sim.failures.record import FailureRecord
from hopforge.sim.failures.source_queues import abandon_created
from hopforge.sim.queued.build import QueuedState
from hopforge.sim.queued.hosts import take_due
from hopforge.sim.queued.line_contents import keep_entries, line_contents, put_entry
from hopforge.sim.queued.records import ELAPSED_BITS, INTERVAL, INTERVAL_BITS, SENT_AGAIN

Bools = NDArray[np.bool_]
Numbers = NDArray[np.int64]
#: taken from the credits of an output VC while its link is down
DOWN = 1 << 24
#: added to the cycle until which the link of a host is busy while it sends nothing of a program
HELD = 1 << 61


class InputOutputQueuedFailures:
    """Failures and repairs in the arrays of a `QueuedState`; see `sim.failures.reconfiguration.FailingNetwork`.

    Attributes
    ----------
    resend : dict of list
        By host: packets that it has set aside.
    lost : LostMessages
        Of the program, if hosts run one.
    """

    def __init__(self, state: QueuedState, topology: Topology, seed: int, pattern: Callable[..., int]) -> None:
        self.state, self.topology, self.seed, self._pattern = state, topology, seed, pattern
        self.lost = LostMessages(state)
        self.resend: dict[int, list[int]] = {}
        self._asleep = np.zeros(topology.hosts, bool)

    @property
    def set_aside(self) -> int:
        """Packets that hosts hold for others at this moment."""
        return sum(map(len, self.resend.values()))

    def fail(self, ports: Bools, switches: Bools, hosts: Bools, record: FailureRecord) -> None:
        """Let ports, switches and hosts fail: what is lost is counted in `record`."""
        state = self.state
        outs = state.queues["output_queue"]
        dead = np.repeat(ports, int(state["vcs"]))  # output VCs
        over_link, beside = self._clear_links(dead, hosts)
        inside = self._clear_switches(switches)
        lost = np.concatenate([over_link, beside, inside])
        record.flits_on_links += len(over_link)
        record.flits_in_switches += len(beside) + len(inside)
        record.packets_lost += len(lost)
        state.record["flits_dropped"] += len(lost)
        state.record["packets_dropped"] += len(lost)
        record.messages_lost += self._lose(lost)
        free_records(state, lost)
        outs["credits"][dead] -= DOWN
        state["output_port"]["free_mask"][ports] = 0
        unsent = [p for h in np.flatnonzero(hosts).tolist() for p in self.resend.pop(h, [])]
        record.packets_unsent += len(unsent)
        record.messages_lost += self._lose(np.array(unsent, np.int64))
        if self.lost.of_program:  # it ends, or stands, when all packets have arrived or are dropped
            state.record["packets_dropped"] += len(unsent)
        free_records(state, np.array(unsent, np.int64))
        net, queues, now = state.record[0], state.queue_record[0], int(state["cycle"])
        record.packets_unsent += abandon_created(
            state, hosts, lambda h: int(take_due(self._pattern, net, queues, h, now))
        )
        self._sleep(hosts)

    def _lose(self, packets: Numbers) -> int:
        """Note that packets are about to be lost; returns how many messages that costs."""
        return self.lost.lose(np.isin(np.arange(len(self.state["packet"])), packets)) if len(packets) else 0

    def _clear_links(self, dead: Bools, hosts: Bools) -> tuple[Numbers, Numbers]:
        """Take packets off the links behind `dead` output VCs, and off those to and from `hosts`; returns both."""
        state = self.state
        inputs, nic = state.queues["input_queue"], state.queues["nic"]
        over_link, beside = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for k in range(len(state.queues["packet_line"])):
            entries = line_contents(state, "packet_line", k)
            target, packet = entries >> 32, entries & 0xFFFFFFFF
            to_router = target < len(inputs)
            sender = inputs["credit_to"][np.where(to_router, target, 0)].astype(np.int64)
            between = to_router & (sender < len(dead))
            code = np.where(to_router, 0, target - len(inputs))
            last = nic["output_vc"][code >> HOST_VC_BITS] + (code & HOST_VC_MASK)
            credit = np.where(to_router, sender, last)
            host = np.where(to_router, sender - len(dead), code >> HOST_VC_BITS)
            link = between & dead[np.where(between, sender, 0)]
            near = ~between & hosts[np.where(between, 0, host)]
            over_link.append(packet[link])
            beside.append(packet[near])
            self._credit(credit[link | near])
            keep_entries(state, "packet_line", k, ~(link | near))
        return np.concatenate(over_link), np.concatenate(beside)

    def _clear_switches(self, switches: Bools) -> Numbers:
        """Take all packets out of the queues of `switches`; returns them."""
        state = self.state
        inputs: Any = state.queues["input_queue"]
        outs: Any = state.queues["output_queue"]
        found = [np.zeros(0, np.int64)]
        for queues, credited in ((inputs, True), (outs, False)):
            for n in np.flatnonzero(switches[queues["router"]] & (queues["length"] > 0)).tolist():
                count = int(queues["length"][n])
                found.append(self._packets(queues[n]))
                if credited:
                    self._credit(np.full(count, queues["credit_to"][n], np.int64))
                else:
                    state["output_vc"]["credits"][n] += count
                queues["length"][n] = 0
        inputs["output"][switches[inputs["router"]]] = -1
        words = int(state.queue_record["words"][0])
        state.queues["requests"].reshape(-1, words)[switches] = 0
        state.queues["blocked"].reshape(-1, words)[switches[outs["router"]]] = 0
        return np.concatenate(found)

    def _packets(self, queue: np.void) -> Numbers:
        """Packets of a queue, the first one first."""
        p, found = int(queue["first"]), []
        for _ in range(int(queue["length"])):
            found.append(p)
            p = int(self.state.queues["following"][p])
        return np.array(found, np.int64)

    def _credit(self, target: Numbers) -> None:
        """Credit removed packets at the output VCs (or output_vcs + host) that had sent them."""
        state = self.state
        outs = state.queues["output_queue"]
        inside = target < len(outs)
        np.add.at(outs["credits"], target[inside], 1)
        np.add.at(state["output_vc"]["credits"], target[inside], 1)
        np.add.at(state.queues["nic"]["credits"], target[~inside] - len(outs), 1)

    def repair(self, ports: Bools, hosts: Bools) -> None:
        """Let ports and hosts work again."""
        state = self.state
        outs, nic, host, now = state.queues["output_queue"], state.queues["nic"], state["host"], int(state["cycle"])
        V = int(state["vcs"])
        back = np.repeat(ports, V)
        outs["credits"][back] += DOWN
        for m in np.flatnonzero(back & (outs["length"] > 0) & (outs["credits"] > 0)).tolist():
            state["output_port"]["free_mask"][m // V] |= np.uint32(1 << m % V)
            if state["output_port"]["busy_until"][m // V] <= now:
                self._set_bit("pending", m // V, "first_port")
        generator = np.random.default_rng((self.seed, 7, now))
        kind = int(state["source_kind"])
        for h in np.flatnonzero(hosts & (host["stopped"] == 0)).tolist():
            if kind == INTERVAL:
                nic["due"][h], nic["round_left"][h] = now << INTERVAL_BITS, 0
            else:
                host["next_time"][h] = now + next_packet(state, kind, generator)

    def stop(self) -> None:
        """Let the hosts begin no packet any more."""
        self._sleep(np.ones(len(self._asleep), bool))

    def start(self, epoch: Epoch) -> None:
        """Let the hosts send that work: first what they have set aside."""
        self._wake(~epoch.hosts & ~np.isin(np.arange(len(epoch.hosts)), list(self.resend)))

    def empty(self) -> bool:
        """No packet is under way; seen before a match."""
        match = int(self.state.queue_record["match_cycles"][0])
        return int(self.state["cycle"]) % match == 0 and not self.state.flits_in_flight

    def turn_away(self, epoch: Epoch, record: FailureRecord) -> int:
        """Before every match: a packet of every failed port to a host of its switch, which keeps it (without: lost)."""
        state, topology = self.state, self.topology
        now, match = int(state["cycle"]), int(state.queue_record["match_cycles"][0])
        if now % match:
            return now + match - now % match
        outs, P, V = state.queues["output_queue"], topology.max_ports, int(state["vcs"])
        dead = epoch.ports.reshape(-1)
        for q in np.flatnonzero(dead & (outs["length"].reshape(-1, V) > 0).any(axis=1)).tolist():
            m = q * V + int(np.flatnonzero(outs["length"][q * V : q * V + V])[0])
            p = self._take_output(m)
            state.record["last_move"] = now
            hosts = topology.host_at[q // P][topology.host_at[q // P] >= 0]
            if len(hosts) == 0:
                record.packets_without_host += 1
                state.record["flits_dropped"] += 1
                state.record["packets_dropped"] += 1
                record.messages_lost += self._lose(np.array([p]))
                free_records(state, np.array([p]))
                continue
            self.resend.setdefault(int(hosts[m % len(hosts)]), []).append(p)
            state.record["flits_injected"] -= 1  # it will be sent again
            record.packets_set_aside += 1
        return now + match

    def _take_output(self, m: int) -> int:
        """Take the first packet out of output queue `m`; who waits for the place asks again."""
        state = self.state
        queue, words = state.queues["output_queue"][m], int(state.queue_record["words"][0])
        p = int(queue["first"])
        queue["first"] = state.queues["following"][p]
        queue["length"] -= 1
        state["output_vc"]["credits"][m] += 1
        if int(queue["length"]) + 1 == int(state.queue_record["output_depth"][0]):
            router = int(queue["router"])
            blocked = state.queues["blocked"].reshape(-1, words)
            if blocked[m].any():
                state.queues["requests"].reshape(-1, words)[router] |= blocked[m]
                blocked[m] = 0
                self._set_bit("asking", router, "first_router")
        return p

    def send_again(self, epoch: Epoch) -> int:
        """Before every match: the next packet of each host that has set some aside and whose link is free."""
        state, nic, packet = self.state, self.state.queues["nic"], self.state["packet"]
        now, match = int(state["cycle"]), int(state.queue_record["match_cycles"][0])
        if now % match:
            return now + match - now % match
        for h, packets in list(self.resend.items()):
            held = HELD if self.lost.of_program else 0  # it sends nothing of its own
            if nic["busy_until"][h] - held > now or nic["credits"][h] == 0:
                continue
            p = packets.pop(0)
            packet["via"][p] = -1
            count_lost_hops(state, np.array([p]))
            for name in ("phase", "user0", "user1", "hops"):
                packet[name][p] = 0
            if epoch.plan.obligation == "checked":
                packet["user0"][p] = h + 1  # its layers are those of the path from here
            packet["sent"][p], packet["part"][p] = now, now << ELAPSED_BITS
            nic["credits"][h] -= 1
            nic["busy_until"][h] = now + int(state.queue_record["packet_cycles"][0]) + held
            state["host"]["flits_sent"][h] += 1
            state.record["flits_injected"] += 1
            state.record["last_move"] = now
            note_event(state, SENT_AGAIN, h, -1, p)
            put_entry(state, "packet_line", int(nic["packet_line"][h]), int(nic["target"][h]) << 32 | p)
            if not packets:
                del self.resend[h]
                self._wake(np.arange(len(self._asleep)) == h)
        return now + match

    def _sleep(self, hosts: Bools) -> None:
        """Take hosts out of the calendar and from those that may send, so that nothing wakes them."""
        state = self.state
        nic, calendar = state.queues["nic"], state.queues["calendar"]
        if self.lost.of_program:
            nic["busy_until"][hosts & ~self._asleep] += HELD
        self._asleep |= hosts
        if not hosts.any():
            return
        nic["waiting"][hosts] = 0
        for slot in np.flatnonzero(calendar >= 0).tolist():
            h, kept = int(calendar[slot]), []
            while h >= 0:
                if not hosts[h]:
                    kept.append(h)
                h = int(nic["next"][h])
            calendar[slot] = -1
            for h in kept:
                nic["next"][h], calendar[slot] = calendar[slot], h
        for h in np.flatnonzero(hosts).tolist():
            word, bit = self._bit("due_hosts", h, "first_host")
            state.queues["due_hosts"][word] &= ~bit

    def _wake(self, hosts: Bools) -> None:
        """Let hosts look for a packet in the next cycle."""
        for h in np.flatnonzero(hosts & self._asleep).tolist():
            self._set_bit("due_hosts", h, "first_host")
        if self.lost.of_program:
            self.state.queues["nic"]["busy_until"][hosts & self._asleep] -= HELD
        self._asleep &= ~hosts

    def _bit(self, name: str, number: int, first: str) -> tuple[int, np.uint64]:
        """Word and bit of a router, port or host in a mask that is cut into parts."""
        parts, mask = self.state.queues["part"], self.state.queues[name]
        k = int(np.searchsorted(parts[first], number, side="right")) - 1
        local = number - int(parts[first][k])
        word = (int(parts[name][k]) - mask.ctypes.data) // 8 + (local >> 6)
        return word, np.uint64(1) << np.uint64(local & 63)

    def _set_bit(self, name: str, number: int, first: str) -> None:
        word, bit = self._bit(name, number, first)
        self.state.queues[name][word] |= bit
