import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hopforge.model.lookup.csr import COUNTERS, MODES, UP_CHOICES, csr_map
from hopforge.model.lookup.golden.build import SHALLOW_DEPTHS, golden_engine
from hopforge.model.lookup.golden.keys import KeyFunctions
from hopforge.model.lookup.golden.ports import LookupInputs, LookupOutputs
from hopforge.model.lookup.node_reduction import NodeReduction
from hopforge.model.lookup.params import LookupParams
from hopforge.model.lookup.routing_cache import RoutingCache
from hopforge.model.numbers.address import AddressFormat

DATA = Path(__file__).parents[2] / "data"
DEPTHS = [1, 2, 3, 4, 5, 6, 7, 8]
# cycles from the request to a response by way of the TCAM, besides its latency, by depth: the stages A before B, then
# C, MSHR, answer, injection and C again, one cycle each, as the page counts them. From 5 on: OUT's cycle is M's, then
# MSHR, P′, port, answer's register, DONE, P, F and B, C1, C2, OUT
MISS_CYCLES = {1: 3, 2: 5, 3: 6, 4: 7} | {depth: depth + 10 for depth in range(5, 9)}
SOON_CYCLES = 200


class Master:
    """Drives an engine cycle by cycle and keeps what it answers."""

    def __init__(self, **changes: Any) -> None:
        settings: dict[str, Any] = {
            "entries": 16, "ways": 2, "functions": ("arbitrary",), "tcam_kind": "external", "mshrs": 4,
        }  # fmt: skip
        self.engine = golden_engine(LookupParams(**settings | changes))
        self.map = csr_map(self.engine.params)
        self.cycle = 0
        self.responses: dict[int, tuple[int, LookupOutputs]] = {}
        self.asked: list[tuple[int, int, int]] = []  # cycle, id, destination

    def step(self, **values: int) -> LookupOutputs:
        inputs = LookupInputs(**{"resp_ready": 1, "tcam_req_ready": 1} | values)
        outputs = self.engine.step(inputs)
        if outputs.resp_valid and inputs.resp_ready:
            assert outputs.resp_tag not in self.responses
            self.responses[outputs.resp_tag] = self.cycle, outputs
        if outputs.tcam_req_valid and inputs.tcam_req_ready:
            self.asked.append((self.cycle, outputs.tcam_req_id, outputs.tcam_req_dst))
        self.cycle += 1
        return outputs

    def idle(self, cycles: int) -> None:
        for _ in range(cycles):
            self.step()

    def write(self, name: str, word: int) -> None:
        self.step(csr_we=1, csr_addr=self.map[name].address, csr_wdata=word)

    def read(self, name: str) -> int:
        self.step(csr_re=1, csr_addr=self.map[name].address)
        self.idle(2 if self.engine.params.pipeline_depth > SHALLOW_DEPTHS else 0)
        return self.step().csr_rdata

    def status(self) -> dict[str, int]:
        return self.map["STATUS"].decode(self.read("STATUS"))

    def enable(self) -> None:
        self.write("CTRL", 1)
        while not self.engine.idle:
            self.step()

    def request(self, dst: int, tag: int, **values: int) -> int:
        """Offer a request until it is accepted; return the cycle."""
        while not self.step(req_valid=1, req_dst=dst, req_tag=tag, **values).req_ready:
            pass
        return self.cycle - 1

    def answer(self, number: int, output: int, match: int = 1) -> None:
        self.step(tcam_resp_valid=1, tcam_resp_id=number, tcam_resp_match=match, tcam_resp_output=output)

    def learn(self, dst: int, output: int) -> LookupOutputs:
        """Bring a line into the cache that is not there; return the response."""
        self.request(dst, 255)
        before = len(self.asked)
        for _ in range(SOON_CYCLES):
            if len(self.asked) > before:
                break
            self.step()
        assert len(self.asked) > before, f"{dst} was answered without the TCAM: {self.responses.get(255)}"
        self.answer(self.asked[-1][1], output)
        while not self.engine.idle:
            self.step()
        return self.responses.pop(255)[1]

    def write_row(self, row: int, value: int, mask: int, output: int, *, valid: int = 1, lag: int = 0) -> None:
        for name, word in (("VALUE", value), ("MASK", mask), ("OUTPUT", output)):
            self.write(f"TCAM_{name}_LO", word)
        self.write("TCAM_WRITE", self.map["TCAM_WRITE"].encode(row=row, valid=valid, lag=lag))


