"""TCAM: lookup in three forms, longest prefix match, and routes of whole networks as few rows."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopforge.model.config.lookup import AddressConfig
from hopforge.model.config.topology import (
    DragonflyConfig,
    EdgeListConfig,
    FatTreeConfig,
    MeshConfig,
    TopologyConfig,
    TorusConfig,
)
from hopforge.model.errors import UserError
from hopforge.model.lookup.key_ports import KeyPorts
from hopforge.model.lookup.node_reduction import NodeReduction
from hopforge.model.lookup.tcam import (
    NO_MATCH,
    Prefix,
    Tcam,
    TcamRow,
    prefix_rows,
    range_prefixes,
    route_rows,
    table_prefixes,
)
from hopforge.model.numbers.address import AddressFormat
from hopforge.model.topology import build

BITS = 8
words = st.integers(0, (1 << BITS) - 1)
rows = st.builds(TcamRow, words, words | st.sampled_from([0, 0xF0, 0x80]), words, st.booleans(), st.booleans())


@settings(deadline=None)  # the first call compiles
@given(st.lists(rows, max_size=8), st.integers(0, 15))
def test_lookup_equals_bit_by_bit_comparison(contents: list[TcamRow], member: int) -> None:
    tcam = Tcam(rows=8, width_bits=BITS, output_bits=8)
    tcam.load(contents)
    expected = []
    for address in range(1 << BITS):
        answer = None
        for row in reversed(contents):  # the lowest wins
            bits = [row.mask >> bit & 1 == 0 or address >> bit & 1 == row.value >> bit & 1 for bit in range(BITS)]
            if row.valid and all(bits):
                answer = (row.output + member * row.lag) % 256
        expected.append(answer)
    assert [tcam.lookup(address, member) for address in range(1 << BITS)] == expected
    numbers = [NO_MATCH if answer is None else answer for answer in expected]
    assert tcam.lookup_many(np.arange(1 << BITS), member).tolist() == numbers
    assert tcam.run(np.arange(1 << BITS), member).tolist() == numbers


def test_no_match_is_never_port_0() -> None:
    tcam = Tcam(rows=2, width_bits=8)
    tcam[1] = TcamRow(0x10, 0xFF, 0)
    assert tcam.lookup(0x10) == 0
    assert tcam.lookup(0x11) is None
    assert tcam.lookup_many([[0x10], [0x11]]).tolist() == tcam.run([[0x10], [0x11]]).tolist() == [[0], [NO_MATCH]]
    assert Tcam(rows=1).run([5]).tolist() == [NO_MATCH]


def test_members_of_aggregated_links() -> None:
    tcam = Tcam.of_rows([TcamRow(0, 0x80, 4, lag=True), TcamRow(0, 0, 6)], width_bits=8, output_bits=3)
    assert [tcam.lookup(0, member) for member in range(5)] == [4, 5, 6, 7, 0]
    assert tcam.lookup(0x80, 3) == 6
    assert tcam.run([0, 0, 0x80], [1, 4, 3]).tolist() == tcam.lookup_many([0, 0, 0x80], [1, 4, 3]).tolist() == [5, 0, 6]


def test_rewritten_rows() -> None:
    tcam = Tcam.of_rows([TcamRow(0, 0, 1), TcamRow(0, 0, 2)], width_bits=8)
    assert tcam.run([9]).tolist() == [1]
    tcam[0] = TcamRow(0, 0, 1, valid=False)
    assert tcam.run([9]).tolist() == [2]
    tcam.load([TcamRow(0, 0, 3)])
    assert tcam[1].valid is False
    assert tcam.run([9]).tolist() == [3]


def test_bad_arguments() -> None:
    tcam = Tcam(rows=2, width_bits=8, output_bits=4)
    for row, content, message in (
        (2, TcamRow(0, 0, 0), "row must be less than rows=2, not 2"),
        (0, TcamRow(256, 0, 0), r"value must be less than 2\^8, not 0x100"),
        (0, TcamRow(0, 256, 0), r"mask must be less than 2\^8, not 0x100"),
        (0, TcamRow(0, 0, 16), r"output must be less than 2\^4, not 0x10"),
    ):
        with pytest.raises(ValueError, match=message):
            tcam[row] = content
    with pytest.raises(UserError, match=r"lookup.tcam.rows: must be at least 3 for this table, not 2"):
        tcam.load([TcamRow(0, 0, 0)] * 3)
    for arguments, message in (
        ({"rows": 0}, "rows must be at least 1, not 0"),
        ({"width_bits": 63}, "width_bits must be 1 to 62, not 63"),
        ({"output_bits": 0}, "output_bits must be 1 to 62, not 0"),
    ):
        with pytest.raises(ValueError, match=message):
            Tcam(**arguments)


# --- prefixes


@given(st.dictionaries(st.tuples(words, st.integers(0, BITS)), st.integers(0, 9), max_size=12))
def test_longest_prefix_first(table: dict[tuple[int, int], int]) -> None:
    prefixes = {(f"{value:08b}"[:length]): output for (value, length), output in table.items()}
    given_rows = [Prefix(int(bits.ljust(BITS, "1"), 2), len(bits), output) for bits, output in prefixes.items()]
    tcam = Tcam.of_rows(prefix_rows(given_rows, BITS), width_bits=BITS)
    for address in range(1 << BITS):
        matching = [bits for bits in prefixes if f"{address:08b}".startswith(bits)]
        assert tcam.lookup(address) == (prefixes[max(matching, key=len)] if matching else None)


def test_bad_prefixes() -> None:
    with pytest.raises(ValueError, match="length must be 0 to width_bits=8, not 9"):
        prefix_rows([Prefix(0, 9, 0)], 8)
    with pytest.raises(ValueError, match="prefix 0x10/4 is given twice"):
        prefix_rows([Prefix(0x10, 4, 0), Prefix(0x1F, 4, 1)], 8)
    with pytest.raises(ValueError, match=r"address must be less than 2\^8, not 0x100"):
        table_prefixes({256: 1}, 8)


@pytest.mark.parametrize("bits", [1, 2, 3, 4])
def test_range_prefixes_are_exact_and_fewest(bits: int) -> None:
    blocks = [(start, size) for size in (1 << p for p in range(bits + 1)) for start in range(0, 1 << bits, size)]
    fewest = {(low, low): 0 for low in range((1 << bits) + 1)}
    for length in range(1, (1 << bits) + 1):
        for low in range((1 << bits) - length + 1):
            high = low + length
            fewest[low, high] = 1 + min(
                fewest[start + size, high] for start, size in blocks if start == low and start + size <= high
            )
    for (low, high), count in fewest.items():
        found = range_prefixes(low, high, bits)
        assert len(found) == count
        for value in range(1 << bits):
            assert sum((value ^ start) & mask == 0 for start, mask in found) == (low <= value < high)


@settings(deadline=None)
@given(st.dictionaries(st.integers(0, 31), st.integers(0, 3), max_size=32))
def test_tables_as_prefixes(table: dict[int, int]) -> None:
    prefixes = table_prefixes(table, 5)
    tcam = Tcam.of_rows(prefix_rows(prefixes, 5), width_bits=5)
    for address in range(32):
        assert tcam.lookup(address) == table.get(address)
    assert len(prefixes) <= len(table)


def test_tables_as_fewest_prefixes() -> None:
    """All tables of eight addresses and two outputs: no smaller set of prefixes does it (exhaustive search)."""
    blocks = [(start, size) for size in (1, 2, 4, 8) for start in range(0, 8, size)]
    fewest: dict[tuple[int | None, ...], int] = {(None,) * 8: 0}
    # breadth first over what can be painted, large blocks before small ones, each block once
    for start, size in sorted(blocks, key=lambda block: -block[1]):
        for painted, count in list(fewest.items()):
            for output in (0, 1):
                new = (*painted[:start], *(output,) * size, *painted[start + size:])
                fewest[new] = min(fewest.get(new, 99), count + 1)
    for outputs, count in fewest.items():
        if None not in outputs:
            assert len(table_prefixes(dict(enumerate(outputs)), 3)) == count, outputs  # type: ignore[arg-type]


# --- routes

Case = tuple[TopologyConfig, int, int, dict[str, str]]
CASES: list[Case] = [
    (TorusConfig(kind="torus", radices=(4, 4, 4)), 2, 10, {}),
    (TorusConfig(kind="torus", radices=(4, 4, 4)), 4, 10, {}),
    (TorusConfig(kind="torus", radices=(5, 5, 5)), 3, 32, {}),
    (TorusConfig(kind="torus", radices=(2, 2, 2, 4)), 2, 16, {}),
    (TorusConfig(kind="torus", radices=(16, 16)), 4, 24, {}),
    (MeshConfig(kind="mesh", radices=(3, 4, 2), hosts_per_router=3), 3, 16, {}),
    (MeshConfig(kind="mesh", radices=(1, 7)), 3, 8, {}),
    (FatTreeConfig(kind="fat_tree", k=4, n=2), 2, 8, {}),
    (FatTreeConfig(kind="fat_tree", k=4, n=2), 2, 12, {"up_choice": "highest_mismatch"}),
    (FatTreeConfig(kind="fat_tree", k=3, n=2), 2, 24, {}),
    (FatTreeConfig(kind="fat_tree", k=3, n=2), 4, 24, {"up_choice": "highest_mismatch"}),
    (FatTreeConfig(kind="fat_tree", k=6, n=0), 3, 6, {}),
    *((DragonflyConfig(kind="dragonfly", p=2, a=4, h=2, arrangement=name), 3, 13, {})
      for name in ("absolute", "relative", "palmtree")),
    (DragonflyConfig(kind="dragonfly", p=3, a=5, h=1, g=4), 3, 23, {}),  # 3 + 4*2 + 3*(2*2)
    (DragonflyConfig(kind="dragonfly", p=3, a=5, h=1, g=1), 3, 13, {}),
]  # fmt: skip


@pytest.mark.parametrize(("config", "chunk_bits", "most", "rest"), CASES)
def test_routes_are_the_routing_function(
    config: TopologyConfig, chunk_bits: int, most: int, rest: dict[str, Any]
) -> None:
    topology = build(config, AddressConfig(chunk_bits=chunk_bits))  # type: ignore[arg-type]
    ports = KeyPorts(NodeReduction.of_topology(topology, AddressFormat(24, chunk_bits), **rest), topology)
    known = topology.host_address
    everything = np.arange(min(1 << 24, 4 * int(known.max()) + 4096))
    unknown = np.setdiff1d(everything, known)
    assert len(known) == topology.hosts and len(unknown) > 1000
    for router in range(topology.routers):
        contents = route_rows(ports, router)
        assert len(contents) <= most
        tcam = Tcam.of_rows(contents)
        # the keys' ports, which test_model_key_ports follows through the network
        expected = ports.ports(router, ports.reduction.keys(router, known))
        assert np.array_equal(tcam.run(known), expected)
        assert (tcam.run(unknown) == NO_MATCH).all()
        assert (tcam.run([1 << 23, (1 << 24) - 1]) == NO_MATCH).all()
        loose = route_rows(ports, router, drop_unknown=False)
        assert len(loose) <= len(contents)
        assert np.array_equal(Tcam.of_rows(loose).run(known), expected)


@pytest.mark.parametrize("radices", [(4,) * 6, (16,) * 3])
def test_routes_of_4096_nodes(radices: tuple[int, ...]) -> None:
    chunk_bits = {4: 2, 16: 4}[radices[0]]
    topology = build(TorusConfig(kind="torus", radices=radices), AddressConfig(chunk_bits=chunk_bits))  # type: ignore[arg-type]
    ports = KeyPorts(NodeReduction.of_topology(topology, AddressFormat(24, chunk_bits)), topology)
    for router in range(0, 4096, 29):
        contents = route_rows(ports, router)
        assert len(contents) <= 28
        expected = ports.destination_ports(router, topology.host_address)
        assert np.array_equal(Tcam.of_rows(contents).run(topology.host_address), expected)


def test_routes_of_an_edge_list(tmp_path: Path) -> None:
    (tmp_path / "ring").write_text("".join(f"{i} {(i + 1) % 16}\n" for i in range(16)))
    topology = build(EdgeListConfig(kind="edge_list", file=tmp_path / "ring", hosts_per_router=2), AddressConfig())
    ports = KeyPorts(NodeReduction.of_topology(topology, AddressFormat()), topology)
    for router in range(16):
        contents = route_rows(ports, router)
        assert len(contents) <= 16
        tcam = Tcam.of_rows(contents)
        assert np.array_equal(tcam.run(np.arange(32)), ports.destination_ports(router, np.arange(32)))
        assert (tcam.run(np.arange(32, 4096)) == NO_MATCH).all()


def test_routes_of_a_network_with_arbitrary_keys() -> None:
    topology = build(TorusConfig(kind="torus", radices=(4, 4)), AddressConfig())
    plain = KeyPorts(NodeReduction.arbitrary(), topology)
    reduced = KeyPorts(NodeReduction.of_topology(topology, AddressFormat()), topology)
    assert route_rows(plain, 5) == route_rows(reduced, 5)


def test_routes_of_no_switch() -> None:
    topology = build(TorusConfig(kind="torus", radices=(4, 4)), AddressConfig())
    with pytest.raises(ValueError, match="router must be 0 to 15, not 16"):
        route_rows(KeyPorts(NodeReduction.arbitrary(), topology), 16)
