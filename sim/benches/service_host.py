"""Bench of `hw.network.service_host`: packets that come and go, acknowledges, and the golden host in every cycle."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hopforge.hw.network.service_host import ServiceHost as Hardware
from hopforge.model.router.acknowledging_host import AcknowledgingHost, CameHead, HardwareRules
from hopforge.model.router.flit import HEAD, TAIL, Flit, PortInputs, PortOutputs
from hopforge.model.router.params import RouterParams
from hopforge.sim.drive.replay import Bench, Replay
from hopforge.sim.drive.wide_columns import wide_replay

__all__ = ["ServiceTraffic", "service_host_bench", "service_host_replay"]

_EVENTS = ("made", "own_full", "sent", "home", "no_entry", "queue_full")
_NUMBERS = ("entered", "table_full", "expired")


@dataclass(frozen=True, kw_only=True)
class ServiceTraffic:
    """What goes on at a router.

    Parameters
    ----------
    cycles : int
        In all.
    seed : int
        Of every draw.
    heads : float
        Probability that a head comes to a port in a cycle, in busy times; in quiet ones a tenth of it.
    taken : float
        Probability that the host takes a tail.
    acknowledges : float
        Probability that a flit of an acknowledge comes.
    credits : float
        Probability that the router gives a credit back that it owes.
    strangers : float
        Share of the acknowledges that nobody has an entry of.
    first_cycle : int
        What the time of the service host begins with.
    """

    cycles: int
    seed: int
    heads: float = 0.1
    taken: float = 0.1
    acknowledges: float = 0.6
    credits: float = 0.8
    strangers: float = 0.1
    first_cycle: int = 0


class _Router:
    """What the router does."""

    def __init__(self, params: RouterParams, rules: HardwareRules, traffic: ServiceTraffic) -> None:
        self.params, self.rules, self.traffic = params, rules, traffic
        self.rng = np.random.default_rng((traffic.seed, 31))
        self.known: list[tuple[int, int]] = []  # labels of packets that have passed
        self.under_way: dict[int, list[int]] = {}  # data of the flits of an acknowledge that are still to come, by VC
        self.owed: deque[int] = deque()
        self.busy = True
        self.names = np.random.default_rng((traffic.seed, 32))
        self.sources = [int(self.names.integers(1 << params.address_bits))]

    def begin_times(self) -> None:
        """Begin busy times or quiet ones, with other sources: all but the first differ from it in a bit."""
        self.busy = bool(self.rng.random() < 0.7)
        bits = self.names.integers(0, self.params.address_bits, 4)
        self.sources[1:] = [self.sources[0] ^ 1 << int(bit) for bit in bits]

    def label(self) -> tuple[int, int]:
        """Return the label of some packet: few sources, so that some are equal."""
        return self.sources[int(self.rng.integers(5))], int(self.rng.integers(1 << self.params.tag_bits))

    def heads(self) -> list[CameHead]:
        """Return the heads that come in this cycle."""
        rate = self.traffic.heads * (1 if self.busy else 0.1)
        found = []
        for port in np.flatnonzero(self.rng.random(self.params.ports - 1) < rate).tolist():
            often = self.known and self.rng.random() < 0.1  # a packet that comes back
            label = self.known[int(self.rng.integers(len(self.known)))] if often else self.label()
            self.known.append(label)
            found.append(CameHead(port, label, int(self.rng.integers(1 << self.rules.note_bits))))
        return found

    def taken(self) -> tuple[int, tuple[int, int], int] | None:
        """Return input port, label and stamp of the packet whose tail the host takes."""
        if self.rng.random() >= self.traffic.taken:
            return None
        stamp = int(self.rng.integers(1 << min(self.rules.time_bits, 62)))
        return int(self.rng.integers(self.params.ports - 1)), self.label(), stamp

    def outputs(self) -> PortOutputs:
        """Return the flit and the credit at the service port."""
        credit = self.owed.popleft() if self.owed and self.rng.random() < self.traffic.credits else None
        if self.rng.random() >= self.traffic.acknowledges * (1 if self.busy else 0.3):
            return PortOutputs(None, credit)
        vc = int(self.rng.integers(self.params.vcs))
        left = self.under_way.setdefault(vc, [])
        first = not left
        if first:
            left += self._acknowledge()
        data = left.pop(0)
        return PortOutputs(Flit((HEAD if first else 0) | (0 if left else TAIL), vc, data), credit)

    def _acknowledge(self) -> list[int]:
        p, rng = self.params, self.rng
        label = self.label()
        if self.known and rng.random() >= self.traffic.strangers:
            label = self.known.pop(int(rng.integers(len(self.known))))
        head = int(rng.integers(1 << p.address_bits)) | label[0] << p.address_bits | label[1] << 2 * p.address_bits
        others = [int.from_bytes(rng.bytes(-(-p.width_bits // 8)), "little") % (1 << p.width_bits)]
        return [head, *others * (int(rng.integers(1, 3)))]


def service_host_replay(hardware: Hardware, traffic: ServiceTraffic) -> Replay:
    """Return what the router does, and what the golden service host does then."""
    p, rules, router = hardware.params, hardware.rules, _Router(hardware.params, hardware.rules, traffic)
    behind = [int(router.rng.integers(1 << p.address_bits)) for _ in range(hardware.heads)]
    golden = AcknowledgingHost(p, rules, behind, hardware.host_ports, hardware.vcs)
    driven, expected = [], []
    for cycle in range(traffic.first_cycle, traffic.first_cycle + traffic.cycles):
        if (cycle - traffic.first_cycle) % 200 == 0:
            router.begin_times()
        heads, taken, seen = router.heads(), router.taken(), router.outputs()
        before = golden.counts.copy()
        golden.heads_come(cycle, heads)
        if taken is not None:
            golden.host_takes(cycle, *taken)
        given = golden.step(cycle, seen)
        if given.flit is not None:
            router.owed.append(given.flit.vc)
        driven.append(dict(_driven(hardware, behind, heads, taken, seen)))
        counted = {name: golden.counts[name] - before[name] for name in (*_EVENTS, *_NUMBERS)}
        expected.append(counted | dict(_expected(hardware, golden, given)))
    return wide_replay(*_ports(hardware), driven, expected)


def service_host_bench(hardware: Hardware, traffic: ServiceTraffic) -> Bench:
    """Return a bench of the block; see `service_host_replay`."""
    return Bench("service_host", hardware, service_host_replay(hardware, traffic))


def _ports(hardware: Hardware) -> tuple[dict[str, int], dict[str, int], dict[str, str]]:
    """Return bits of inputs and of outputs, and gates."""
    channel = {
        f"channel__{name}": len(getattr(hardware.channel, name).as_value())
        if name.endswith("flit") else len(getattr(hardware.channel, name))
        for name in ("out_valid", "out_flit", "in_credit_valid", "in_credit_vc", "in_valid", "in_flit",
                     "out_credit_valid", "out_credit_vc")
    }  # fmt: skip
    names = [*channel]
    own = ("behind", "head_valid", "head_label", "head_note", "taken_valid", "taken_label", "taken_port", "taken_stamp")
    inputs = {name: len(getattr(hardware, name)) for name in own} | {name: channel[name] for name in names[:4]}
    shown = ("told_valid", "told_note", "told_cycles", *_NUMBERS, *_EVENTS)
    outputs = {name: channel[name] for name in names[4:]} | {name: len(getattr(hardware, name)) for name in shown}
    gates = {
        "channel__in_flit": "channel__in_valid", "channel__out_credit_vc": "channel__out_credit_valid",
        "told_note": "told_valid", "told_cycles": "told_valid",
    }  # fmt: skip
    return inputs, outputs, gates


def _label(p: RouterParams, label: tuple[int, int]) -> int:
    return label[0] | label[1] << p.address_bits


def _flit(p: RouterParams, flit: Flit | None) -> int:
    if flit is None:
        return 0
    return flit.kind | flit.vc << 2 | flit.data << 2 + max(1, (p.vcs - 1).bit_length())


def _driven(
    hardware: Hardware, behind: list[int], heads: list[CameHead], taken: tuple[int, tuple[int, int], int] | None,
    seen: PortOutputs,
) -> Iterator[tuple[str, int]]:  # fmt: skip
    p, bits = hardware.params, hardware.label_bits
    yield "behind", sum(address << p.address_bits * port for port, address in enumerate(behind))
    yield "head_valid", sum(1 << head.port for head in heads)
    yield "head_label", sum(_label(p, head.label) << bits * head.port for head in heads)
    yield "head_note", sum(head.note << hardware.rules.note_bits * head.port for head in heads)
    if taken is not None:
        port, label, stamp = taken
        yield from (("taken_valid", 1), ("taken_port", port), ("taken_label", _label(p, label)), ("taken_stamp", stamp))
    yield "channel__out_valid", int(seen.flit is not None)
    yield "channel__out_flit", _flit(p, seen.flit)
    yield "channel__in_credit_valid", int(seen.credit is not None)
    yield "channel__in_credit_vc", seen.credit or 0


def _expected(hardware: Hardware, golden: AcknowledgingHost, given: PortInputs) -> Iterator[tuple[str, int]]:
    yield "channel__in_valid", int(given.flit is not None)
    yield "channel__in_flit", _flit(hardware.params, given.flit)
    yield "channel__out_credit_valid", int(given.credit is not None)
    yield "channel__out_credit_vc", given.credit or 0
    if golden.told is not None:
        note, cycles = golden.told
        yield from (("told_valid", 1), ("told_note", note), ("told_cycles", cycles))
