"""The golden service host of hardware against that of the definition, which keeps names of packets outside of flits."""

from collections import Counter, deque

import numpy as np
import pytest

from hopforge.model.router.acknowledging_host import AcknowledgingHost, CameHead, HardwareRules
from hopforge.model.router.flit import HEAD, TAIL, Flit, PortOutputs
from hopforge.model.router.params import RouterParams
from hopforge.model.router.service_host import AcknowledgeRules, Mail, ServiceHost

PARAMS = RouterParams(ports=4, vcs=2, buffer_flits=3, width_bits=40, address_bits=6, tag_bits=8)
NAMES = {
    "made": "acks_made", "home": "acks_home", "no_entry": "acks_no_entry", "queue_full": "acks_queue_full",
    "own_full": "acks_own_full",
    "entered": "entries", "table_full": "table_full", "expired": "expired_entries",
}  # fmt: skip


def flits(head: int, vc: int) -> list[Flit]:
    return [Flit(HEAD, vc, head), Flit(TAIL, vc, head)]


@pytest.mark.parametrize("rules", [
    {"queue": 2, "own_queue": 2, "table": 5},
    {"queue": 1, "own_queue": 1, "table": 9, "age_limit_cycles": 30, "delay_cycles": 5, "ratio": 2},
])  # fmt: skip
def test_same_as_the_definition(rules: dict[str, int]) -> None:
    behind, mail, rng = [-1, 11, 12, 13], Mail(), np.random.default_rng(1)
    plain = ServiceHost(PARAMS, AcknowledgeRules(flits=2, **rules), 40, behind, [0, 1], mail)
    hardware = AcknowledgingHost(PARAMS, HardwareRules(flits=2, **rules), behind, [0], [0, 1])
    known: list[tuple[int, int]] = []
    coming: list[tuple[list[Flit], list[Flit]]] = []
    number, owed = 0, deque[int]()
    for cycle in range(3000):
        heads = []
        for port in np.flatnonzero(rng.random(3) < 0.06).tolist():
            known.append((int(rng.integers(60)), int(rng.integers(256))))
            heads.append(CameHead(port, known[-1], 0))
        plain.heads_came(cycle, [(head.port or None, head.label) for head in heads])
        hardware.heads_come(cycle, heads)
        if rng.random() < 0.15:
            port, label = int(rng.integers(3)), (int(rng.integers(60)), int(rng.integers(256)))
            plain.packet_taken(cycle, port or None, label)
            hardware.host_takes(cycle, port, label, cycle)
        if not coming and known and rng.random() < 0.5:
            label = known.pop(int(rng.integers(len(known))))
            mail[7, number % 256] = label
            vc = int(rng.integers(2))
            coming.append((flits(7 << 6 | number % 256 << 12, vc), flits(label[0] << 6 | label[1] << 12, vc)))
            number += 1
        given = (coming[0][0].pop(0), coming[0][1].pop(0)) if coming else (None, None)
        if coming and not coming[0][0]:
            coming.pop()
        credit = owed.popleft() if owed and rng.random() < 0.4 else None
        shown = [
            host.step(cycle, PortOutputs(flit, credit))
            for host, flit in zip((plain, hardware), given, strict=True)
        ]
        assert shown[0].credit == shown[1].credit
        sent = [(one.flit.kind, one.flit.vc) if one.flit else None for one in shown]
        assert sent[0] == sent[1]
        if shown[0].flit is not None:
            owed.append(shown[0].flit.vc)
    counts = Counter({name: plain.counts[NAMES[name]] for name in NAMES})
    assert {name: hardware.counts[name] for name in NAMES} == dict(counts)
    assert hardware.counts["made"] + hardware.counts["sent"] == plain.counts["acks_sent"]
    rare = {"home", "queue_full", "own_full", "no_entry", "made"}
    rare |= {"expired"} if "age_limit_cycles" in rules else {"table_full"}
    assert min(counts[name] for name in rare) > 2


def test_by_hand() -> None:
    """A head by port 1 in cycle 0, its acknowledge in cycle 5: found, sent to the router behind port 1."""
    rules = HardwareRules(flits=2, queue=1, own_queue=1, table=2, delay_cycles=2, time_bits=4, note_bits=3)
    host = AcknowledgingHost(PARAMS, rules, [-1, 11, 12], [0], [0])
    host.heads_come(0, [CameHead(1, (3, 9), 5)])
    told = None
    for cycle in range(5, 9):
        host.heads_come(cycle, [])
        flit = {5: Flit(HEAD, 1, 3 << 6 | 9 << 12), 6: Flit(TAIL, 1, 18)}.get(cycle)
        host.step(cycle, PortOutputs(flit, None))
        told = told or host.told
    assert told == (5, (18 - 0) % 16)
    assert host.counts == {"entered": 1, "sent": 1}
    for cycle in range(9, 12):
        host.step(cycle, PortOutputs(None, None))
    assert host.sent == [(9, Flit(HEAD, 0, 11 | 3 << 6 | 9 << 12)), (10, Flit(TAIL, 0, 18 % 16))]
