"""Bench of a collective plane: random operations of all groups at once, and what the golden plane does in every cycle.

Beside the cycles, every result is compared with what the operation makes of the members' words.
"""

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from hopforge.model.router.collective_params import OPERATIONS, Flit
from hopforge.model.router.collective_plane import PlaneDesign
from hopforge.model.router.collective_unit import combined
from hopforge.sim.drive.replay import Output, Replay, as_words

__all__ = ["BenchRun", "PlaneTraffic", "collectives_run"]

_MULTICAST = OPERATIONS.index("multicast")
_WORD = (1 << 64) - 1


@dataclass(frozen=True, kw_only=True)
class PlaneTraffic:
    """What the hosts do.

    Parameters
    ----------
    operations : int
        Of each group.
    seed : int
        Of every draw.
    send, take : float
        Chance in a cycle that a host that could send does so, and that it takes a word that it holds. Both change for
        each host every 64 cycles, to nothing, this, or always.
    wrong : float
        Chance that one member of an operation names another one.
    """

    operations: int
    seed: int
    send: float = 0.7
    take: float = 0.7
    wrong: float = 0.05


@dataclass
class BenchRun:
    """A recorded run.

    Attributes
    ----------
    replay : Replay
        Inputs and outputs.
    counts : Counter
        Operations by name, words sent and taken, results with an error, waiting.
    """

    replay: Replay
    counts: Counter[str]


@dataclass
class _Member:
    """A host in a group: what it will send and must get, with the number of the operation, and what it holds.

    Of an operation that a member names otherwise only an error is sure.
    """

    to_send: deque[tuple[int, Flit]] = field(default_factory=deque)
    expected: deque[tuple[int, Flit | None]] = field(default_factory=deque)
    credits: int = 0
    held: int = 0

    @property
    def may_send(self) -> bool:
        """Whether there is a word and a credit, and the word is not of a broadcast that is ahead of its turn."""
        if not self.to_send or not self.credits:
            return False
        number, flit = self.to_send[0]
        return flit.operation != _MULTICAST or self.expected[0][0] == number


def _draw(
    design: PlaneDesign, traffic: PlaneTraffic, rng: np.random.Generator, counts: Counter[str]
) -> dict[tuple[int, int], _Member]:
    """Return what every member of every group sends and must get, by (host, group)."""
    p = design.params
    members: dict[tuple[int, int], _Member] = {}
    for g, tree in enumerate(design.trees):
        for host in tree.hosts:
            members[host, g] = _Member(credits=p.buffer_flits)
        for number in range(traffic.operations):
            operation, sequence = int(rng.integers(len(OPERATIONS))), number % (1 << p.sequence_bits)
            words = 1 if OPERATIONS[operation] == "barrier" else int(rng.integers(1, 9))
            counts[OPERATIONS[operation]] += 1
            senders = [int(rng.choice(tree.hosts))] if operation == _MULTICAST else list(tree.hosts)
            data = {host: [_word(rng, p.width_bits) for _ in range(words)] for host in senders}
            liar = int(rng.choice(senders)) if len(senders) > 1 and rng.random() < traffic.wrong else None
            said = operation
            while liar is not None and said in (operation, _MULTICAST):
                said = int(rng.integers(len(OPERATIONS)))
            counts["wrong"] += liar is not None
            for at in range(words):
                last = int(at == words - 1)
                for host in senders:
                    named = said if host == liar else operation
                    members[host, g].to_send.append((number, Flit(g, named, sequence, last, 0, data[host][at])))
                word = combined(operation, [data[host][at] for host in senders], p.width_bits)
                wanted = Flit(g, operation, sequence, last, 0, word) if liar is None else None
                for host in tree.hosts:
                    members[host, g].expected.append((number, wanted))
    return members


