"""Intermediate destinations of POR and OFR: which links they use, how long the routes are, when they are taken."""

from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import int64, types

from hopforge.model.config import parse_config
from hopforge.model.kernel.compile import entry
from hopforge.model.routing.grids.intermediate import (
    Grid,
    Place,
    detours,
    outflank_delta,
    outflank_destinations,
    profit,
    turns_of,
    wraparound_destinations,
)
from hopforge.sim.packet.network import PacketNetwork
from hopforge.sim.packet.records import NET_RECORD, Net
from hopforge.sim.packet.way_kernel import list_routes

DELTA = 2


def opposite(port: int) -> int:
    return port ^ 1


def far_from_wrapping(k: int, delta: int) -> list[int]:
    """Offsets at which destinations beside the minimal orthant stay on its side of the ring."""
    return [d for d in range(-k // 2 + 1, k // 2) if abs(d) < k / 2 - delta]


@pytest.mark.parametrize("n, k, delta", [(2, 16, 2), (3, 12, 2), (4, 8, 1), (5, 6, 1)])
def test_outflank_destinations_use_every_link_that_is_not_minimal_at_both_ends(n: int, k: int, delta: int) -> None:
    grid = Grid((k,) * n)
    s = tuple(x % k for x in range(3, 3 + n))
    pairs = 0
    for offset in product(far_from_wrapping(k, delta), repeat=n):
        t = tuple((a + d) % k for a, d in zip(s, offset, strict=True))
        if s == t:
            continue
        pairs += 1
        minimal_out, minimal_in = set(grid.minimal_ports(s, t)), set(grid.minimal_ports(t, s))
        # link by which a packet comes into t from q = the port of t that is minimal towards q
        leaving, coming = set(minimal_out), set(minimal_in)
        for q in outflank_destinations(grid, s, t, delta):
            leaving |= set(grid.minimal_ports(s, q))
            coming |= set(grid.minimal_ports(t, q))
            # each of them uses such a link at both ends (seed 003, section 3.1.2)
            assert set(grid.minimal_ports(s, q)) - minimal_out
            assert set(grid.minimal_ports(t, q)) - minimal_in
            assert grid.distance(s, q) + grid.distance(q, t) <= grid.distance(s, t) + 4 * delta
        assert leaving == coming == set(range(2 * n))
    assert pairs == len(far_from_wrapping(k, delta)) ** n - 1


def test_sets_of_more_dimensions_go_on_as_those_of_three() -> None:
    # four dimensions, all different: every ordered pair of (−1, 1)
    assert len(set(turns_of(4, 0))) == 12 == len(turns_of(4, 0))
    assert turns_of(4, 0)[:2] == ((-1, 1, 0, 0), (1, -1, 0, 0))
    assert turns_of(4, 1) == (
        (0, -1, 1, 0), (0, 1, -1, 0), (0, -1, 0, 1), (0, 1, 0, -1), (0, 0, -1, 1), (0, 0, 1, -1),
        (1, 0, 0, 0), (-1, 0, 0, 0),
    )  # fmt: skip
    assert turns_of(4, 3) == (
        (1, 0, 0, 1), (-1, 0, 0, 0), (0, 1, 0, -1), (0, -1, 0, 0), (0, 0, 1, 0), (0, 0, -1, 0),
    )  # fmt: skip
    assert turns_of(6, 6) == turns_of(3, 3) == ()


def test_delta_as_a_share_of_the_distance() -> None:
    share = Fraction(35, 100)
    assert [outflank_delta(d, 7, share) for d in (0, 1, 2, 4, 5, 7, 10, 13)] == [1, 1, 1, 1, 2, 2, 4, 5]
    assert outflank_delta(10, 7, Fraction(0)) == 7
    grid = Grid((40, 40))
    longest = {
        d: max(grid.distance((0, 0), q) + grid.distance(q, (d, 0)) for q in outflank_destinations(
            grid, (0, 0), (d, 0), outflank_delta(d, 2, share)))
        for d in (4, 10)
    }  # fmt: skip
    # d + 4 Δ: the dilation is a factor
    assert longest == {4: 4 + 4 * 1, 10: 10 + 4 * 4}


def test_destinations_of_the_examples_of_the_seed() -> None:
    grid = Grid((20, 20))
    # figure 1: both coordinates differ; beside the orthant on either side
    assert set(outflank_destinations(grid, (3, 4), (8, 10), 2)) == {(10, 2), (1, 12)}
    # figure 2, λ of the subset q0, q1, q4, q5: collinear in x, midpoint rounded down
    assert set(outflank_destinations(grid, (3, 4), (8, 4), 2)) == {(1, 6), (5, 6), (5, 2), (10, 2)}
    # mirrored where − is minimal, and over the edge of the coordinates; of an odd distance, too
    assert set(outflank_destinations(grid, (1, 4), (17, 4), 2)) == {(3, 6), (19, 6), (19, 2), (15, 2)}
    assert set(outflank_destinations(grid, (17, 4), (12, 4), 2)) == {(19, 6), (15, 6), (15, 2), (10, 2)}
    # equation 1 of the seed
    assert list(wraparound_destinations(Grid((8, 8)), (1, 2), (4, 2))) == [(6, 2)]
    assert list(wraparound_destinations(Grid((8, 8)), (1, 2), (4, 7))) == [(2, 4), (6, 4), (6, 0)]


@pytest.mark.parametrize("radices", [(5, 7), (9, 8), (5, 7, 9), (6, 5, 7)])
def test_outflank_destinations_are_mirrored_where_minus_is_minimal(radices: Place) -> None:
    grid = Grid(radices)
    origin, odd = (0,) * len(radices), 0
    for t in product(*map(range, radices)):
        if any(2 * x == k for x, k in zip(t, radices, strict=True)):
            continue  # half a ring: + in both
        for turned in product(*((1, -1) if x else (1,) for x in t)):  # equal coordinates: s + λΔ in any case

            def mirror(place: Place, signs: Place = turned) -> Place:
                return tuple(x * sign % k for x, sign, k in zip(place, signs, radices, strict=True))

            plain = [mirror(q) for q in outflank_destinations(grid, origin, t, DELTA)]
            assert list(outflank_destinations(grid, origin, mirror(t), DELTA)) == plain, (t, turned)
            odd += any(x % 2 and sign < 0 for x, sign in zip(t, turned, strict=True))
    assert odd > 10


@entry(types.void(NET_RECORD, int64, int64))
def note_routes(net: Net, s: int, t: int) -> None:
    list_routes(net, s, t)


@pytest.mark.parametrize("radices, kind, share", [
    ((5, 6, 7), "torus", None), ((9, 8), "torus", 0.4), ((7, 8), "mesh", None), ((3, 4, 3, 2), "torus", None),
    ((2, 3, 2, 3, 2), "mesh", 0.3),
])  # fmt: skip
def test_the_kernel_notes_the_same_routes_for_all_pairs(radices: Place, kind: str, share: float | None) -> None:
    text = f"name: all\ntopology: {{kind: {kind}, radices: {list(radices)}}}\nrouter: {{model: packet}}\n"
    packet = "{messages: 1}" if share is None else f"{{messages: 1, outflank_share: {share}}}"
    network = PacketNetwork(parse_config(text + f"routing: {{algorithm: ofr}}\npacket: {packet}\n"), 0.1, 1)
    exact = Fraction(str(share or 0))
    number = {place[::-1]: n for n, place in enumerate(product(*map(range, radices[::-1])))}
    for s in list(number)[:: 1 + len(number) // 40]:
        for t, node in number.items():
            note_routes(network.state.record, number[s], node)
            noted = network.state["via"][number[s]][: int(network.state["routes"]["count"][number[s]])]
            delta = outflank_delta(network.grid.distance(s, t), DELTA, exact)
            found = detours(network.grid, s, t, outflank=True, delta=delta)
            assert noted["place"].tolist() == [number[one.place] for one in found], (s, t)
            assert noted["hops"].tolist() == [one.hops for one in found], (s, t)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_wraparound_destinations_lie_in_all_other_orthants(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 3))
    radices = tuple(data.draw(st.lists(st.integers(5, 17), min_size=n, max_size=n)))
    grid = Grid(radices)
    s = tuple(data.draw(st.integers(0, k - 1)) for k in radices)
    t = tuple(data.draw(st.integers(0, k - 1)) for k in radices)
    found = list(wraparound_destinations(grid, s, t))
    differing = sum(a != b for a, b in zip(s, t, strict=True))
    assert len(found) == len(set(found)) == 2**differing - 1
    for q in found:
        # in every dimension the destination halves one of the two ways round, to within one hop
        for a, b, x, k in zip(s, t, q, radices, strict=True):
            up, down = ((x - a) % k, (b - x) % k), ((a - x) % k, (x - b) % k)
            assert abs(up[0] - up[1]) <= 1 or abs(down[0] - down[1]) <= 1


def test_mesh_has_only_outflank_destinations_inside() -> None:
    grid = Grid((6, 6), torus=False)
    assert set(outflank_destinations(grid, (2, 3), (3, 4), 2)) <= {(x, y) for x in range(6) for y in range(6)}
    assert [one.place for one in detours(grid, (0, 0), (5, 5), outflank=True, delta=2)] == []
    assert {one.place for one in detours(grid, (2, 2), (3, 3), outflank=True, delta=2)} == {(5, 0), (0, 5)}
    assert list(wraparound_destinations(grid, (0, 0), (5, 5))) == []


def test_no_detour_through_the_ends() -> None:
    for k, n in ((4, 2), (3, 3), (5, 2)):
        grid = Grid((k,) * n)
        for s, t in product(product(range(k), repeat=n), repeat=2):
            for one in detours(grid, s, t, outflank=True, delta=DELTA):
                assert one.place not in (s, t)
                assert one.hops == grid.distance(s, one.place) + grid.distance(one.place, t) >= grid.distance(s, t)


used_slots = st.lists(st.integers(0, 24), min_size=1, max_size=6)


@settings(max_examples=100, deadline=None)
@given(direct=used_slots, through=used_slots, hops=st.integers(1, 24), more=st.integers(0, 40))
def test_ofr_never_takes_a_route_of_twice_the_length(
    direct: list[int], through: list[int], hops: int, more: int
) -> None:
    least, eta = min(direct + through), Fraction(2)
    minimal = profit(least, direct, eta, hops, hops)
    detour = profit(least, through, eta, hops, hops + more)
    if detour > minimal:
        assert hops + more < 2 * hops


def test_profit_is_that_of_the_seed() -> None:
    # equation 15: u*/u + η·d/d̃
    assert profit(2, [4, 8], Fraction(2), 5, 10) == Fraction(2, 6) + 1
    assert profit(0, [0, 0], Fraction(1), 3, 4) == 1 + Fraction(3, 4)
    assert profit(0, [0, 1], Fraction(1), 3, 4) == Fraction(3, 4)


def test_both_ways_at_half_the_ring() -> None:
    here: Place = (0, 0)
    assert Grid((8, 7)).minimal_ports(here, (4, 3)) == [0, 2]
    assert Grid((8, 7), both_ways=True).minimal_ports(here, (4, 3)) == [0, 1, 2]
