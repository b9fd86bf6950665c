"""Keys: golden values, comparators, encoding, and the three forms of every key function against each other."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopforge.model.config import parse_config
from hopforge.model.config.lookup import KEY_FUNCTIONS
from hopforge.model.lookup.human_keys import fat_tree_key, torus_key
from hopforge.model.lookup.interval_comparator import comparator_settings, interval_plus
from hopforge.model.lookup.key_kernel import reduce_keys
from hopforge.model.lookup.node_reduction import NodeReduction
from hopforge.model.numbers.address import AddressFormat
from hopforge.model.numbers.crc import crc
from hopforge.model.numbers.crc_catalogue import CRC

DATA = Path(__file__).parents[2] / "data"
GRID = json.loads((DATA / "grid_keys.json").read_text())
TREE = json.loads((DATA / "fattree_keys.json").read_text())["tables"]["k2n2"]


def digits(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.strip("()").split(",") if part.strip())


# --- golden values


@pytest.mark.parametrize(("name", "mode", "radices"), [("mesh_3x3", "mesh", (3, 3)), ("torus_5x5", "torus", (5, 5))])
def test_golden_grid_keys(name: str, mode: str, radices: tuple[int, int]) -> None:
    address = AddressFormat(24, 4)
    reduction = NodeReduction(mode, address, radices)  # type: ignore[arg-type]
    table = GRID["tables"][name]
    assert len(table) == (radices[0] * radices[1]) ** 2
    for pair, key in table.items():
        c, d = (digits(part) for part in pair.split("->"))
        assert reduction.human(c[0] + radices[0] * c[1], address.join(d)) == tuple(key), pair


def test_golden_examples() -> None:
    examples = GRID["examples"]
    mesh = NodeReduction.mesh((3, 3))
    for high, low in ((0, 2), (1, 2), (2, 2)):  # the figure writes the most significant digit first
        assert mesh.human(4, low | high << 4) == tuple(examples[f"fig5.6 (1,1)->({high},{low})"])
    assert NodeReduction.torus((5, 5)).human(6, 0x41) == tuple(examples['fig5.13 "11"->"41" k=5, floor'])


@pytest.mark.parametrize(("name", "choice"), [("literal", "highest_mismatch"), ("d_dim", "d_mod_k")])
def test_golden_fat_tree_keys(name: str, choice: str) -> None:
    reduction = NodeReduction.fat_tree(2, 2, address=AddressFormat(24, 2), up_choice=choice)
    assert len(TREE[name]) == 3 * 4 * 8
    for pair, key in TREE[name].items():
        level, rest = pair.split("|")
        c, d = (digits(part) for part in rest.split("->"))
        assert fat_tree_key(int(level), c, d, choice) == tuple(key), pair  # type: ignore[arg-type]
        assert reduction.human(4 * int(level) + c[0] + 2 * c[1], d[0] | d[1] << 2 | d[2] << 4) == tuple(key), pair


# --- comparators


def test_torus_ties_follow_the_sign() -> None:
    assert torus_key((0,), (2,), (4,)) == ("X", 0, "+")
    assert torus_key((2,), (0,), (4,)) == ("X", 0, "-")


@pytest.mark.parametrize("mode", ["mesh", "torus"])
def test_comparators_decide_as_the_definition(mode: str) -> None:
    cases = [(k, c, d, 5) for k in range(1, 18) for c in range(k) for d in range(k) if c != d]
    cases += [
        (k, c, d, 8) for k in (18, 100, 127, 128, 129, 200, 255, 256)
        for c in {0, 1, k // 2 - 1, k // 2, k // 2 + 1, k - 2, k - 1} for d in range(k) if c != d
    ]  # fmt: skip
    for k, c, d, bits in cases:
        settings = comparator_settings(mode, c, k, bits)  # type: ignore[arg-type]
        key = NodeReduction(mode, AddressFormat(24, bits), (k,)).human(c, d)  # type: ignore[arg-type]
        assert interval_plus(settings, c, d) == (key == ("X", 0, "+")), (k, c, d)
        assert 0 <= settings.threshold < 1 << bits


def test_comparator_settings_are_those_of_the_page() -> None:
    assert comparator_settings("mesh", 3, 8, 3) == (False, 7)
    assert comparator_settings("torus", 3, 8, 3) == (False, 7)
    assert comparator_settings("torus", 5, 8, 3) == (True, 0)
    assert comparator_settings("torus", 255, 256, 8) == (True, 126)
    with pytest.raises(ValueError, match=r"radices\[0\] must be 1 to 8 \(chunk_bits=3\), not 9"):
        comparator_settings("torus", 0, 9, 3)
    with pytest.raises(ValueError, match=r"digits\[0\] must be 0 to 4, not 5"):
        comparator_settings("torus", 5, 5, 3)


# --- encoding


def test_encoded_keys_are_those_of_the_page() -> None:
    grid = NodeReduction.torus((4, 4), address=AddressFormat(24, 2))
    assert grid.encode(("L",)) == 2 << 24
    assert grid.encode(("X", 1, "+"), member=5) == 2 << 24 | 5 << 20 | 1 << 18 | 1
    assert grid.encode(("X", 0, "-")) == 2 << 24 | 2 << 18
    assert NodeReduction.mesh((4, 4)).encode(("X", 0, "-")) == 1 << 24 | 2 << 18
    tree = NodeReduction.fat_tree(4, 2)
    assert tree.encode(("U", 3)) == 3 << 24 | 1 << 18 | 3
    assert tree.encode(("D", 3)) == 3 << 24 | 2 << 18 | 3
    fly = NodeReduction.dragonfly(4, 8, 33)
    assert fly.encode(("T", 3), member=15) == 4 << 24 | 15 << 20 | 3
    assert fly.encode(("R", 7)) == 4 << 24 | 1 << 18 | 7
    assert fly.encode(("G", 32)) == 4 << 24 | 2 << 18 | 32
    assert NodeReduction.arbitrary().encode(("A", 0xFFFFFF)) == 0xFFFFFF


def test_bad_keys() -> None:
    tree = NodeReduction.fat_tree(4, 2)
    with pytest.raises(ValueError, match=r"key must be one of U, D in mode fat_tree, not \('L',\)"):
        tree.encode(("L",))
    with pytest.raises(ValueError, match=r"key must be of mode 3 \(fat_tree\), not 2"):
        tree.decode(2 << 24)
    with pytest.raises(ValueError, match="key must be of a kind of mode fat_tree, not 3"):
        tree.decode(3 << 24 | 3 << 18)
    with pytest.raises(ValueError, match=r"key must be \('A', address\) in mode arbitrary, not \('L',\)"):
        NodeReduction.arbitrary().encode(("L",))


@pytest.mark.parametrize("members", range(1, 17))
def test_members(members: int) -> None:
    address = 0x123456
    hashed = crc(CRC["CRC-32C"], bytes.fromhex("123456"))
    for hash_name, expected in (("crc", hashed % members), ("modulo", address % members)):
        reduction = NodeReduction.mesh((8,) * 6, address=AddressFormat(24, 4), members=members, member_hash=hash_name)
        assert reduction.member(address) == expected
        assert reduction.decode(reduction.key(0, address))[1] == expected
    assert NodeReduction.arbitrary(members=members).key(0, address) == address


def test_modulo_members_are_degenerate_under_dimension_order_and_crc_members_are_not() -> None:
    # all traffic of one row that leaves in dimension 1 has the same low digit: one member of four does all the work
    destinations = [3 | y << 4 for y in range(1, 16)]
    torus = {name: NodeReduction.torus((16, 16), members=4, member_hash=name) for name in ("crc", "modulo")}
    assert len({torus["modulo"].member(d) for d in destinations}) == 1
    assert len({torus["crc"].member(d) for d in destinations}) == 4


# --- the forms of every function


@st.composite
def networks(draw: st.DrawFn) -> tuple[NodeReduction, st.SearchStrategy[int]]:
    mode = draw(st.sampled_from(KEY_FUNCTIONS))
    width, k = draw(st.sampled_from([(24, 2), (24, 3), (24, 4), (24, 6), (24, 8), (12, 2), (33, 3), (48, 8), (48, 2)]))
    address = AddressFormat(width, k)
    rest = {
        "members": draw(st.integers(1, 16)), "member_hash": draw(st.sampled_from(["crc", "modulo"])),
        "up_choice": draw(st.sampled_from(["d_mod_k", "highest_mismatch"])), "address": address,
    }  # fmt: skip
    most = address.most_digits
    if mode in {"mesh", "torus"}:
        terminals = draw(st.integers(1, 1 << k)) if most > 1 else 1
        radices = draw(st.lists(st.integers(1, 1 << k), min_size=1, max_size=most - (terminals > 1)))
        reduction = NodeReduction(mode, radices=tuple(radices), hosts_per_router=terminals, **rest)  # type: ignore[arg-type]
        limits = [*radices, terminals] if terminals > 1 else radices
    elif mode == "fat_tree":
        limits = [draw(st.integers(2, 1 << k))] * draw(st.integers(1, most))
        reduction = NodeReduction(mode, radices=tuple(limits), **rest)
    elif mode == "dragonfly":
        group_bits = min(width - 2 * k, width - 6)
        limits = [draw(st.integers(1, 1 << k)), draw(st.integers(1, 1 << k)), draw(st.integers(1, 1 << group_bits))]
        reduction = NodeReduction(mode, radices=tuple(limits), **rest)
    else:
        return NodeReduction(mode, **rest), st.integers(0, (1 << width) - 1)
    parts = st.tuples(*(st.integers(0, limit - 1) for limit in limits))
    return reduction, parts.map(lambda values: sum(value << i * k for i, value in enumerate(values)))


@settings(deadline=None)  # the first call compiles
@given(networks(), st.data())
def test_arrays_and_kernel_equal_one_at_a_time(
    network: tuple[NodeReduction, st.SearchStrategy[int]], data: st.DataObject
) -> None:
    reduction, destinations = network
    d = data.draw(st.lists(destinations, min_size=1, max_size=6))
    routers = data.draw(
        st.lists(st.integers(0, max(reduction.routers, 1) - 1), min_size=len(d), max_size=len(d))
    )  # fmt: skip
    expected = [reduction.key(router, address) for router, address in zip(routers, d, strict=True)]
    assert reduction.keys(routers, d).tolist() == expected
    own, level = reduction.switches(routers)
    assert [tuple(place) for place in zip(own, level, strict=True)] == [reduction.switch(router) for router in routers]
    keys = np.empty(len(d), dtype=np.int64)
    reduce_keys(reduction.tables, own, level, np.array(d), keys)
    assert keys.tolist() == expected
    assert reduction.keys(routers[0], d).tolist() == [reduction.key(routers[0], address) for address in d]
    reduce_keys(reduction.tables, own[:1], level[:1], np.array(d), keys)
    assert keys.tolist() == [reduction.key(routers[0], address) for address in d]
    for router, address, key in zip(routers, d, expected, strict=True):
        assert 0 <= key < 1 << reduction.key_bits
        member = 0 if reduction.mode == "arbitrary" else reduction.member(address)
        assert reduction.decode(key) == (reduction.human(router, address), member)


def test_number_of_keys() -> None:
    """As many keys as the specification counts: 2n + 1, 2k, (g − 1) + (a − 1) + p."""
    def keys(reduction: NodeReduction, router: int, addresses: list[int]) -> int:
        return len({reduction.human(router, address) for address in addresses})

    cube = [x | y << 4 | z << 8 for x in range(5) for y in range(5) for z in range(5)]
    assert keys(NodeReduction.torus((5, 5, 5)), 62, cube) == 7
    assert keys(NodeReduction.mesh((5, 5, 5)), 62, cube) == 7
    assert keys(NodeReduction.fat_tree(5, 2), 30, cube) == 10
    fly = [t | r << 4 | g << 8 for t in range(2) for r in range(4) for g in range(9)]
    assert keys(NodeReduction.dragonfly(2, 4, 9), 5, fly) == 8 + 3 + 2


# --- configuration and errors

CONFIG = """
name: test
topology: {kind: torus, radices: [4, 4, 4]}
address: {chunk_bits: 2}
lookup: {lag: {max_members: 4, members: 3, hash: modulo}}
"""


def test_from_config() -> None:
    reduction = NodeReduction.from_config(parse_config(CONFIG))
    assert reduction == NodeReduction.torus((4, 4, 4), address=AddressFormat(24, 2), members=3, member_hash="modulo")
    plain = NodeReduction.from_config(parse_config(CONFIG.replace("lookup: {", "lookup: {reduction: false, ")))
    assert plain.mode == "arbitrary"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: NodeReduction("ring"), "mode must be one of arbitrary, mesh, torus, fat_tree, dragonfly, not 'ring'"),
        (lambda: NodeReduction.torus((4,), members=17), "members must be 1 to 16, not 17"),
        (lambda: NodeReduction.torus((4,), member_hash="md5"), "member_hash must be one of crc, modulo, not 'md5'"),
        (
            lambda: NodeReduction.fat_tree(4, 2, up_choice="left"),
            "up_choice must be one of d_mod_k, highest_mismatch, not 'left'",
        ),
        (lambda: NodeReduction.torus((17,)), r"radices\[0\] must be 1 to 16 \(chunk_bits=4\), not 17"),
        (lambda: NodeReduction.torus((4,) * 7), "radices must be at most 6"),
        (lambda: NodeReduction.torus((4,) * 6, hosts_per_router=2), "radices must be at most 6"),
        (lambda: NodeReduction.torus((4,), hosts_per_router=0), "hosts_per_router must be at least 1, not 0"),
        (lambda: NodeReduction.torus(()), "radices must not be empty for mode torus"),
        (lambda: NodeReduction("fat_tree", radices=(2, 3)), "radices must be the same for every digit of a fat tree"),
        (lambda: NodeReduction("dragonfly", radices=(2, 3)), r"radices must be \(p, a, g\) for a dragonfly"),
        (lambda: NodeReduction.dragonfly(17, 4, 9), r"radices\[0\] must be 1 to 16 \(chunk_bits=4\), not 17"),
        (
            lambda: NodeReduction.dragonfly(2, 2, 300, address=AddressFormat(16, 4)),
            r"radices\[2\] must be 1 to 256 \(8 bits of a group\), not 300",
        ),
        (
            lambda: NodeReduction.torus((4,), address=AddressFormat(12, 8)),
            "chunk_bits must be at most width_bits - 6 = 6, not 8",
        ),
    ],
)
def test_bad_parameters(make: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()  # type: ignore[operator]


@pytest.mark.parametrize(
    ("reduction", "address", "message"),
    [
        (NodeReduction.torus((5, 5)), 0x50, "address 0x50 is beyond the network: digit 1 must be less than 5, not 5"),
        (NodeReduction.mesh((5, 5)), 0x100, r"address must be less than 2\^8 \(2 digits of 4 bits\), not 0x100"),
        (NodeReduction.fat_tree(3, 1), 0x3, "address 0x3 is beyond the network: digit 0 must be less than 3, not 3"),
        (NodeReduction.dragonfly(2, 4, 9), 0x900, "address 0x900 is beyond the network: group must be less than 9"),
        (NodeReduction.dragonfly(2, 4, 9), 0x140, "address 0x40 is beyond the network: digit 1 must be less than 4"),
        (NodeReduction.arbitrary(), 1 << 24, r"address must be less than 2\^24"),
        (NodeReduction.arbitrary(), -1, r"address must be less than 2\^24"),
    ],
)
def test_address_beyond_the_network(reduction: NodeReduction, address: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        reduction.key(0, address)
    with pytest.raises(ValueError, match=message):
        reduction.keys(0, [0, address])


def test_switch_beyond_the_network() -> None:
    for reduction, routers in ((NodeReduction.torus((5, 5)), 25), (NodeReduction.dragonfly(2, 4, 9), 36)):
        for router in (-1, routers):
            message = f"router must be 0 to {routers - 1}, not {router}"
            with pytest.raises(ValueError, match=message):
                reduction.key(router, 0)
            with pytest.raises(ValueError, match=message):
                reduction.keys([0, router], 0)