@pytest.mark.parametrize("depth", DEPTHS)
def test_a_hit_takes_as_many_cycles_as_stages(depth: int) -> None:
    master = Master(pipeline_depth=depth)
    master.enable()
    master.learn(5, 77)
    accepted = master.request(5, 1)
    master.idle(depth)
    cycle, response = master.responses[1]
    assert cycle == accepted + depth
    assert (response.resp_output, response.resp_match, response.resp_hit) == (77, 1, 1)


@pytest.mark.parametrize("depth", DEPTHS[SHALLOW_DEPTHS:])
def test_a_memory_stage_adds_a_cycle_and_none_between_hits(depth: int) -> None:
    master = Master(pipeline_depth=depth, memory_stage=True, mshrs=5)
    master.enable()
    master.learn(5, 77)
    accepted = [master.request(5, tag) for tag in range(50)]
    assert accepted == list(range(accepted[0], accepted[0] + 50))
    master.idle(depth + 1)
    assert [master.responses[tag][0] for tag in range(50)] == [cycle + depth + 1 for cycle in accepted]
    assert all(master.responses[tag][1].resp_hit for tag in range(50))


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize(("kind", "latency"), [("flops", 1), ("flops", 5), ("sram", 2), ("sram", 9)])
def test_a_miss_adds_the_latency_of_the_tcam(depth: int, kind: str, latency: int) -> None:
    master = Master(pipeline_depth=depth, tcam_kind=kind, tcam_latency_cycles=latency)
    accepted = master.request(5, 1)
    master.idle(30)
    cycle, response = master.responses[1]
    assert cycle - accepted == MISS_CYCLES[depth] + latency
    assert (response.resp_output, response.resp_match, response.resp_hit) == (0, 0, 0)
    assert master.engine.counters["drops"] == 1


@pytest.mark.parametrize("depth", DEPTHS)
def test_one_hit_per_cycle(depth: int) -> None:
    master = Master(pipeline_depth=depth)
    master.enable()
    master.learn(5, 77)
    accepted = [master.request(5, tag) for tag in range(50)]
    assert accepted == list(range(accepted[0], accepted[0] + 50))
    master.idle(depth)
    assert [master.responses[tag][0] for tag in range(50)] == [cycle + depth for cycle in accepted]


@pytest.mark.parametrize("depth", DEPTHS)
def test_hits_pass_misses(depth: int) -> None:
    master = Master(pipeline_depth=depth)
    master.enable()
    master.learn(5, 77)
    for tag, dst in enumerate([100, 101, 102, 5, 5]):  # three of four MSHRs stay busy
        master.request(dst, tag)
    master.idle(20)
    assert sorted(master.responses) == [3, 4]
    for _, number, dst in reversed(master.asked[1:]):  # the first one was to learn
        master.answer(number, dst * 2)
    master.idle(20)
    assert {tag: master.responses[tag][1].resp_output for tag in range(3)} == {0: 200, 1: 202, 2: 204}


@pytest.mark.parametrize("depth", DEPTHS)
def test_equal_misses_share_one_request(depth: int) -> None:
    master = Master(pipeline_depth=depth, mshrs=8)
    master.enable()
    for tag in range(5):
        master.request(9, tag)
    master.idle(10)
    assert len(master.asked) == 1
    master.answer(master.asked[0][1], 33)
    master.idle(20)
    assert [master.responses[tag][1].resp_output for tag in range(5)] == [33] * 5
    assert all(not master.responses[tag][1].resp_hit for tag in range(5))
    counters = master.engine.counters
    assert (counters["misses"], counters["merges"], counters["fills"]) == (1, 4, 1)


