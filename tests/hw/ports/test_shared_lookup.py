"""An engine that input ports share: who is served when, and bad parameters."""

import re
from dataclasses import replace
from typing import Any

import pytest
from amaranth.sim import Simulator

from hopforge.hw.ports.shared_lookup import SharedLookup
from hopforge.model.lookup.csr import csr_map
from hopforge.model.lookup.params import LookupParams
from hopforge.model.router.csr import address_space
from hopforge.model.router.params import Route, RouterParams

LOOKUP = LookupParams(
    address_bits=12, functions=("arbitrary",), chunk_bits=(4,), comparators=1, entries=4, ways=2, tag_bits=16,
    output_bits=4, epoch_bits=2, mshrs=2, request_tag_bits=4, pipeline_depth=1, tcam_rows=4, tcam_latency_cycles=1,
)  # fmt: skip
ROUTER = RouterParams(
    ports=5, vcs=3, buffer_flits=2, rc="lookup", lookup=LOOKUP, address_bits=12, width_bits=32, tag_bits=8,
    ports_per_engine=4,
)  # fmt: skip


def test_members_are_served_in_turn_and_answered_with_their_own_tags() -> None:
    """All four ask for the same address: after the first miss a request a cycle, in the order of their numbers."""
    dut = SharedLookup(params=ROUTER, members=4)
    served: list[int] = []
    answers: list[tuple[int, int, int]] = []
    tags = (2, 0, 1, 2)

    async def bench(ctx: Any) -> None:
        registers = csr_map(LOOKUP)
        for name, word in (
            ("TCAM_VALUE_LO", 0), ("TCAM_MASK_LO", 0), ("TCAM_OUTPUT_LO", 3),
            ("TCAM_WRITE", registers["TCAM_WRITE"].encode(row=0, lag=0, valid=1)), ("CTRL", 1),
        ):  # fmt: skip
            ctx.set(dut.control.csr_addr, registers[name].address)
            ctx.set(dut.control.csr_wdata, word)
            ctx.set(dut.control.csr_we, 1)
            await ctx.tick()
        ctx.set(dut.control.csr_we, 0)
        for _ in range(16):
            await ctx.tick()
        for member, tag in zip(dut.member, tags, strict=True):
            ctx.set(member.resp_ready, 1)
            ctx.set(member.req_valid, 1)
            ctx.set(member.req_dst, 0x123)
            ctx.set(member.req_tag, tag)
        for _ in range(40):
            ready = [number for number, member in enumerate(dut.member) if ctx.get(member.req_ready)]
            assert len(ready) <= 1
            served.extend(ready)
            for number, member in enumerate(dut.member):
                if ctx.get(member.resp_valid):
                    assert ctx.get(member.resp_match)
                    answers.append((number, ctx.get(member.resp_tag), ctx.get(member.resp_output)))
            await ctx.tick()

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    assert len(served) > 20
    assert served == [number % 4 for number in range(len(served))]
    assert {number for number, _, _ in answers} == {0, 1, 2, 3}
    assert all((tag, output) == (tags[number], 3) for number, tag, output in answers)


@pytest.mark.parametrize("members", [0, 5])
def test_members_are_at_most_the_ports_of_an_engine(members: int) -> None:
    text = f"members must be in 1 to ports_per_engine=4, not {members}"
    with pytest.raises(ValueError, match=re.escape(text)):
        SharedLookup(params=ROUTER, members=members)


def test_only_routers_with_lookup_have_engines_to_share() -> None:
    table = RouterParams(ports=2, vcs=1, buffer_flits=2, routes=(Route(1),), ports_per_engine=2)
    with pytest.raises(ValueError, match="params must be those of a router with rc='lookup'"):
        SharedLookup(params=table, members=2)


@pytest.mark.parametrize(
    ("sharing", "served"),
    [(1, [[0], [1], [2], [3], [4]]), (2, [[0, 1], [2, 3], [4]]), (4, [[0, 1, 2, 3], [4]])],
)
def test_the_last_engine_serves_what_is_left_over(sharing: int, served: list[list[int]]) -> None:
    params = replace(ROUTER, ports_per_engine=sharing)
    assert [list(params.engine_ports(engine)) for engine in range(params.engines)] == served
    named = {name.split(".")[0] for _, name, _ in address_space(params) if name.startswith("ENGINE")}
    assert named == {"ENGINES", *(f"ENGINE{engine}" for engine in range(len(served)))}


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"ports_per_engine": 3}, "ports_per_engine must be one of 1, 2, 4, not 3"),
        (
            {"lookup": replace(LOOKUP, request_tag_bits=3)},
            "lookup.request_tag_bits must number vcs=3 of ports_per_engine=4 ports, not 3 bits",
        ),
    ],
)
def test_routers_that_cannot_be(changes: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(text)):
        replace(ROUTER, **changes)
