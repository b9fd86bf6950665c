"""The golden plane against closed forms and hand-made cases: times, errors, groups that do not wait for each other."""

from collections import defaultdict

import pytest

from hopforge.model.config import parse_config
from hopforge.model.router.collective_network import CollectiveNetwork
from hopforge.model.router.collective_params import OPERATIONS, Flit, PlaneParams
from hopforge.model.router.collective_plane import PlaneDesign, configured_plane
from hopforge.model.router.collective_unit import combined

SUM, MULTICAST, BARRIER = (OPERATIONS.index(name) for name in ("sum", "multicast", "barrier"))


def plane(topology: str, section: str = "", latency: int = 1) -> PlaneDesign:
    return configured_plane(
        parse_config(
            f"name: x\ntopology: {topology}\nrouter: {{link_latency_cycles: {latency}}}\n"
            f"collective_plane: {{{section}}}\n"
        )
    )


def ready(design: PlaneDesign) -> CollectiveNetwork:
    golden = design.golden()
    for write in design.writes:
        golden.outputs()
        golden.cycle({}, {}, write)
    return golden


def play(golden: CollectiveNetwork, sent: dict[int, list[Flit]], cycles: int = 200) -> dict[int, list[Flit]]:
    """Let hosts send their flits, one a cycle if there is a credit, and take at once; return what they get."""
    found = defaultdict(list)
    left = {host: list(flits) for host, flits in sent.items()}
    credits = defaultdict(lambda: golden.params.buffer_flits)
    for _ in range(cycles):
        results, back = golden.outputs()
        for host, groups in back.items():
            for group in range(golden.params.groups):
                credits[host, group] += groups >> group & 1
        flits = {}
        for host, waiting in left.items():
            if waiting and credits[host, waiting[0].group]:
                flits[host] = waiting.pop(0)
                credits[host, flits[host].group] -= 1
        for host, flit in results.items():
            found[host].append(flit)
        golden.cycle(flits, {host: 1 << flit.group for host, flit in results.items()})
    return found


def flit(word: int = 0, *, group: int = 0, operation: int = SUM, sequence: int = 0, last: int = 1) -> Flit:
    return Flit(group, operation, sequence, last, 0, word)


@pytest.mark.parametrize(
    ("operation", "words", "result"),
    [
        ("barrier", [7, 9], 0), ("multicast", [9], 9), ("sum", [200, 100, 5], 49), ("min", [200, 3, 5], 3),
        ("max", [200, 3, 255], 255), ("and", [0b1100, 0b1010], 0b1000), ("or", [0b1100, 0b1010], 0b1110),
        ("xor", [0b1100, 0b1010, 1], 0b0111), ("and", [6], 6), ("min", [6], 6), ("sum", [6], 6),
    ],
)  # fmt: skip
def test_operations(operation: str, words: list[int], result: int) -> None:
    assert combined(OPERATIONS.index(operation), words, 8) == result


def test_a_multicast_does_not_wait_for_the_others() -> None:
    golden = ready(plane("{kind: mesh, radices: [3, 1]}"))
    word = flit(77, operation=MULTICAST)
    assert play(golden, {2: [word]}) == {host: [word] for host in range(3)}


def test_groups_do_not_wait_for_each_other() -> None:
    # host 0 begins with group 0, host 1 with group 1, and nobody sends a second word of a group without credits
    golden = ready(plane("{kind: mesh, radices: [2, 1]}", "groups: [{}, {}], buffer_flits: 1"))
    first, second = flit(3), flit(5, group=1)
    found = play(golden, {0: [first, second], 1: [second, first]})
    assert all(sorted(found[host]) == [flit(6), flit(10, group=1)] for host in (0, 1))


def test_a_group_of_which_a_member_is_silent_waits_alone() -> None:
    golden = ready(plane("{kind: mesh, radices: [2, 1]}", "groups: [{}, {hosts: [0]}], buffer_flits: 1"))
    found = play(golden, {0: [flit(1), *[flit(k, group=1, sequence=k) for k in range(9)]]})
    assert found == {0: [flit(k, group=1, sequence=k) for k in range(9)]}


@pytest.mark.parametrize(
    "other",
    [flit(1, operation=SUM + 1), flit(1, sequence=1), flit(1, last=0)], ids=["operation", "sequence", "length"],
)  # fmt: skip
def test_members_that_do_not_agree_are_told(other: Flit) -> None:
    golden = ready(plane("{kind: mesh, radices: [3, 1]}"))
    found = play(golden, {0: [flit(1)], 1: [flit(1)], 2: [other]})
    assert [[each.error for each in found[host]] for host in range(3)] == [[1]] * 3


def test_two_sources_of_a_multicast_stay_whole_and_the_later_one_is_an_error() -> None:
    design = plane("{kind: mesh, radices: [3, 1]}")
    golden = ready(design)
    ports = {link.target.router: link.source.port for link in design.links if link.source.router == 1}
    assert ports[2] < ports[0]  # words of host 2 go first
    sent = {
        host: [flit(10 * host + k, operation=MULTICAST, last=int(k == 3)) for k in range(4)] for host in (0, 2)
    }  # fmt: skip
    found = play(golden, sent)
    assert found[0] == found[1] == found[2]
    assert [each.word for each in found[1]] == [20, 21, 22, 23, 0, 1, 2, 3]
    assert [each.error for each in found[1]] == [0] * 4 + [1] * 4


def test_a_wrong_number_of_the_operation_is_an_error_and_the_next_one_is_not() -> None:
    golden = ready(plane("{kind: mesh, radices: [1, 1]}", "sequence_bits: 1"))
    found = play(golden, {0: [flit(sequence=n) for n in (0, 1, 0, 0, 1)]})
    assert [each.error for each in found[0]] == [0, 0, 0, 1, 0]


def test_strangers_have_no_effect() -> None:
    golden = ready(plane("{kind: mesh, radices: [2, 1]}", "groups: [{hosts: [0]}], max_groups: 3"))
    found = play(golden, {0: [flit(9)], 1: [flit(4), flit(4, group=3), flit(4, group=1)]})
    assert found == {0: [flit(9)]}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"groups": 17}, "groups must be 1 to 16, not 17"), ({"width_bits": 0}, "width_bits must be 1 to 1024, not 0"),
        ({"buffer_flits": 0}, "buffer_flits must be 1 to 256, not 0"), ({"sequence_bits": 17}, "sequence_bits must"),
    ],
)  # fmt: skip
def test_bad_parameters(given: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PlaneParams(**given)


def test_fields_of_a_flit() -> None:
    params = PlaneParams(groups=3, width_bits=8, sequence_bits=4)
    assert params.flit_bits == 8 + 1 + 1 + 3 + 4 + 2
    assert params.packed(Flit(2, 5, 9, 1, 0, 0xAB)) == 0xAB | 1 << 8 | 5 << 10 | 9 << 13 | 2 << 17