def test_full_mshrs_take_no_more_requests() -> None:
    master = Master(mshrs=2)
    master.enable()
    for tag in range(2):
        master.request(tag, tag)
    for _ in range(30):
        outputs = master.step(req_valid=1, req_dst=50, req_tag=9)
    assert not outputs.req_ready
    assert len(master.asked) == 2


@pytest.mark.parametrize("depth", DEPTHS)
def test_a_flush_makes_answers_on_their_way_worthless(depth: int) -> None:
    master = Master(pipeline_depth=depth)
    master.enable()
    master.request(9, 1)
    while not master.asked:
        master.step()
    master.write("CTRL", 3)
    master.idle(2)
    master.answer(master.asked[0][1], 11)
    master.idle(20)
    assert master.responses == {}
    assert len(master.asked) == 2
    master.answer(master.asked[1][1], 22)
    master.idle(20)
    assert master.responses[1][1].resp_output == 22
    assert master.engine.counters["retries"] == 1
    # its key is of an old epoch: the answer is good, but no line is written
    assert master.engine.counters["fills"] == 0


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("gap", range(20))
def test_no_answer_from_before_an_invalidation_stays(depth: int, gap: int) -> None:
    """Whenever the invalidation meets the miss, afterwards the cache does not hold what the TCAM said before it."""
    master = Master(pipeline_depth=depth)
    master.enable()
    master.request(9, 1)
    while not master.asked:
        master.step()
    answered = False
    for cycle in range(60):
        values: dict[str, int] = {}
        if cycle == 6:
            values = {"csr_we": 1, "csr_addr": master.map["INVALIDATE_LO"].address, "csr_wdata": 9}
        if len(master.asked) == 1 and cycle == gap:
            values |= {"tcam_resp_valid": 1, "tcam_resp_id": 0, "tcam_resp_match": 1, "tcam_resp_output": 11}
        elif len(master.asked) == 2 and not answered:
            answered = True
            number = master.asked[1][1]
            values |= {"tcam_resp_valid": 1, "tcam_resp_id": number, "tcam_resp_match": 1, "tcam_resp_output": 22}
        master.step(**values)
    assert master.engine.idle
    assert master.engine.counters["invalidations"] == 1
    # an answer that comes after the invalidation has ended may stay only if it was asked for again
    master.request(9, 2)
    master.idle(10)
    if 2 in master.responses:
        assert master.responses[2][1].resp_output == 22


def test_a_second_flush_waits_for_the_scrubber() -> None:
    master = Master(epoch_bits=1, entries=32, ways=2)
    master.enable()
    master.learn(5, 77)
    master.write("CTRL", 3)
    master.write("CTRL", 3)
    master.idle(3)
    assert master.status()["flush_wait"] == 1
    flushes = master.engine.counters["flushes"]
    master.request(5, 1)
    master.idle(3)
    assert 1 not in master.responses  # nothing hits while a flush waits
    while master.status()["flush_wait"]:
        pass
    assert master.engine.counters["flushes"] == flushes + 1
    assert master.status()["epoch"] == 1  # enable 0 → 1, flush 1 → 0, flush 0 → 1


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("epoch_bits", [1, 2])
def test_nothing_comes_back_when_epochs_wrap(depth: int, epoch_bits: int) -> None:
    master = Master(pipeline_depth=depth, epoch_bits=epoch_bits, entries=8, ways=2)
    master.enable()
    for turn in range(9):
        before = master.learn(5, turn)
        master.write("CTRL", 3)
        master.idle(1 + 3 * turn % 5)  # the cycle of the flush itself still answers from the old epoch
        after = master.learn(5, 100 + turn)
        assert [(one.resp_hit, one.resp_output) for one in (before, after)] == [(0, turn), (0, 100 + turn)]
        assert len(master.asked) == 2 * turn + 2
        master.write("CTRL", 3)
        master.idle(1)


