"""The golden router against the figures of docs/definitions/router.md."""

import networkx as nx
import numpy as np
import pytest

from hopforge.model.router.allocators import MaximumSize, OutputFirst, Wavefront, allocation
from hopforge.model.router.flit import BODY, HEAD, SINGLE, TAIL, Flit, PortInputs
from hopforge.model.router.golden import RouterModel
from hopforge.model.router.params import Route, RouterParams


def play(params: RouterParams, events: dict[int, dict[int, PortInputs]], cycles: int = 30) -> list:
    """Outputs of every cycle, for the inputs of some (cycle, port)."""
    router = RouterModel(params)
    history = []
    for cycle in range(cycles):
        given = events.get(cycle, {})
        history.append(router.step([given.get(i, PortInputs()) for i in range(params.ports)])[0])
    return history


def flits_at(history: list, port: int) -> list[tuple[int, Flit]]:
    return [(cycle, row[port].flit) for cycle, row in enumerate(history) if row[port].flit is not None]


def params(**given) -> RouterParams:
    return RouterParams(**({"ports": 2, "vcs": 1, "buffer_flits": 4, "routes": (Route(1), Route(2))} | given))


@pytest.mark.parametrize("rc_cycles", [0, 1, 4])
@pytest.mark.parametrize("speculation", [False, True])
def test_stages_of_a_packet(rc_cycles: int, speculation: bool) -> None:
    """On the input in y: VA in y + 1 + r, SA in y + 2 + r, on the output in y + 4 + r; the credit in y + 3 + r."""
    packet = [Flit(HEAD, 0, 1), Flit(BODY, 0, 7), Flit(TAIL, 0, 8)]
    events = {3 + n: {0: PortInputs(flit)} for n, flit in enumerate(packet)}
    history = play(params(rc_cycles=rc_cycles, speculation=speculation), events)
    first = 3 + 4 + rc_cycles - speculation
    # The VC is active only one cycle after its allocation, so that a body cannot follow the speculative head earlier.
    assert flits_at(history, 1) == [(first + n, flit) for n, flit in enumerate(packet)]
    assert [cycle for cycle, row in enumerate(history) if row[0].credit == 0] == [first - 1, first, first + 1]


def test_credits_hold_flits_back() -> None:
    """Two credits: the third flit waits for the first to come back in 20, counts from 21 + c on."""
    packet = [Flit(HEAD, 0, 1), Flit(BODY, 0, 7), Flit(TAIL, 0, 8)]
    events = {n: {0: PortInputs(flit)} for n, flit in enumerate(packet)} | {20: {1: PortInputs(None, 0)}}
    for delay in (0, 3):
        history = play(params(rc_cycles=0, neighbour_flits=(4, 2), credit_delay_cycles=delay), events)
        assert [cycle for cycle, _ in flits_at(history, 1)] == [4, 5, 20 + 1 + delay + 2]


@pytest.mark.parametrize(("release", "second"), [("tail", 6), ("credits", 24)])
def test_release_of_a_vc(release: str, second: int) -> None:
    """The next packet's VA is in the cycle after the tail's grant in 2, or after the credit's arrival in 20."""
    events = {0: {0: PortInputs(Flit(SINGLE, 0, 1)), 1: PortInputs(Flit(SINGLE, 0, 1))}, 20: {1: PortInputs(None, 0)}}
    history = play(params(rc_cycles=0, vc_release=release), events)
    assert [cycle for cycle, _ in flits_at(history, 1)] == [4, second]


@pytest.mark.parametrize("rc_cycles", [0, 1, 4])
def test_stages_of_a_packet_without_vc_allocation(rc_cycles: int) -> None:
    """A hop is 2 + r + L: on the input in y, SA in y + 1 + r, on the output in y + 3 + r; bodies follow at once."""
    packet = [Flit(HEAD, 0, 1), Flit(BODY, 0, 7), Flit(TAIL, 0, 8)]
    events = {3 + n: {0: PortInputs(flit)} for n, flit in enumerate(packet)}
    history = play(params(rc_cycles=rc_cycles, va="free_queue"), events)
    first = 3 + 3 + rc_cycles
    assert flits_at(history, 1) == [(first + n, flit) for n, flit in enumerate(packet)]
    assert [cycle for cycle, row in enumerate(history) if row[0].credit == 0] == [first - 1, first, first + 1]


@pytest.mark.parametrize(("release", "second"), [("tail", 5), ("credits", 23)])
def test_release_of_a_vc_without_vc_allocation(release: str, second: int) -> None:
    """Granted in 1, so free from 3 on; or from the cycle after the credit's arrival in 20. On the output 2 later."""
    events = {0: {0: PortInputs(Flit(SINGLE, 0, 1)), 1: PortInputs(Flit(SINGLE, 0, 1))}, 20: {1: PortInputs(None, 0)}}
    history = play(params(rc_cycles=0, vc_release=release, va="free_queue"), events)
    assert [cycle for cycle, _ in flits_at(history, 1)] == [3, second]


