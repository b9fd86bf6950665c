"""Replays that hold all lookups at once are refused before the first packet, if they do not fit."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

import hopforge as hf
from hopforge.model.config import parse_config
from hopforge.model.errors import UserError
from hopforge.sim.hits.assisted import Help
from hopforge.sim.hits.hit_rates import run_hits
from hopforge.sim.hits.link_packets import network_links
from hopforge.sim.hits.prepared import HitsSetup, prepare_hits

# two hosts that send to each other: two lookups a packet
TEXT = """\
name: pair
topology: {kind: mesh, radices: [2]}
lookup: {cache: {entries: 16, ways: 4}, tcam: {kind: external}}
workload: {kind: uniform, packets_per_host: %d}
"""
MANY = 10**9


def prepared(packets_per_host: int, *, first_only: bool) -> HitsSetup:
    """Return a replay of which nobody may take more than the first piece of the packets."""
    ready = prepare_hits(parse_config(TEXT % packets_per_host))

    def pieces() -> Iterator[Any]:
        yield next(iter(ready.workload.chunks()))
        pytest.fail("more packets were made than the estimate needs")

    return replace(ready, workload=replace(ready.workload, make_chunks=pieces)) if first_only else ready


@pytest.mark.parametrize(("options", "words"), [
    ({"wanted": Help(refill=1)}, "prefetch and refill for about 4,000,000,000 lookups need 410 GiB"),
    ({"wanted": Help(prefetch=1)}, "prefetch and refill for about 4,000,000,000 lookups need 540 GiB"),
    ({"wanted": Help(prefetch_cycles=9, refill=1)}, "prefetch and refill for about 4,000,000,000 lookups need 652 GiB"),
    ({"bounds": True}, r"bounds of about 4,000,000,000 lookups \(--no-bounds\) need 37.3 GiB"),
    ({"sizes": True}, "sizes of caches for about 4,000,000,000 lookups need 37.3 GiB"),
])  # fmt: skip
def test_it_is_said_before_the_first_packet(
    options: dict[str, Any], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hopforge.model.free_memory.free_memory", lambda: 1 << 30)
    ready = prepared(MANY, first_only=True)
    with pytest.raises(UserError, match=rf"^{words} of memory; there are 1$"):
        run_hits(parse_config(TEXT % MANY), None, ready, **options)


def test_links_of_a_network_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hopforge.model.free_memory.free_memory", lambda: 1 << 30)
    ready = prepared(MANY, first_only=True)
    with pytest.raises(UserError, match=r"^links of about 4,000,000,000 lookups need 276 GiB of memory; there are 1$"):
        network_links(ready.caches, ready.workload, 64)


def test_what_fits_runs_and_counts_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """The look at the first packets changes nothing, and what fits is not refused."""
    config = hf.loads(TEXT % 100)
    plain = hf.hits(config, refill=1, progress=False)
    asked = []
    monkeypatch.setattr("hopforge.sim.hits.expected_memory._FEW_PACKETS", 0)
    monkeypatch.setattr("hopforge.sim.hits.expected_memory.refuse_beyond_memory", lambda *said: asked.append(said))
    looked = hf.hits(config, refill=1, progress=False)
    assert asked == [(200 * (50 + 2 * 85), "prefetch and refill for about 400 lookups")]
    assert looked.table.equals(plain.table)
    assert plain["lookups"] == 400