def test_a_topology_change_stops_the_tcam_until_enable() -> None:
    master = Master(functions=("arbitrary", "torus"))
    master.write("MODE", master.map["MODE"].encode(mode=MODES.index("torus"), members=1))
    master.enable()
    master.step(link_change=1)
    status = master.status()
    assert (status["pending"], status["hold"]) == (1, 1)
    assert master.map["MODE"].decode(master.read("MODE"))["mode"] == MODES.index("arbitrary")
    assert master.read("CTRL") == 0
    master.request(9, 1)
    master.idle(20)
    assert master.asked == []
    master.write("CTRL", 1)
    master.idle(5)
    assert len(master.asked) == 1
    assert (master.status()["pending"], master.status()["hold"]) == (0, 0)


def test_a_link_change_beats_a_write_to_mode_and_enable() -> None:
    master = Master(functions=("arbitrary", "torus"))
    mode = master.map["MODE"].encode(mode=2, members=1, up_choice=1)
    master.step(link_change=1, csr_we=1, csr_addr=master.map["MODE"].address, csr_wdata=mode)
    assert master.read("MODE") == mode & ~7
    master.step(link_change=1, csr_we=1, csr_addr=master.map["CTRL"].address, csr_wdata=1)
    assert (master.read("CTRL"), master.status()["pending"]) == (0, 1)


def test_the_offer_to_the_tcam_does_not_change() -> None:
    master = Master()
    for tag in range(3):
        master.request(10 + tag, tag, tcam_req_ready=0)
    offers = {master.step(tcam_req_ready=0)[-2:] for _ in range(10)}
    assert offers == {(0, 10)}
    master.idle(5)
    assert [dst for _, _, dst in master.asked] == [10, 11, 12]


def test_responses_are_held_and_none_is_lost() -> None:
    master = Master()
    master.enable()
    master.learn(5, 77)
    for tag in range(3):
        master.step(req_valid=1, req_dst=5, req_tag=tag, resp_ready=0)
    held = [master.step(resp_ready=0)[1:6] for _ in range(10)]
    assert set(held) == {(1, 0, 77, 1, 1)}
    master.idle(10)
    assert sorted(master.responses) == [0, 1, 2]


def test_an_invalidation_written_while_one_is_busy_is_ignored() -> None:
    master = Master()
    master.enable()
    master.learn(5, 77)
    master.write("INVALIDATE_LO", 6)
    master.write("INVALIDATE_LO", 5)
    master.idle(10)
    assert master.engine.counters["invalidations"] == 1
    master.request(5, 1)
    master.idle(4)
    assert master.responses[1][1].resp_hit == 1
    master.write("INVALIDATE_LO", 5)
    master.idle(10)
    master.request(5, 2)
    master.idle(4)
    assert 2 not in master.responses


def test_tcam_overrun_is_cleared_by_reading() -> None:
    master = Master(tcam_kind="sram", tcam_rows=4)
    master.write_row(0, 0, 0, 5)
    master.write_row(1, 0, 0, 6)
    assert [master.status()["tcam_overrun"] for _ in range(2)] == [1, 0]
    assert master.status()["tcam_busy"] == 1
    master.write("TCAM_WRITE", 4)  # a row that does not exist
    assert master.status()["tcam_overrun"] == 0
    master.idle(256)
    assert master.status()["tcam_busy"] == 0
    master.request(1, 1)
    master.idle(30)
    assert master.responses[1][1].resp_output == 5


def test_lag_rows_add_the_member() -> None:
    master = Master(tcam_kind="flops", max_members=16, output_bits=4)
    mode = master.map["MODE"].encode(member_hash=1, members=5)  # destination modulo 5
    master.write("MODE", mode)
    master.write_row(0, 0, 0, 13, lag=1)
    master.request(9, 1)
    master.idle(30)
    assert master.responses[1][1].resp_output == (13 + 9 % 5) % 16


