"""Engines on a board, against the kernel of the golden engine."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from board_bench import BoardBench

from hopforge.gen.fpga.board_design import engine_on_board_parameters
from hopforge.hw.boards.engine import EngineOnBoard
from hopforge.model.board.registers import BOARD_ID, BoardIdentity
from hopforge.model.config import parse_config
from hopforge.model.lookup.csr import COUNTERS, csr_map
from hopforge.model.lookup.params import LookupParams
from hopforge.model.router.engine_program import engine_program
from hopforge.model.topology import build
from hopforge.sim.boards.twin_engine import EngineRequests, twin_of_engine

IDENTITY = BoardIdentity(design="engine", fingerprint=0xF00DF00D, clock_hz=10**6)
WORDS = """
name: t
topology: {{kind: torus, radices: [4, 4]}}
address: {{width_bits: 12, chunk_bits: 4}}
lookup:
  functions: [arbitrary, torus]
  chunk_bits: [4]
  comparators: 2
  mshrs: 2
  reduction: {reduction}
  pipeline_depth: {depth}
  cache: {{entries: 8, ways: 2, tag_bits: 16, output_bits: 6, epoch_bits: 2}}
  tcam: {{kind: {kind}, rows: 24, latency_cycles: 4}}
"""


def engine(depth, kind="flops", reduction="true"):
    config = parse_config(WORDS.format(depth=depth, kind=kind, reduction=reduction))
    params, notes = engine_on_board_parameters(config)
    assert bool(notes) == (kind == "external")
    return params, engine_program(config, build(config.topology, config.address), params, 5)


@pytest.mark.parametrize(("depth", "kind", "reduction"), [(3, "external", "true"), (8, "flops", "false")])
def test_every_counter_is_that_of_the_golden_engine(depth, kind, reduction):
    params, program = engine(depth, kind, reduction)
    requests = EngineRequests(seed=77, count=60, mask=0x333)
    of_board, of_engine = twin_of_engine(params, program, requests)
    assert of_board["ANSWERED"] == 60
    assert 0 < of_board["HITS"] < 60
    design = EngineOnBoard(params=params, identity=IDENTITY)
    registers = csr_map(params)
    seen = {}

    async def steps(bench, read, write, idle):
        for step in program:
            if step.kind == "write":
                await write(step.address, step.data)
            while step.kind == "poll" and await read(step.address) & step.mask:
                pass
        words = {"SEED": 77, "COUNT": 60, "MASK_LO": 0x333, "MASK_HI": 0}
        for name, word in words.items():
            await write(bench.at(name), word)
        await write(bench.at("CTRL"), 1)
        await write(bench.at("CTRL"), 1)  # busy: ignored
        await idle()
        for name in of_board:
            seen[name] = await read(bench.at(name))
        for name, _ in COUNTERS:
            seen[name] = await read(registers[f"COUNT_{name.upper()}"].address)
        for name in ("ID", "DESIGN", "FINGERPRINT", "STATUS", *words):
            seen[name] = await read(bench.at(name))
        seen["beyond"] = await read(0x0080), await read(0x800000 | 0x7F)
        await write(bench.at("DST_LO"), 0x031)  # one request of the host's
        await idle()
        seen["after"] = await read(bench.at("ANSWERED")), await read(bench.at("ANSWER"))
        await write(bench.at("CTRL"), 1 << 8)
        seen["told"] = await read(bench.at("CTRL"))
        await write(bench.at("COUNT"), 0)
        await write(bench.at("CTRL"), 1)
        await idle()
        seen["nothing"] = await read(bench.at("CYCLES")), await read(bench.at("SENT"))

    BoardBench(design).run(steps)
    assert {name: seen[name] for name in of_board} == of_board
    assert {name: seen[name] for name, _ in COUNTERS} == of_engine
    assert (seen["ID"], seen["DESIGN"], seen["FINGERPRINT"]) == (BOARD_ID, 1, 0xF00DF00D)
    assert (seen["STATUS"], seen["SEED"], seen["COUNT"], seen["beyond"]) == (0, 77, 60, (0, 0))
    count, answer = seen["after"]
    # a host of the network: some row matches
    assert (count, answer >> 30 & 1) == (61, 1)
    assert (seen["told"], seen["nothing"]) == (1 << 8, (0, 0))


def test_a_tcam_outside_is_refused():
    with pytest.raises(ValueError, match="tcam_kind must be flops or sram on a board, not external"):
        EngineOnBoard(params=LookupParams(tcam_kind="external"), identity=IDENTITY)


def test_the_line_must_be_slow_enough():
    with pytest.raises(ValueError, match="baud must be at most a fourth of the clock of 1000000 Hz, not 300000"):
        BoardIdentity(design="engine", fingerprint=0, clock_hz=10**6, baud=300_000)
