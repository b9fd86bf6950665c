"""What a response of a golden lookup engine may be: an answer that nobody had withdrawn yet, checked as it comes."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from hopforge.model.lookup.csr import MODES, csr_map
from hopforge.model.lookup.golden.build import SHALLOW_DEPTHS, golden_engine
from hopforge.model.lookup.golden.ports import LookupInputs, LookupOutputs
from hopforge.model.lookup.params import LookupParams

NEVER = 1 << 30
DESTINATIONS = 12
STUCK_CYCLES = 3000
# from the write of CTRL.flush to the last cycle whose request may still get an old answer
FLUSH_CYCLES = 4

STEADY = [
    {"entries": 32, "ways": 4, "mshrs": 9, "epoch_bits": 2},
    {"entries": 8, "ways": 2, "mshrs": 8, "epoch_bits": 1},
]
"""Engines that hit often, for surroundings in which nobody pauses."""


class Truth:
    """What the TCAM says of each destination, version by version: output, since when, until when it may be used.

    Destinations with the same key have the same output.
    """

    def __init__(self) -> None:
        self.keys = list(range(DESTINATIONS))
        self.number = 0
        self.versions: list[list[list[int]]] = [[] for _ in range(DESTINATIONS)]
        self.change(self.keys, 0)

    def now(self, dst: int) -> int:
        return self.versions[dst][-1][0]

    def change(self, keys: list[int], cycle: int) -> None:
        """Give the destinations of `keys` other outputs."""
        self.number += 1
        for dst, key in enumerate(self.keys):
            if key in keys:
                self.versions[dst].append([self.number << 16 | key & 0xFFFF, cycle, NEVER])

    def withdraw(self, keys: list[int], cycle: int) -> None:
        """Say that from `cycle` on no request gets an older version."""
        for dst, key in enumerate(self.keys):
            for version in self.versions[dst][:-1] if key in keys else ():
                version[2] = min(version[2], cycle)

    def allowed(self, dst: int, begin: int, end: int) -> list[int]:
        return [output for output, since, until in self.versions[dst] if since <= end and until > begin]


class Surroundings:
    """A source, a sink and an external TCAM with random pauses, and software that changes the TCAM's content.

    `steady`: nobody pauses, and software acts seldom enough for lines to hit: then every stage holds a lookup when a
    flush or an invalidation comes.
    """

    def __init__(self, params: LookupParams, seed: int, requests: int, *, mesh: bool, steady: bool = False) -> None:
        self.engine, self.map, self.rng = golden_engine(params), csr_map(params), np.random.default_rng(seed)
        self.truth, self.requests, self.cycle, self.accepted = Truth(), requests, 0, 0
        self.open: dict[int, tuple[int, int]] = {}  # tag: destination, cycle
        self.asked: dict[int, int] = {}  # MSHR: answer
        self.offered: tuple[int, int] | None = None
        self.most = params.mshrs
        self.software = self.work()
        self.mesh = mesh
        self.steady = steady
        self.rates = [0.5] * 4

    def work(self) -> Iterator[dict[str, int]]:
        """Yield the bus signals of every cycle."""
        yield self.write("CTRL", 1)
        if self.mesh:
            yield self.write("LEVEL", self.map["LEVEL"].encode(digits=2))
            yield from self.flush("MODE", self.map["MODE"].encode(mode=MODES.index("mesh"), members=1), own=0)
        while True:
            # few keys hit nearly always: the TCAM must be busy for an answer to become stale
            pause = 60 if self.steady or not self.mesh else 15
            yield from ({} for _ in range(int(self.rng.integers(0, pause))))
            kind = self.rng.random()
            if kind < 0.6:
                dst = int(self.rng.integers(DESTINATIONS))
                key = self.truth.keys[dst]
                self.truth.change([key], self.cycle)
                yield self.write("INVALIDATE_LO", dst)
                yield from self.wait("invalidate_busy")
                self.truth.withdraw([key], self.cycle)
            elif not self.mesh:
                yield from self.flush("CTRL", 3)
                if kind < 0.8:  # a topology change, and enable again
                    yield {"link_change": 1}
                    yield from ({} for _ in range(int(self.rng.integers(0, 30))))
                    yield self.write("CTRL", 1)
            else:
                own = int(self.rng.integers(DESTINATIONS))
                yield from self.flush("OWN_LO", own, own=own)

    def flush(self, name: str, word: int, own: int | None = None) -> Iterator[dict[str, int]]:
        """Change everything the TCAM says, and flush by a write; `own`: own address of a mesh from now on."""
        if own is not None:
            keys = self.engine.keys
            radices = (1,) * self.engine.params.radices
            config = keys.config(mode=MODES.index("mesh"), own=own, digits=2, radices=radices)
            self.truth.keys = [keys.key(config, dst) for dst in range(DESTINATIONS)]
        self.truth.change(self.truth.keys, self.cycle)
        yield self.write(name, word)
        yield from ({} for _ in range(FLUSH_CYCLES))
        self.truth.withdraw(self.truth.keys, self.cycle)

    def wait(self, field: str) -> Iterator[dict[str, int]]:
        """Read STATUS until `field` is 0."""
        later = 3 if self.engine.params.pipeline_depth > SHALLOW_DEPTHS else 1
        while True:
            yield {"csr_re": 1, "csr_addr": self.map["STATUS"].address}
            yield from ({} for _ in range(later - 1))
            yield {}
            if not self.map["STATUS"].decode(self.last.csr_rdata)[field]:
                return

    def write(self, name: str, word: int) -> dict[str, int]:
        return {"csr_we": 1, "csr_addr": self.map[name].address, "csr_wdata": word}

    def step(self) -> None:
        rng = self.rng
        if self.cycle % 100 == 0:
            self.rates = [float(rate) for rate in rng.choice([1.0] if self.steady else [0.1, 0.6, 1.0, 1.0], 4)]
        draws = rng.random(4) < self.rates
        values: dict[str, int] = {"resp_ready": int(draws[0]), "tcam_req_ready": int(draws[1])}
        if self.offered is None and self.accepted < self.requests and draws[2]:
            self.offered = int(DESTINATIONS * rng.random() ** (1 if self.steady else 2)), self.accepted
        if self.offered is not None:
            values |= {"req_valid": 1, "req_dst": self.offered[0], "req_tag": self.offered[1]}
        if self.asked and draws[3]:
            number = int(rng.choice(list(self.asked)))
            values |= {"tcam_resp_valid": 1, "tcam_resp_id": number, "tcam_resp_match": 1}
            values["tcam_resp_output"] = self.asked.pop(number)
        self.last = self.engine.step(LookupInputs(**values | next(self.software)))
        self.take(values, self.last)
        self.cycle += 1

    def take(self, values: dict[str, int], outputs: LookupOutputs) -> None:
        if self.offered is not None and outputs.req_ready:
            self.open[self.offered[1]] = self.offered[0], self.cycle
            self.offered = None
            self.accepted += 1
        if outputs.tcam_req_valid and values["tcam_req_ready"]:
            assert outputs.tcam_req_id not in self.asked and outputs.tcam_req_id < self.most
            self.asked[outputs.tcam_req_id] = self.truth.now(outputs.tcam_req_dst)
        if outputs.resp_valid and values["resp_ready"]:
            dst, begin = self.open.pop(outputs.resp_tag)
            allowed = self.truth.allowed(dst, begin, self.cycle)
            assert outputs.resp_output in allowed, (self.cycle, outputs, dst, begin, allowed)


def answered(changes: dict[str, Any], depth: int, *, mesh: bool, steady: bool = False) -> Surroundings:
    """Let an engine answer 700 requests, each response being checked."""
    fixed: dict[str, Any] = {"functions": ("arbitrary", "mesh"), "tcam_kind": "external", "output_bits": 32}
    params = LookupParams(**fixed, **changes, chunk_bits=(2,), pipeline_depth=depth, request_tag_bits=16)
    around = Surroundings(params, depth, 700, mesh=mesh, steady=steady)
    while around.accepted < around.requests or around.open:
        around.step()
        assert around.cycle < 100 * STUCK_CYCLES
        oldest = min((begin for _, begin in around.open.values()), default=around.cycle)
        assert around.cycle - oldest < STUCK_CYCLES, "a request is lost"
    return around