def test_counters_add_up_and_are_cleared() -> None:
    master = Master(tcam_kind="flops", tcam_latency_cycles=3)
    master.write_row(0, 0, 0x700, 3)
    master.enable()
    rng = np.random.default_rng(3)
    for tag in range(200):
        master.request(int(rng.integers(0, 40)) | int(rng.random() < 0.1) << 8, tag % 250)
    master.idle(40)
    counts = {name: master.read(f"COUNT_{name.upper()}") for name, _ in COUNTERS}
    assert counts["lookups"] == 200 == counts["hits"] + counts["misses"] + counts["merges"]
    assert counts["hits"] > 0 < counts["merges"]
    assert counts["drops"] > 0 < counts["evictions"] < counts["fills"]
    master.write("CTRL", 9)
    assert all(master.read(f"COUNT_{name.upper()}") == 0 for name, _ in COUNTERS)


def matching(rows: dict[int, tuple[int, int, int]], dst: int) -> int | None:
    """The lowest row that matches, from the definition."""
    return next((rows[n][2] for n in sorted(rows) if (dst ^ rows[n][0]) & rows[n][1] == 0), None)


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("latency", [1, 4])
def test_every_response_is_what_the_tcam_said_meanwhile(depth: int, latency: int) -> None:
    """Rows change under way: a response is an answer that held at some time between request and response."""
    master = Master(
        pipeline_depth=depth, tcam_kind="flops", tcam_latency_cycles=latency, entries=8, epoch_bits=1, address_bits=12,
        chunk_bits=(3,),
    )  # fmt: skip
    rng = np.random.default_rng(depth)
    rows: dict[int, tuple[int, int, int]] = {}
    history: list[tuple[int, dict[int, tuple[int, int, int]]]] = [(0, {})]  # since when, rows
    master.write("CTRL", 1)
    accepted: dict[int, tuple[int, int]] = {}
    for tag in range(250):
        if tag % 25 == 0:
            row, value, mask = int(rng.integers(0, 4)), int(rng.integers(0, 8)), int(rng.integers(0, 8))
            master.write_row(row, value, mask, tag)
            rows = {**rows, row: (value, mask, tag)}
            history.append((master.cycle, rows))  # effective in the cycle after the write
        dst = int(rng.integers(0, 8))
        while not master.step(req_valid=1, req_dst=dst, req_tag=tag, resp_ready=int(rng.random() < 0.6)).req_ready:
            pass
        accepted[tag] = master.cycle - 1, dst
    master.idle(60)
    assert master.engine.idle
    assert sorted(master.responses) == sorted(accepted)
    late = int(depth == 1)  # without stages, a hit in the cycle of the flush itself is still of the old epoch
    assert master.engine.counters["hits"] > 10
    for tag, (begin, dst) in accepted.items():
        end, response = master.responses[tag]
        said = response.resp_output if response.resp_match else None
        possible = [
            matching(content, dst)
            for (since, content), (until, _) in itertools.zip_longest(history, history[1:], fillvalue=(1 << 30, {}))
            if since <= end and until + late > begin
        ]
        assert said in possible, (tag, begin, end, said, possible)


@pytest.mark.parametrize(
    ("policy", "ways", "skewed"),
    [("lru", 4, False), ("plru", 4, False), ("fifo", 3, False), ("random", 4, False), ("random", 2, True)],
)
def test_one_at_a_time_it_is_the_functional_cache(policy: Any, ways: int, skewed: bool) -> None:
    master = Master(
        entries=8 * ways, ways=ways, policy=policy, skewed=skewed, tcam_kind="flops", tcam_latency_cycles=1,
        pipeline_depth=1,
    )  # fmt: skip
    master.write_row(0, 1, 1, 500)
    master.write_row(1, 0, 1, 600)
    master.enable()
    cache = RoutingCache(entries=8 * ways, ways=ways, policy=policy, skewed=skewed)
    rng = np.random.default_rng(7)
    hits = []
    for number in range(600):
        dst, tag = int(rng.zipf(1.3)) % 200, number % 256
        master.responses.pop(tag, None)
        if rng.random() < 0.03:
            master.write("INVALIDATE_LO", dst)
            master.idle(4)
            cache.invalidate(dst)
        master.request(dst, tag)
        while tag not in master.responses:
            master.step()
        response = master.responses[tag][1]
        found = cache.lookup(dst)
        hits.append(found is not None)
        assert bool(response.resp_hit) is hits[-1]
        if found is None:
            cache.fill(dst, 500 + 100 * (1 - dst % 2))
        assert response.resp_output == 500 + 100 * (1 - dst % 2)
    assert 50 < sum(hits) < 550
    for name in ("hits", "fills", "evictions", "invalidations"):
        assert master.engine.counters[name] == cache.counters[name], name


