import re
from typing import Any

import pytest

from hopforge.model.lookup.params import LookupParams
from hopforge.model.router.csr import router_csr_map
from hopforge.model.router.params import Route, RouterParams

SMALL = {"ports": 3, "vcs": 2, "buffer_flits": 4}
RULE = ((((1, 2, 3),) * 2,) * 3,)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"ports": 1}, "ports must be in 2 to 64, not 1"),
        ({"ports": 65}, "ports must be in 2 to 64, not 65"),
        ({"vcs": 17}, "vcs must be in 1 to 16, not 17"),
        ({"buffer_flits": 1025}, "buffer_flits must be in 1 to 1024, not 1025"),
        ({"rc_cycles": -1}, "rc_cycles must be in 0 to 255, not -1"),
        ({"switching": "saf"}, "switching must be one of wormhole, vct, not 'saf'"),
        ({"va": "x"}, "va must be one of input_first, output_first, wavefront, max_size, free_queue, not 'x'"),
        ({"va_arbiter": "lru"}, "va_arbiter must be one of None, round_robin, matrix, not 'lru'"),
        ({"va_iterations": 17}, "va_iterations must be in 1 to 16, not 17"),
        ({"va_iterations": 2, "va": "wavefront"}, "va must be output_first with va_iterations=2, not wavefront"),
        (
            {"va_iterations": 2, "va_arbiter": "matrix"},
            "va_arbiter must be round_robin with va_iterations=2, not matrix",
        ),
        ({"sa_iterations": 3, "arbiter": "matrix"}, "arbiter must be round_robin with sa_iterations=3, not matrix"),
        (
            {"sa_iterations": 3, "va": "free_queue"},
            "va must be an allocator with sa_iterations=3, not free_queue",
        ),
        ({"vc_release": "never"}, "vc_release must be one of tail, credits, not 'never'"),
        ({"neighbour_flits": (4, 4)}, "neighbour_flits must have ports=3 numbers, not 2"),
        ({"neighbour_flits": (4, 0, 4)}, "neighbour_flits[1] must be in 1 to 65535, not 0"),
        ({"width_bits": 55}, "width_bits must be at least 56 (the header), not 55"),
        ({"width_bits": 63, "switching": "vct"}, "width_bits must be at least 64 (the header), not 63"),
        ({"routes": (Route(1), Route(8))}, "routes[1].ports must be below 2**ports=8, not 8"),
        ({"routes": (Route(1, 1),)}, "routes[0].route_class must be below classes=1, not 1"),
        ({"routes": (Route(1, 0, 3),)}, "routes[0].escape must be below ports=3, not 3"),
        ({"vc_rule": (RULE[0][:2],)}, "vc_rule[0] must have 3 ports of 2 VCs of 3 masks"),
        ({"vc_rule": ((((1, 2, 4),) * 2,) * 3,)}, "vc_rule[0]: a mask must be below 2**vcs=4, not 4"),
        ({"escape_rule": RULE * 2}, "escape_rule must have 1 classes, not 2"),
        ({"rc": "lookup"}, "lookup must be given with rc='lookup'"),
        (
            {"rc": "lookup", "lookup": LookupParams(address_bits=16, tag_bits=32)},
            "lookup.address_bits must be address_bits=24, not 16",
        ),
        (
            {"rc": "lookup", "vcs": 16, "lookup": LookupParams(request_tag_bits=3)},
            "lookup.request_tag_bits must number vcs=16, not 3 bits",
        ),
        (
            {"rc": "lookup", "output_kind": "port_set", "lookup": LookupParams(output_bits=2)},
            "lookup.output_bits must be at least ports=3 for port sets, not 2",
        ),
    ],
)
def test_errors_name_parameter_limit_and_value(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        RouterParams(**(SMALL | changes))


def test_what_follows_from_the_parameters() -> None:
    plain = RouterParams(**SMALL)
    assert (plain.credits(2), plain.classes, plain.vc_mask(0, 1, 1, 2), plain.vc_mask(1, 1, 1, 2)) == (4, 1, 3, 0)
    assert not plain.adaptive
    assert not plain.escapes
    ruled = RouterParams(**SMALL, vc_rule=RULE, routes=(Route(4), Route(3, 0, 2)), neighbour_flits=(1, 2, 3))
    assert (ruled.credits(1), ruled.vc_mask(0, 0, 1, 1), ruled.escape_mask(0, 0, 1, 1)) == (2, 2, 3)
    assert ruled.adaptive
    assert ruled.escapes


@pytest.mark.parametrize(("changes", "value"), [
    ({}, None), ({"va_arbiter": "round_robin"}, None), ({"va_arbiter": "matrix"}, 1),
    ({"arbiter": "matrix", "va_arbiter": "round_robin", "va": "input_first"}, 0),
    ({"va_arbiter": "matrix", "va": "wavefront"}, None), ({"va_arbiter": "matrix", "va": "free_queue"}, None),
])  # fmt: skip
def test_a_register_tells_arbiters_of_va_where_they_are_others(changes: dict[str, Any], value: int | None) -> None:
    found = router_csr_map(RouterParams(**(SMALL | changes)))["PARAMS"]
    assert found.decode(found.reset).get("va_arbiter") == value


@pytest.mark.parametrize(("changes", "counts"), [
    ({}, None), ({"va_iterations": 3}, (3, 1)), ({"va_iterations": 2, "sa_iterations": 16}, (2, 16)),
])  # fmt: skip
def test_a_register_tells_iterations_where_there_are_several(
    changes: dict[str, Any], counts: tuple[int, int] | None
) -> None:
    registers = router_csr_map(RouterParams(**(SMALL | changes)))
    assert ("ITERATIONS" in {register.name for register in registers}) == (counts is not None)
    if counts is not None:
        found = registers["ITERATIONS"]
        assert found.decode(found.reset) == {"va_iterations": counts[0], "sa_iterations": counts[1]}