def test_free_vcs_are_given_in_turn_and_only_with_credits() -> None:
    """Six single flits to one output with 3 VCs of a credit each, VC 1 forbidden; credits of VC 2, then 0 come back."""
    events = {n: {0: PortInputs(Flit(SINGLE, n % 3, 1 | n << 48))} for n in range(6)}
    events |= {20: {1: PortInputs(None, 2)}, 25: {1: PortInputs(None, 0)}}
    rule = ((((5, 5),) * 3,) * 2,)
    history = play(params(vcs=3, rc_cycles=0, va="free_queue", neighbour_flits=(1, 1), vc_rule=rule), events, 40)
    assert [(cycle, flit.vc) for cycle, flit in flits_at(history, 1)] == [(3, 0), (4, 2), (23, 2), (28, 0)]


def test_unroutable_packets_are_drained_and_counted() -> None:
    """Destination 2 is in no table; the packet behind it leaves as if it had come when the tail was drained."""
    packet = [Flit(HEAD, 0, 2), Flit(TAIL, 0, 0), Flit(SINGLE, 0, 1)]
    history = play(params(rc_cycles=1), {n: {0: PortInputs(flit)} for n, flit in enumerate(packet)})
    # RC in 1, DRAIN in 2 and 3, RC of the next in 4, VA 5, SA 6, output 8.
    assert flits_at(history, 1) == [(8, packet[2])]
    assert [row[0].drops for row in history[:6]] == [0, 0, 0, 0, 1, 1]
    assert [cycle for cycle, row in enumerate(history) if row[0].credit == 0] == [3, 4, 7]


def test_virtual_cut_through_waits_for_room() -> None:
    length = 3 << 2 * 24 + 8
    events = {0: {0: PortInputs(Flit(SINGLE, 0, 1 | 1 << 56))}, 1: {0: PortInputs(Flit(HEAD, 0, 1 | length))}}
    events |= {2: {0: PortInputs(Flit(BODY, 0, 0))}, 3: {0: PortInputs(Flit(TAIL, 0, 0))}, 15: {1: PortInputs(None, 0)}}
    history = play(params(rc_cycles=0, switching="vct", neighbour_flits=(4, 3)), events)
    # The single flit leaves 2 credits; all 3 are there from 16 on: VA 16, SA 17, output 19.
    assert [cycle for cycle, _ in flits_at(history, 1)] == [4, 19, 20, 21]


def test_adaptive_choice_by_credits() -> None:
    """Of two equal ports the lower first; then the one that has more credits left."""
    routes = (Route(0b110),)
    given = params(ports=3, vcs=2, routes=routes, rc_cycles=0)
    history = play(given, {0: {0: PortInputs(Flit(SINGLE, 0, 0))}, 6: {0: PortInputs(Flit(SINGLE, 0, 0))}})
    assert [cycle for cycle, _ in flits_at(history, 1)] == [4]
    assert [cycle for cycle, _ in flits_at(history, 2)] == [10]


def test_escape_when_nothing_is_free() -> None:
    """The adaptive port has one VC, held by a packet without an end; the second packet takes the escape."""
    given = params(ports=3, routes=(Route(0b010, 0, 2),), rc_cycles=0)
    history = play(given, {0: {0: PortInputs(Flit(HEAD, 0, 0))}, 5: {1: PortInputs(Flit(SINGLE, 0, 0))}})
    assert [cycle for cycle, _ in flits_at(history, 1)] == [4]
    assert [cycle for cycle, _ in flits_at(history, 2)] == [9]


def test_islip_pointers_spread() -> None:
    """All request all: one grant at first (all outputs pick input 0), a full matching from the size-th cycle on."""
    allocator = OutputFirst(4, "round_robin")
    everything = {n: {0, 1, 2, 3} for n in range(4)}
    sizes = []
    for _ in range(8):
        grants = allocator.match(everything)
        allocator.take(grants)
        sizes.append(len(grants))
    assert sizes[0] == 1
    assert sizes[4:] == [4] * 4


def test_wavefront_begins_at_its_diagonal() -> None:
    allocator = Wavefront(3)
    everything = {n: {0, 1, 2} for n in range(3)}
    assert allocator.match(everything) == {0: 0, 1: 2, 2: 1}
    allocator.take({0: 0})
    assert allocator.match(everything) == {0: 1, 1: 0, 2: 2}


def test_maximum_size_is_maximum_and_begins_at_its_pointer() -> None:
    """Against the matchings of networkx; what an input had goes to another output where one more grant needs it."""
    allocator = MaximumSize(3)
    assert allocator.match({0: {0}, 1: {0}}) == {0: 0}
    assert allocator.match({0: {0, 1}, 1: {0}}) == {0: 1, 1: 0}
    allocator.take({0: 0})
    assert allocator.match({0: {0}, 1: {0}}) == {1: 0}
    rng = np.random.default_rng(1)
    for _ in range(200):
        size = int(rng.integers(1, 8))
        asked = {n: {m for m in range(size) if rng.random() < 0.3} for n in range(size)}
        graph = nx.Graph([(n, size + m) for n, outputs in asked.items() for m in outputs])
        most = len(nx.bipartite.maximum_matching(graph, {n for n in graph if n < size})) // 2
        allocator = MaximumSize(size)
        allocator.first = int(rng.integers(size))
        grants = allocator.match(asked)
        assert len(grants) == len(set(grants.values())) == most
        assert all(m in asked[n] for n, m in grants.items())


def test_unknown_names() -> None:
    with pytest.raises(ValueError, match="one of input_first, output_first, islip, wavefront, max_size, not 'x'"):
        allocation("x", 2)
    with pytest.raises(ValueError, match="arbiter must be one of round_robin, matrix, not 'x'"):
        allocation("wavefront", 2, "x")
