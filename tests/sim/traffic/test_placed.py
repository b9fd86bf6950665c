"""Patterns against their definitions, mappings, and what a workload that does not fit is told."""

from collections import Counter

import numpy as np
import pytest

from hopforge.model.config import (
    AddressConfig,
    DragonflyConfig,
    EdgeListConfig,
    FatTreeConfig,
    MeshConfig,
    TorusConfig,
)
from hopforge.model.config.workload import CollectiveWorkload, MappingConfig, SyntheticWorkload, TraceWorkload
from hopforge.model.topology import build
from hopforge.sim.traffic import placed
from hopforge.sim.traffic.packet_stream import WorkloadError
from hopforge.sim.traffic.rank_hosts import map_ranks
from hopforge.sim.traffic.synthetic import SYNTHETIC, neighbours, permutation
from hopforge.sim.traffic.workload_packets import build_workload

ADDRESS = AddressConfig()
TORUS = build(TorusConfig(kind="torus", radices=(4, 4)), ADDRESS)
ODD = build(MeshConfig(kind="mesh", radices=(3, 5), hosts_per_router=2), ADDRESS)
TREE = build(FatTreeConfig(kind="fat_tree", k=2, n=2), ADDRESS)
FLY = build(DragonflyConfig(kind="dragonfly", p=2, a=4, h=2), ADDRESS)


def stream(topology, seed=1, **keys):
    return build_workload(SyntheticWorkload(**keys), topology, seed)


def pairs(topology, seed=1, **keys):
    made = stream(topology, seed, **keys)
    source, destination = made.all_packets()
    assert len(source) == len(destination) == made.packets
    assert (source != destination).all()
    return list(zip(source.tolist(), destination.tolist(), strict=True))


@pytest.mark.parametrize("topology", [TORUS, ODD, TREE, FLY], ids=lambda t: t.name)
def test_uniform(topology):
    sent = pairs(topology, kind="uniform", packets_per_host=50)
    assert Counter(s for s, _ in sent) == dict.fromkeys(range(topology.hosts), 50)
    assert [s for s, _ in sent[: topology.hosts]] == list(range(topology.hosts))  # one from each host in a step
    counts = np.bincount([d for _, d in pairs(topology, kind="uniform", packets_per_host=2000)])
    mean = 2000.0
    assert len(counts) == topology.hosts
    assert abs(counts - mean).max() < 5 * mean**0.5
    assert sent == pairs(topology, kind="uniform", packets_per_host=50)
    assert sent != pairs(topology, seed=2, kind="uniform", packets_per_host=50)


@pytest.mark.parametrize("order", ["cyclic", "random"])
@pytest.mark.parametrize("topology", [TORUS, ODD, FLY], ids=lambda t: t.name)
def test_all_to_all(topology, order):
    sent = pairs(topology, kind="all_to_all", order=order, rounds=2)
    hosts = topology.hosts
    half = len(sent) // 2
    everybody = {(s, d): 1 for s in range(hosts) for d in range(hosts) if s != d}
    assert Counter(sent[:half]) == everybody
    assert Counter(sent[half:]) == everybody
    if order == "cyclic":
        assert sent == [(s, (s + step) % hosts) for _ in range(2) for step in range(1, hosts) for s in range(hosts)]
    else:
        assert sent[:half] != sent[half:]


def test_bit_permutations_are_those_of_the_book():
    text = [f"{x:04b}" for x in range(16)]
    want = {
        "transpose": lambda b: b[2:] + b[:2],
        "bit_reverse": lambda b: b[::-1],
        "bit_complement": lambda b: "".join("10"[int(c)] for c in b),
        "shuffle": lambda b: b[1:] + b[0],
        "butterfly": lambda b: b[3] + b[1:3] + b[0],
    }
    for name, rule in want.items():
        assert permutation(name, TORUS, 1).tolist() == [int(rule(b), 2) for b in text], name


def test_tornado_and_random():
    assert permutation("tornado", TORUS, 1)[0] == 1 + 4 * 1  # ⌈4/2⌉ − 1 in each dimension
    assert permutation("tornado", ODD, 1)[1] == (1 + 3 * 2) * 2 + 1  # same terminal
    assert permutation("tornado", FLY, 1)[71] == (71 + 35) % 72
    drawn = permutation("random", ODD, 3)
    assert sorted(drawn.tolist()) == list(range(ODD.hosts))
    assert permutation("random", ODD, 4).tolist() != drawn.tolist()


@pytest.mark.parametrize(
    "name", ["random", "transpose", "bit_reverse", "bit_complement", "shuffle", "butterfly", "tornado"]
)
def test_permutation_traffic(name):
    target = permutation(name, TORUS, 1).tolist()
    want = [(s, d) for s, d in enumerate(target) if s != d]
    assert pairs(TORUS, kind="permutation", permutation=name, packets_per_host=3) == want * 3