def networks() -> Iterator[Any]:
    yield NodeReduction.mesh((3, 3), address=AddressFormat(24, 2))
    yield NodeReduction.mesh((2, 5, 3), address=AddressFormat(24, 3), hosts_per_router=4)
    yield NodeReduction.torus((5, 5), address=AddressFormat(24, 3))
    yield NodeReduction.torus((2, 4, 7), address=AddressFormat(24, 3), members=3, member_hash="modulo")
    yield NodeReduction.fat_tree(2, 2, address=AddressFormat(24, 2), members=4)
    yield NodeReduction.fat_tree(4, 1, address=AddressFormat(24, 2), up_choice="highest_mismatch")
    yield NodeReduction.fat_tree(3, 2, address=AddressFormat(24, 2), up_choice="highest_mismatch")
    yield NodeReduction.dragonfly(2, 4, 9, address=AddressFormat(24, 4))


@pytest.mark.parametrize("network", list(networks()), ids=lambda network: f"{network.mode}-{network.radices}")
def test_keys_are_those_of_node_reduction(network: NodeReduction) -> None:
    """The registers' interval form against the rules of the specification, every switch and host."""
    params = LookupParams(max_members=16)
    functions = KeyFunctions(params)
    digits = [range(radix) for radix in network.radices]
    if network.hosts_per_router > 1:
        digits.append(range(network.hosts_per_router))
    hosts = [
        sum(digit << network.address.chunk_bits * i for i, digit in enumerate(host))
        for host in itertools.product(*digits)
    ]
    assert len(hosts) >= 8
    radices = network.radices if network.mode in {"mesh", "torus"} else ()
    for router in range(network.routers):
        place = network.switch(router)
        config = functions.config(
            mode=MODES.index(network.mode),
            chunk_select=params.chunk_bits.index(network.address.chunk_bits),
            up_choice=UP_CHOICES.index(network.up_choice),
            member_hash=int(network.member_hash == "modulo"),
            members=network.members,
            own=place.own,
            level=place.level,
            digits=network.dimensions,
            radices=(*radices, *[1] * (12 - len(radices))),
        )
        for host in hosts:
            assert functions.key(config, host) == network.key(router, host), (router, host)


@pytest.mark.parametrize(("table", "mode", "radices"), [("mesh_3x3", "mesh", (3, 3)), ("torus_5x5", "torus", (5, 5))])
def test_grid_keys_of_the_independent_reference(table: str, mode: str, radices: tuple[int, ...]) -> None:
    entries = json.loads((DATA / "grid_keys.json").read_text())["tables"][table]
    functions = KeyFunctions(LookupParams())
    assert len(entries) == (radices[0] * radices[1]) ** 2
    for name, key in entries.items():
        c, d = (tuple(map(int, part.strip("()").split(","))) for part in name.split("->"))
        config = functions.config(
            mode=MODES.index(mode), chunk_select=1, own=c[0] | c[1] << 3, digits=2, radices=(*radices, *[1] * 10)
        )
        kind = {"L": 0, "+": 1, "-": 2}[key[-1]]
        value = key[1] if kind else 0
        assert functions.key(config, d[0] | d[1] << 3) == MODES.index(mode) << 24 | kind << 18 | value, name