def _word(rng: np.random.Generator, bits: int) -> int:
    """Return any number, or one near 0 or the largest."""
    number, most = int.from_bytes(rng.bytes(-(-bits // 8)), "little"), (1 << bits) - 1
    near = number % 4 % (most + 1)
    return number & most if rng.random() < 0.7 else near if rng.random() < 0.5 else most - near


def collectives_run(design: PlaneDesign, traffic: PlaneTraffic) -> BenchRun:
    """Record a run of the golden plane: software writes the trees, then every group has its operations.

    A member sends its words of one operation after the other as credits allow, without waiting for results, but a
    broadcast only after the results of all operations before; it sends nothing of a broadcast that is another's.

    Raises
    ------
    AssertionError
        The golden plane gives a wrong result, too many flits, or does not end.
    """
    rng = np.random.default_rng(traffic.seed)
    p, plane = design.params, design.golden()
    counts: Counter[str] = Counter()
    members = _draw(design, traffic, rng, counts)
    by_host: dict[int, list[int]] = {}
    for host, g in members:
        by_host.setdefault(host, []).append(g)
    writes = deque(design.writes)
    hosts = range(len(design.hosts))
    chance = {}
    driven, expected = [], []
    columns = _Columns(design)
    left = sum(len(member.expected) for member in members.values())
    quiet = 0
    while left or quiet < 20:
        if plane.now % 64 == 0:
            chance = {
                host: (float(rng.choice([0.0, traffic.send, 1.0])), float(rng.choice([0.0, traffic.take, 1.0])))
                for host in hosts
            }
        out, back = plane.outputs()
        write = writes.popleft() if writes else None
        sent: dict[int, Flit] = {}
        taken: dict[int, int] = {}
        for host, groups in by_host.items():
            send, take = chance[host]
            ready = [g for g in groups if members[host, g].may_send]
            if write is None and ready and rng.random() < send:
                g = int(rng.choice(ready))
                sent[host] = members[host, g].to_send.popleft()[1]
                members[host, g].credits -= 1
            for g in groups:
                if members[host, g].held and rng.random() < take:
                    members[host, g].held -= 1
                    taken[host] = taken.get(host, 0) | 1 << g
        driven.append(columns.inputs(sent, taken, write))
        expected.append(columns.outputs(out, back))
        for host, flit in out.items():
            member = members[host, flit.group]
            wanted = member.expected.popleft()[1]
            assert flit == wanted or (wanted is None and flit.error), f"host {host}: {flit} instead of {wanted}"
            member.held += 1
            assert member.held <= p.buffer_flits, f"host {host} holds too many flits of group {flit.group}"
            counts["words taken"] += 1
            counts["errors"] += flit.error
            left -= 1
        for host, groups_back in back.items():
            for g in by_host.get(host, []):
                members[host, g].credits += groups_back >> g & 1
        counts["words sent"] += len(sent)
        plane.cycle(sent, taken, write)
        quiet = 0 if left or any(member.held for member in members.values()) else quiet + 1
        assert plane.now < 1_000_000, "the plane does not end"
    for member in members.values():
        assert member.credits == p.buffer_flits and not member.to_send, "credits or words are left"
    replay = Replay(columns.input_names, columns.output_ports, as_words(driven), as_words(expected))
    return BenchRun(replay, counts)


class _Columns:
    """Ports of the hardware as columns of a replay."""

    def __init__(self, design: PlaneDesign) -> None:
        self.params, self.hosts = design.params, range(len(design.hosts))
        self.words = -(-design.params.flit_bits // 64)
        set_words = -(-max(design.ports) // 64)
        self.set_words = set_words
        names = ["set_valid", "set_unit", "set_group", *["set_children"] * set_words, *["set_parent"] * set_words]
        outputs = []
        for host in self.hosts:
            names += [f"host__{host}__in_valid", *[f"host__{host}__in_flit"] * self.words, f"host__{host}__out_credit"]
            outputs += [Output(f"host__{host}__in_credit"), Output(f"host__{host}__out_valid")]
            outputs += [Output(f"host__{host}__out_flit", f"host__{host}__out_valid")] * self.words
        self.input_names, self.output_ports = tuple(names), tuple(outputs)

    def inputs(
        self, sent: dict[int, Flit], taken: dict[int, int], write: tuple[int, int, int, int] | None
    ) -> list[int]:
        """Return a row of inputs."""
        unit, group, children, parent = write or (0, 0, 0, 0)
        row = [int(write is not None), unit, group]
        row += [*_split(children, self.set_words), *_split(parent, self.set_words)]
        for host in self.hosts:
            flit = sent.get(host)
            row += [int(flit is not None), *_split(0 if flit is None else self.params.packed(flit), self.words)]
            row.append(taken.get(host, 0))
        return row

    def outputs(self, out: dict[int, Flit], back: dict[int, int]) -> list[int]:
        """Return a row of outputs."""
        row: list[int] = []
        for host in self.hosts:
            flit = out.get(host)
            row += [back.get(host, 0), int(flit is not None)]
            row += _split(0 if flit is None else self.params.packed(flit), self.words)
        return row


def _split(number: int, words: int) -> Sequence[int]:
    return [number >> 64 * place & _WORD for place in range(words)]