def test_neighbours(tmp_path):
    assert neighbours(TORUS)[0] == [1, 3, 4, 12]
    assert neighbours(ODD)[0] == [2, 6]
    assert neighbours(ODD)[1] == [3, 7]
    assert neighbours(TREE)[0] == [1, 7]
    assert sorted(neighbours(FLY)[0]) == [
        2,
        4,
        6,
        *sorted(int(FLY.host_at[peer, 0]) for peer in FLY.peer_router[0, 5:]),
    ]
    (tmp_path / "star.txt").write_text("0 1\n0 2\n0 3\n")
    star = build(EdgeListConfig(kind="edge_list", file=tmp_path / "star.txt"), ADDRESS)
    sent = pairs(star, kind="neighbour", packets_per_host=6)
    assert [d for s, d in sent if s == 0] == [1, 2, 3, 1, 2, 3]
    assert [d for s, d in sent if s == 2] == [0] * 6


def test_every_kind_is_known():
    assert set(SYNTHETIC) == {"uniform", "all_to_all", "permutation", "neighbour"}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("transpose", "power of four"),
        ("shuffle", "power of two"),
        ("butterfly", "power of two"),
        ("bit_reverse", "power of two"),
        ("bit_complement", "power of two"),
    ],
)
def test_bit_permutations_need_their_number_of_hosts(name, kind):
    topology = TREE if name == "transpose" else ODD
    with pytest.raises(
        WorkloadError, match=f"workload.permutation: {name} needs a {kind} of hosts, not {topology.hosts}"
    ):
        stream(topology, kind="permutation", permutation=name)


def test_a_single_host_has_nobody_to_talk_to():
    alone = build(MeshConfig(kind="mesh", radices=(1,)), ADDRESS)
    with pytest.raises(WorkloadError, match=r"workload.kind: uniform needs at least 2 hosts, the 1 mesh has 1"):
        stream(alone, kind="uniform")


def test_mappings(tmp_path):
    assert map_ranks(MappingConfig(), 5, TORUS, 1).tolist() == [0, 1, 2, 3, 4]
    drawn = map_ranks(MappingConfig(kind="random"), 16, TORUS, 1).tolist()
    assert sorted(drawn) == list(range(16))
    assert drawn != list(range(16))
    path = tmp_path / "map.txt"
    path.write_text("# rank 0 first\n7\n7  # two ranks on one host\n\n2\n")
    assert map_ranks(MappingConfig(kind="file", file=path), 3, TORUS, 1).tolist() == [7, 7, 2]
    with pytest.raises(WorkloadError, match=r"map.txt: maps 3 ranks, the program has 4"):
        map_ranks(MappingConfig(kind="file", file=path), 4, TORUS, 1)
    path.write_text("1\n16\n")
    with pytest.raises(WorkloadError, match=r"map.txt:2: host 16 is beyond the last host 15"):
        map_ranks(MappingConfig(kind="file", file=path), 2, TORUS, 1)
    path.write_text("one\n")
    with pytest.raises(WorkloadError, match=r"map.txt:1: expected a host number, not 'one'"):
        map_ranks(MappingConfig(kind="file", file=path), 1, TORUS, 1)
    with pytest.raises(WorkloadError, match=r"workload.mapping.file: cannot read .*none: No such file"):
        map_ranks(MappingConfig(kind="file", file=tmp_path / "none"), 1, TORUS, 1)
    with pytest.raises(WorkloadError, match=r"workload: 17 ranks are more than the 16 hosts of the 4x4 torus"):
        map_ranks(MappingConfig(), 17, TORUS, 1)
    assert map_ranks(MappingConfig(first=11), 5, TORUS, 1).tolist() == [11, 12, 13, 14, 15]
    with pytest.raises(WorkloadError, match=r"workload.mapping.first: 5 ranks from host 12 on end beyond .* host 15"):
        map_ranks(MappingConfig(first=12), 5, TORUS, 1)
    assert map_ranks(MappingConfig(kind="spread"), 5, TORUS, 1).tolist() == [0, 3, 6, 9, 12]
    assert map_ranks(MappingConfig(kind="spread"), 16, TORUS, 1).tolist() == list(range(16))


def test_recorded_program_on_mapped_hosts(tmp_path):
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "rank-1.txt").write_text("0 init\n0 send 1 0 5000\n")
    (tmp_path / "t" / "rank-2.txt").write_text("1 init\n1 recv 0 0 5000\n1 send 0 0 1\n")
    (tmp_path / "map").write_text("3\n9\n")
    config = TraceWorkload(
        kind="trace",
        file=str(tmp_path / "t"),
        mtu_bytes=2048,
        mapping=MappingConfig(kind="file", file=tmp_path / "map"),
    )
    made = build_workload(config, TORUS, 1)
    source, destination = made.all_packets()
    assert (source.tolist(), destination.tolist()) == ([3, 3, 3, 9], [9, 9, 9, 3])
    assert made.params == {
        "ranks": 2,
        "messages": 2,
        "local_messages": 0,
        "payload_bytes": 5001,
        "mtu_bytes": 2048,
        "mapping": "file",
    }


def test_too_many_ranks_are_refused_before_their_calls_are_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placed, "program_trace", lambda *_: pytest.fail("written"))
    config = CollectiveWorkload(kind="collective", operation="barrier", ranks=1 << 20)
    with pytest.raises(WorkloadError, match=r"workload: 1048576 ranks are more than the 16 hosts of the 4x4 torus"):
        placed.place_program(config, TORUS, 1)
