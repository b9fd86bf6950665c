"""Source queues of hosts, from the log of what flits did: they know which packets have left and arrived."""

from collections import Counter, defaultdict

from hopforge.model.network.core.kinds import RECEIVED, SENT, TAIL


class Hosts:
    """Source queues: of which message each packet is, and which messages arrive when.

    Parameters
    ----------
    log : list
        All events of flits.
    mtu : int
        Bytes of a packet.
    in_turn : bool
        Messages send a packet each in turn (`app.injection: shared`), not one after the other.
    """

    def __init__(self, log: list[list[int]], mtu: int, *, in_turn: bool) -> None:
        self.mtu, self.in_turn = mtu, in_turn
        self.gone: dict[int, int] = {}  # packet → cycle of its tail, the first time
        self.came: dict[int, list[int]] = defaultdict(list)
        for now, kind, _, _, packet, flit in log:
            if kind == SENT and flit & TAIL:
                self.gone.setdefault(packet, now)
            elif kind == RECEIVED and flit & TAIL:
                self.came[now].append(packet)
        self.queue: dict[int, list[list[int]]] = defaultdict(list)  # message and its packets that are left
        self.idle, self.count = Counter[int](), Counter[int]()
        self.of, self.left, self.handed, self.arrived = {}, {}, {}, {}

    def take(self, before: int) -> None:
        """Let hosts take up packets, each one when the last one has left."""
        for host, queue in self.queue.items():
            while queue and self.idle[host] < before:
                message, left = queue.pop(0)
                packet = host << 40 | self.count[host]
                self.count[host] += 1
                self.of[packet] = message
                if left > 1:
                    queue.insert(len(queue) if self.in_turn else 0, [message, left - 1])
                self.idle[host] = self.gone.get(packet, 1 << 60) + 1

    def hand(self, cycle: int, message: int, host: int, size: int) -> None:
        self.take(cycle)
        if not self.queue[host]:
            self.idle[host] = max(self.idle[host], cycle)
        self.handed[message], self.left[message] = cycle, -(-size // self.mtu)
        self.queue[host].append([message, self.left[message]])

    def arrivals(self, cycle: int) -> list[int]:
        self.take(cycle)
        found = []
        for packet in self.came[cycle]:
            self.left[self.of[packet]] -= 1
            if not self.left[self.of[packet]]:
                self.arrived[self.of[packet]] = cycle
                found.append(self.of[packet])
        return found
