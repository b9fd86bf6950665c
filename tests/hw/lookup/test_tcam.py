"""Tcam against a loop over its rows."""

from collections import deque

import numpy as np
import pytest
from amaranth.sim import Simulator

from hopforge.hw.lookup.tcam import Tcam

WIDTHS = {"address_bits": 11, "output_bits": 6, "id_bits": 3}


def answer(rows: list[dict], dst: int, member: int) -> tuple[int, int]:
    for row in rows:
        if row["valid"] and (dst ^ row["value"]) & row["mask"] == 0:
            return 1, (row["output"] + row["lag"] * member) % 64
    return 0, 0


def run(dut: Tcam, cycles: int, seed: int) -> int:
    """Compare every answer; returns the number of matches."""
    rng = np.random.default_rng(seed)
    pool = [int(value) for value in rng.integers(1 << 11, size=6)]
    matches = 0

    def member(dst: int) -> int:
        return dst % 13 if dut.member_bits else 0

    async def bench(ctx):
        nonlocal matches
        rows = [dict.fromkeys(("valid", "value", "mask", "output", "lag"), 0) for _ in range(dut.rows)]
        busy, pending, effective = 0, None, False
        late: deque = deque()  # lookups of the last cycle that compare in this one
        due: dict[int, tuple] = {}
        for cycle in range(cycles):
            while late:
                when, number, dst = late.popleft()
                due[when] = (number, *answer(rows, dst, member(dst)))
            dst, number = int(rng.choice(pool)) ^ int(rng.integers(2)), int(rng.integers(8))
            valid = bool(rng.random() < 0.7)
            ctx.set(dut.req_valid, valid)
            ctx.set(dut.req_dst, dst)
            ctx.set(dut.req_id, number)
            commit = bool(rng.random() < 0.02)
            new = {
                "valid": int(rng.random() < 0.8),
                "value": int(rng.choice(pool)),
                "mask": int(rng.choice([0, 0x7FF, 0x7F0, 0x70F])),
                "output": int(rng.integers(64)),
                "lag": int(rng.integers(2)) * bool(dut.member_bits),
            }
            row = int(rng.integers(dut.rows + 1))
            ctx.set(dut.commit, commit)
            ctx.set(dut.commit_row, row)
            for name, value in new.items():
                if name != "lag" or dut.member_bits:
                    ctx.set(getattr(dut, f"commit_{name}"), value)
            if dut.member_bits:
                ctx.set(dut.member, member(ctx.get(dut.member_dst)))

            assert ctx.get(dut.busy) == (busy > 0)
            assert ctx.get(dut.req_ready) == (busy == 0)
            assert ctx.get(dut.effective) == effective
            assert ctx.get(dut.overrun) == (commit and busy > 0 and row < dut.rows)
            expected = due.pop(cycle, None)
            assert ctx.get(dut.resp_valid) == (expected is not None)
            if expected:
                assert (ctx.get(dut.resp_id), ctx.get(dut.resp_match), ctx.get(dut.resp_output)) == expected
                matches += expected[1]

            if valid and not busy:
                when = cycle + dut.latency_cycles
                if dut.kind == "flops" and dut.latency_cycles > 1:
                    late.append((when, number, dst))
                else:
                    due[when] = (number, *answer(rows, dst, member(dst)))
            effective = False
            if busy:
                busy -= 1
                if not busy:
                    rows[pending[0]], effective = pending[1], True
            elif commit and row < dut.rows:
                if dut.kind == "flops":
                    rows[row], effective = new, True
                else:
                    busy, pending = 256, (row, new)
            await ctx.tick()

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    return matches


@pytest.mark.parametrize(("rows", "member_bits"), [(1, 0), (5, 4)])
@pytest.mark.parametrize("latency", [1, 2, 3, 4, 7])
def test_flops(rows: int, latency: int, member_bits: int) -> None:
    dut = Tcam(kind="flops", rows=rows, latency_cycles=latency, member_bits=member_bits, **WIDTHS)
    assert run(dut, 500, latency)


@pytest.mark.parametrize(("rows", "member_bits"), [(1, 4), (6, 0)])
@pytest.mark.parametrize("latency", [2, 3, 4, 5, 7])
@pytest.mark.thinned(2)
def test_sram(rows: int, latency: int, member_bits: int) -> None:
    dut = Tcam(kind="sram", rows=rows, latency_cycles=latency, member_bits=member_bits, **WIDTHS)
    assert run(dut, 1600, latency)


@pytest.mark.parametrize(
    ("parameters", "text"),
    [
        ({"kind": "dram"}, "kind must be one of flops, sram, not 'dram'"),
        ({"rows": 0}, "rows must be between 1 and 4096, not 0"),
        ({"rows": 4097}, "rows must be between 1 and 4096, not 4097"),
        ({"latency_cycles": 0}, "latency_cycles must be at least 1 for kind flops, not 0"),
        ({"kind": "sram", "latency_cycles": 1}, "latency_cycles must be at least 2 for kind sram, not 1"),
        ({"address_bits": 0}, "address_bits must be at least 1, not 0"),
        ({"output_bits": 0}, "output_bits must be at least 1, not 0"),
        ({"id_bits": 0}, "id_bits must be at least 1, not 0"),
        ({"member_bits": -1}, "member_bits must be at least 0, not -1"),
    ],
)
def test_bad_parameters(parameters: dict, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        Tcam(**({"kind": "flops", "rows": 4, "latency_cycles": 3} | WIDTHS | parameters))
