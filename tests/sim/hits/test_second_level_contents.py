"""`hopforge hits` with other contents of the second level: every switch against the readable model."""

import numpy as np
import pytest

from hopforge.model.config import parse_config
from hopforge.model.errors import UserError
from hopforge.model.lookup.golden.two_levels import LevelShape, run_levels
from hopforge.model.numbers.crc import crc_address
from hopforge.sim.hits.hit_rates import run_hits
from hopforge.sim.hits.prepared import prepare_hits

TEXT = (
    "name: x\ntopology: {{kind: torus, radices: [4, 4]}}\nworkload: {{kind: uniform, packets_per_host: 60}}\n"
    "lookup: {{reduction: false, cache: {{entries: 4, ways: 2, second_level: {{entries: 8, ways: 2, {keys}}}}}}}\n"
)


def crc_of(key: int) -> int:
    return crc_address("CRC-32C", key)


@pytest.mark.parametrize("content", ["nine", "inclusive", "exclusive"])
@pytest.mark.parametrize("per", ["cache", "switch"])
def test_whole_network(content: str, per: str) -> None:
    config = parse_config(TEXT.format(keys=f"content: {content}, per: {per}"))
    result = run_hits(config).result
    setup = prepare_hits(config)
    ways = setup.caches.ways(*setup.workload.all_packets())
    seen: dict[int, list[tuple[int, int]]] = {}
    for way in ways.of_packet.tolist():
        for hop in range(ways.first[way], ways.first[way + 1]):
            cache = int(ways.caches[hop])
            place = int(setup.caches.inputs.router[cache]) if per == "switch" else cache
            seen.setdefault(place, []).append((cache, int(ways.keys[hop])))
    back = 0
    assert len(seen) == (16 if per == "switch" else setup.caches.inputs.caches)
    of = setup.caches.inputs.router if per == "switch" else np.arange(setup.caches.inputs.caches)
    for place, lookups in seen.items():
        plain = run_levels(
            lookups, setup.caches.inputs.caches, LevelShape(4, 2, crc_of), LevelShape(8, 2, crc_of), content
        )
        here = of == place
        assert result.hits[here].sum() == plain.first_hits
        assert result.second_level_hits[here].sum() == plain.second_hits
        assert (result.lookups - result.hits - result.second_level_hits)[here].sum() == plain.tcam
        back += plain.back
    assert result.second_level_hits.sum() > 100
    assert result.back_invalidations == back
    if per == "switch":
        assert (back > 0) == (content == "inclusive")


def test_back_invalidations_are_told() -> None:
    totals = run_hits(parse_config(TEXT.format(keys="content: inclusive, per: switch"))).totals
    assert totals["back_invalidations"] > 0
    assert "back_invalidations" not in run_hits(parse_config(TEXT.format(keys="per: switch"))).totals
    with pytest.raises(UserError, match=r"second_level\.content: must be nine or exclusive with --sizes"):
        run_hits(parse_config(TEXT.format(keys="content: inclusive")), sizes=True)


def test_each_switch_has_one_second_level_with_shared_engines() -> None:
    text = TEXT.format(keys="per: switch").replace("reduction: false,", "reduction: false, ports_per_engine: 2,")
    setup = prepare_hits(parse_config(text))
    inputs = setup.caches.inputs
    assert inputs.caches_of_a_switch == 3
    assert np.array_equal(setup.caches._levels.behind, inputs.router)
    assert run_hits(parse_config(text)).totals["second_level_hits"] > 0
