"""Caches of wavelengths: golden cases, the readable model and the kernel, identities."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hopforge.model.config.lookup import SPREADS, CrcConfig
from hopforge.model.lookup.golden.lane_caches import LanePacket, run_lanes
from hopforge.model.lookup.lane_caches import LaneShape, hash_packets, run_links
from hopforge.model.lookup.routing_cache import RoutingCache
from hopforge.model.numbers.crc import crc_address

_PLACES = [folder / "shared" / "beyond" / "levels.json" for folder in Path(__file__).parents]
GOLDEN = next((place for place in _PLACES if place.is_file()), None)


def link_of(packets: list[LanePacket], width_bits: int = 24, crc: Any = "CRC-32C") -> Any:
    keys, sizes, sources = (np.array(column, np.int64) for column in zip(*packets, strict=True))
    return hash_packets(np.array([0, len(keys)]), keys, sizes, sources, crc, width_bits)


def drawn(seed: int, count: int = 400, width_bits: int = 24) -> list[LanePacket]:
    rng = np.random.default_rng(seed)
    pool = rng.integers(0, 1 << width_bits, 60)
    keys = pool[np.minimum(rng.zipf(1.3, count) - 1, 59)]
    sizes, sources = rng.choice([84, 300, 1538], count), rng.integers(0, 1 << width_bits, 5)[rng.integers(0, 5, count)]
    return [LanePacket(*map(int, row)) for row in zip(keys, sizes, sources, strict=True)]


@pytest.mark.skipif(GOLDEN is None, reason="the folder shared is not beside this checkout")
def test_golden_cases() -> None:
    assert GOLDEN is not None
    cases = json.loads(GOLDEN.read_text())["wdm"]
    runs = 0
    for case in cases:
        packets = [LanePacket(*row) for row in case["packets"]]
        link = link_of(packets)
        for run in case["runs"]:
            entries = run["entries"] // run["lanes"] if run["share"] == "split" else run["entries"]
            shape = LaneShape(run["lanes"], entries, run["ways"], run["assign"])
            found = run_links(link, shape)
            plain = run_lanes(
                packets, lanes=shape.lanes, entries=entries, ways=shape.ways, spread=shape.spread
            )
            assert found.packets[0].tolist() == plain.packets == run["per_lane"], run
            assert found.misses[0].tolist() == plain.misses == run["misses"], run
            runs += 1
    assert runs >= 40


@pytest.mark.parametrize("spread", SPREADS)
@pytest.mark.parametrize(("lanes", "entries", "ways"), [(1, 8, 2), (3, 12, 4), (4, 16, 16), (5, 6, 1), (8, 24, 8)])
def test_kernel_equals_the_readable_model(spread: Any, lanes: int, entries: int, ways: int) -> None:
    for width_bits in (12, 24, 31):
        packets = drawn(lanes + width_bits, width_bits=width_bits)
        found = run_links(link_of(packets, width_bits), LaneShape(lanes, entries, ways, spread))
        plain = run_lanes(packets, lanes=lanes, entries=entries, ways=ways, spread=spread, width_bits=width_bits)
        for name in ("packets", "misses", "bytes"):
            assert getattr(found, name)[0].tolist() == getattr(plain, name), name
        assert found.overtaking[0] == plain.overtaking


def test_links_know_nothing_of_each_other() -> None:
    one, other = drawn(1), drawn(2, 250)
    both = [*one, *other]
    keys, sizes, sources = (np.array(column, np.int64) for column in zip(*both, strict=True))
    together = hash_packets(np.array([0, 400, 400, 650]), keys, sizes, sources, "CRC-32C", 24)
    for spread in SPREADS:
        shape = LaneShape(4, 8, 2, spread)
        found = run_links(together, shape)
        for link, packets in ((0, one), (2, other)):
            alone = run_links(link_of(packets), shape)
            assert all((a[link] == b[0]).all() for a, b in zip(found, alone, strict=True))
        assert not found.packets[1].any()


def test_bank_with_split_and_hash_low_with_full_are_the_single_cache() -> None:
    link = link_of(drawn(3, 3000))
    one = run_links(link, LaneShape(1, 32, 4, "rr")).misses.sum()
    assert one > 100
    for lanes in (2, 4, 8):
        assert run_links(link, LaneShape(lanes, 32 // lanes, 4, "bank")).misses.sum() == one
        assert run_links(link, LaneShape(lanes, 32, 4, "hash_low")).misses.sum() == one


@pytest.mark.parametrize("policy", ["lru", "plru", "fifo", "random", "srrip"])
def test_the_cache_of_a_lane_is_the_routing_cache(policy: Any) -> None:
    """Every policy, by the cache that `hopforge hits` replays, lane by lane."""
    packets = drawn(4, 3000)
    plain = run_lanes(packets, lanes=4, entries=16, ways=4, spread="hash")
    found = run_links(link_of(packets), LaneShape(4, 16, 4, "hash", policy))
    for lane in range(4):
        keys = [packet.key for packet, of in zip(packets, plain.lane_of, strict=True) if of == lane]
        hits = RoutingCache(entries=16, ways=4, policy=policy).run(keys).hits
        assert found.misses[0, lane] == (~hits).sum() > 10


def test_by_hand() -> None:
    """Two lanes; a large packet is overtaken by a small one behind it, which takes the other lane."""
    packets = [LanePacket(7, 1000), LanePacket(7, 100), LanePacket(9, 100)]
    found = run_links(link_of(packets), LaneShape(2, 2, 2, "rr"))
    # lane 0: 7 until 2000, then 9; lane 1: 7 from 1000 to 1200
    assert found.packets.tolist() == [[2, 1]]
    assert found.misses.tolist() == [[2, 1]]
    assert found.overtaking.tolist() == [1]
    # least: the third packet arrives at 1100, when neither is free; lane 1 is first
    found = run_links(link_of(packets), LaneShape(2, 2, 2, "least"))
    assert found.bytes.tolist() == [[1000, 200]]


def test_flows_and_destinations_do_not_overtake() -> None:
    """A flow stays on its lane, and a destination with it where the hash is that of the destination."""
    link = link_of(drawn(5, 2000))
    for spread in ("flow", "hash", "hash_low", "bank"):
        assert run_links(link, LaneShape(8, 8, 2, spread)).overtaking[0] == 0  # type: ignore[arg-type]
    assert run_links(link, LaneShape(8, 8, 2, "rr")).overtaking[0] > 0
    assert len(np.unique(link.flows)) > len(np.unique(link.numbers)), "sources count"


def test_the_hash_of_a_flow_is_the_crc_of_source_and_destination() -> None:
    link = link_of([LanePacket(0x123456, 84, 0xABCDEF)])
    assert link.flows.tolist() == [crc_address("CRC-32C", 0xABCDEF123456, 48)]
    narrow = link_of([LanePacket(0x123, 84, 0x456)], 12, CrcConfig(width=16, poly=0x1021))
    assert narrow.flows.tolist() == [crc_address(CrcConfig(width=16, poly=0x1021), 0x04560123, 32)]


def test_ways_divide_entries() -> None:
    with pytest.raises(ValueError, match="ways must divide entries=6, not 4"):
        run_links(link_of(drawn(1)), LaneShape(2, 6, 4, "rr"))
