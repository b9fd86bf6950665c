"""Collective units in hardware against the golden plane, every output in every cycle; the combiner by itself."""

import random
from functools import cache
from typing import Any

import numpy as np
import pytest
from amaranth.sim import Simulator

from hopforge.gen.packages.collectives import plane_component
from hopforge.gen.packages.parts import part_files
from hopforge.hw.collectives.network import CollectiveNetwork
from hopforge.hw.collectives.unit import CollectiveUnit
from hopforge.hw.collectives.word_combiner import WordCombiner
from hopforge.model.config import parse_config
from hopforge.model.router.collective_params import OPERATIONS, PlaneParams
from hopforge.model.router.collective_plane import PlaneDesign, configured_plane
from hopforge.model.router.links import End, Link
from hopforge.sim.benches.collectives import BenchRun, PlaneTraffic, collectives_run
from hopforge.sim.drive.replay import Replay, replay_amaranth

CASES = {
    "two groups and a member alone, long links": (
        "topology: {kind: mesh, radices: [2], hosts_per_router: 2}\nrouter: {link_latency_cycles: 3}\n"
        "collective_plane: {groups: [{}, {hosts: [1, 2]}, {hosts: [3]}], max_groups: 3, width_bits: 8,"
        " buffer_flits: 2}",
        7,
    ),
    "one group, one flit, wide words": (
        "topology: {kind: mesh, radices: [3]}\n"
        "collective_plane: {groups: [{hosts: [0, 2]}], max_groups: 1, width_bits: 72, buffer_flits: 1,"
        " sequence_bits: 1}",
        12,
    ),
}


def design(name: str) -> PlaneDesign:
    return configured_plane(parse_config(f"name: small\n{CASES[name][0]}\n"))


@cache
def recorded(name: str) -> BenchRun:
    return collectives_run(design(name), PlaneTraffic(operations=CASES[name][1], seed=5, wrong=0.2))


@pytest.mark.parametrize("name", list(CASES))
def test_equals_golden_plane(name: str) -> None:
    run = recorded(name)
    result = replay_amaranth(plane_component(design(name)), run.replay)
    assert result.first is None, str(result.first)
    assert run.counts["wrong"] and run.counts["errors"] and run.counts["multicast"], run.counts
    assert len([name for name in OPERATIONS if run.counts[name]]) > 4


def test_a_wrong_output_is_seen() -> None:
    name = list(CASES)[1]
    replay = recorded(name).replay.head(120)
    wrong = replay.expected.copy()
    column = [output.name for output in replay.outputs].index("host__0__in_credit")
    wrong[100:, column] ^= np.uint64(1)
    result = replay_amaranth(plane_component(design(name)), Replay(replay.inputs, replay.outputs, replay.driven, wrong))
    assert result.first is not None
    assert (result.first.cycle, result.first.signal) == (100, "host__0__in_credit")


@pytest.mark.parametrize(("words", "bits"), [(1, 5), (3, 6), (6, 3)])
def test_combiner(words: int, bits: int) -> None:
    rng = random.Random(words)
    combiner, most = WordCombiner(words=words, width_bits=bits), (1 << bits) - 1

    async def bench(ctx: Any) -> None:
        for _ in range(120):
            numbers = [rng.choice([0, most, rng.randint(0, most)]) for _ in range(words)]
            name = rng.choice(OPERATIONS)
            used = 1 << rng.randrange(words) if name == "multicast" else rng.randint(1, (1 << words) - 1)
            for place, number in enumerate(numbers):
                ctx.set(combiner.word[place], number)
            ctx.set(combiner.used, used)
            ctx.set(combiner.operation, OPERATIONS.index(name))
            await ctx.delay(1e-9)
            chosen = [number for place, number in enumerate(numbers) if used >> place & 1]
            ones = [sum(number >> bit & 1 for number in chosen) for bit in range(bits)]  # of each bit, how many are 1
            expected = {
                "barrier": 0, "multicast": chosen[0], "sum": sum(chosen) & most, "min": sorted(chosen)[0],
                "max": sorted(chosen)[-1], "and": sum((n == len(chosen)) << bit for bit, n in enumerate(ones)),
                "or": sum((n > 0) << bit for bit, n in enumerate(ones)),
                "xor": sum((n & 1) << bit for bit, n in enumerate(ones)),
            }[name]  # fmt: skip
            assert ctx.get(combiner.result) == expected, (name, chosen)

    simulator = Simulator(combiner)
    simulator.add_testbench(bench)
    simulator.run()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"ports": ()}, "units must be at least 1, not 0"),
        ({"hosts": (End(0, 2),)}, r"hosts\[0\]: unit 0 has no port 2"),
        ({"hosts": (End(0, 0), End(0, 0))}, r"hosts\[1\]: the output of port 0 of unit 0 is in use"),
        ({"links": (Link(End(0, 1), End(1, 1), 0),)}, r"links\[0\].latency_cycles must be at least 1, not 0"),
        ({"links": (Link(End(0, 0), End(1, 1)),)}, r"hosts\[0\]: the output of port 0 of unit 0 is in use"),
    ],
)
def test_bad_networks(given: dict[str, Any], message: str) -> None:
    good = {"params": PlaneParams(), "ports": (2, 2), "links": (), "hosts": (End(0, 0),)}
    with pytest.raises(ValueError, match=message):
        CollectiveNetwork(**good | given)


def test_bad_units() -> None:
    with pytest.raises(ValueError, match="ports must be at least 1, not 0"):
        CollectiveUnit(params=PlaneParams(), ports=0)
    with pytest.raises(ValueError, match="words and width_bits must be at least 1, not 0 and 8"):
        WordCombiner(words=0, width_bits=8)


def test_generated_files_say_what_software_writes() -> None:
    import json

    config = parse_config(f"name: small\n{CASES['one group, one flit, wide words'][0]}\n")
    files = part_files(config, "collectives")
    trees = json.loads(files["small_collectives_trees.json"])
    assert trees["groups"] == [{"group": 0, "root": 1, "depth": 1, "hosts": [0, 2]}]
    # ports: the host, then the neighbours
    names = ("set_unit", "set_group", "set_children", "set_parent")
    writes = [(0, 0, 0b001, 0b010), (1, 0, 0b110, 0), (2, 0, 0b001, 0b100)]
    assert [tuple(write[name] for name in names) for write in trees["writes"]] == writes
    manifest = json.loads(files["small_collectives.json"])
    assert manifest["parameters"]["buffer_flits"] == 1
