"""The lookup engine against its golden model, every output in every cycle, on Amaranth's simulator."""

import zlib
from dataclasses import dataclass, field

import numpy as np
import pytest
from amaranth.sim import Simulator

from hopforge.hw.lookup.engine import lookup_engine
from hopforge.model.lookup.csr import csr_map
from hopforge.model.lookup.golden.build import golden_engine
from hopforge.model.lookup.golden.ports import LookupInputs, LookupOutputs
from hopforge.model.lookup.params import LookupParams


@dataclass
class Stimulus:
    """Random inputs of every cycle: requests on a small pool of destinations, control traffic, a TCAM outside."""

    params: LookupParams
    rng: np.random.Generator
    calm: bool  # little control traffic, no waiting
    pool: list[int] = field(init=False)
    outstanding: list[int] = field(default_factory=list)
    script: list[tuple[int, int]] = field(default_factory=list)
    request: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        p = self.params
        self.map = csr_map(p)
        size = int(self.rng.integers(2, 3 * p.entries // 2 + 4))
        self.pool = [int(self.rng.integers(1 << p.address_bits)) for _ in range(min(size, 40))]
        self.idle, self.stall = self.rng.choice([0.0, 0.2, 0.7], 2)
        self.control = float(self.rng.choice([0.003, 0.02, 0.08]))
        self.tcam_delay = float(self.rng.choice([0.05, 0.4, 1.0]))
        if self.calm:
            self.idle, self.stall, self.control, self.tcam_delay = 0.1, 0.1, 0.003, 0.4
        self.reads = [register.address for register in self.map]
        if p.tcam_kind != "external":
            for row in range(min(p.tcam_rows, 4) if p.tcam_kind == "flops" else 0):
                self.write_row(row)
            self.write_wide("TCAM_MASK", 0)
            self.write("TCAM_WRITE", 4 | 1 << 31)  # whatever matches nothing else matches this row
        self.write("CTRL", 1)

    def write(self, name: str, value: int) -> None:
        self.script.append((self.map[name].address, value & 0xFFFFFFFF))

    def write_wide(self, name: str, value: int) -> None:
        if f"{name}_HI" in self.map:
            self.write(f"{name}_HI", value >> 32)
        self.write(f"{name}_LO", value)

    def write_row(self, row: int) -> None:
        p = self.params
        self.write_wide("TCAM_VALUE", int(self.rng.choice(self.pool)))
        mask = int(self.rng.choice([0, 1, 3, 0xF, (1 << p.address_bits) - 1])) * int(self.rng.choice([1, 0x100]))
        self.write_wide("TCAM_MASK", mask & (1 << p.address_bits) - 1)
        self.write_wide("TCAM_OUTPUT", int(self.rng.integers(1 << min(62, p.output_bits))))
        valid, lag = self.rng.integers(2, size=2)
        self.write("TCAM_WRITE", int(row) | int(lag) << 16 | int(valid or row < 2) << 31)

    def act(self) -> None:
        """Queue something random on the CSR bus."""
        p = self.params
        kind = self.rng.choice(
            ["invalidate", "flush", "enable", "disable", "topology", "mode", "own", "level", "radix", "row", "clear"]
        )
        if kind == "invalidate":
            self.write_wide("INVALIDATE", int(self.rng.choice(self.pool)))
        elif kind == "flush":
            self.write("CTRL", 3)
        elif kind == "enable":
            self.write("CTRL", 1)
        elif kind == "disable":
            self.write("CTRL", int(self.rng.integers(2)))
        elif kind == "topology":
            self.write("CTRL", int(self.rng.choice([1, 4, 5])))
            self.write("CTRL", 1)
        elif kind == "clear":
            self.write("CTRL", 8 | int(self.rng.integers(2)))
        elif kind == "mode":
            mode = int(self.rng.integers(8))
            select = int(self.rng.integers(8))
            members = int(self.rng.integers(p.max_members + 2))
            up, member_hash = (int(x) for x in self.rng.integers(2, size=2))
            self.write("MODE", mode | select << 4 | up << 8 | member_hash << 12 | members << 16)
        elif kind == "own":
            self.write_wide("OWN", int(self.rng.choice(self.pool)) ^ int(self.rng.integers(4)))
        elif kind == "level":
            self.write("LEVEL", int(self.rng.integers(5)) | int(self.rng.integers(14)) << 8)
        elif kind == "radix":
            index = int(self.rng.integers(p.radices))
            self.write(f"RADIX{index}", int(self.rng.integers(1, 257)))
        elif p.tcam_kind != "external":
            self.write_row(int(self.rng.integers(p.tcam_rows + 1)))

    def inputs(self) -> LookupInputs:
        """Inputs of the next cycle; a request that waits is kept."""
        p, rng = self.params, self.rng
        if self.request is None and rng.random() >= self.idle:
            self.request = int(rng.choice(self.pool)), int(rng.integers(1 << p.request_tag_bits))
        values = {}
        if self.request is not None:
            values |= {"req_valid": 1, "req_dst": self.request[0], "req_tag": self.request[1]}
        if rng.random() < self.control:
            self.act()
        if self.script and rng.random() < 0.7:
            address, word = self.script.pop(0)
            values |= {"csr_we": 1, "csr_addr": address, "csr_wdata": word}
        elif rng.random() < 0.3:
            values |= {"csr_re": 1, "csr_addr": int(rng.choice(self.reads))}
        if rng.random() < self.control / 20:
            values["link_change"] = 1
            self.write("CTRL", 1)
        values["resp_ready"] = int(rng.random() >= self.stall)
        if p.tcam_kind == "external":
            values["tcam_req_ready"] = int(rng.random() < 0.7)
            if self.outstanding and rng.random() < self.tcam_delay:
                number = self.outstanding.pop(int(rng.integers(len(self.outstanding))))
                values |= {
                    "tcam_resp_valid": 1,
                    "tcam_resp_id": number,
                    "tcam_resp_match": int(rng.random() < 0.8),
                    "tcam_resp_output": int(rng.integers(1 << min(62, p.output_bits))),
                }
        return LookupInputs(**values)

    def observe(self, inputs: LookupInputs, outputs: LookupOutputs) -> None:
        """Take note of what was accepted."""
        if inputs.req_valid and outputs.req_ready:
            self.request = None
        if outputs.tcam_req_valid and inputs.tcam_req_ready:
            self.outstanding.append(outputs.tcam_req_id)


def masked(values: dict[str, int]) -> LookupOutputs:
    """Outputs that mean something."""
    if not values["resp_valid"]:
        values |= {"resp_tag": 0, "resp_output": 0, "resp_match": 0, "resp_hit": 0}
    if not values.get("tcam_req_valid", 0):
        values |= {"tcam_req_id": 0, "tcam_req_dst": 0}
    return LookupOutputs(**values)


def runs(params: LookupParams, cycles: int, seeds: list[int]) -> dict[str, int]:
    """Compare `cycles` random cycles for each seed, calm ones first; returns how often things happened."""
    dut = lookup_engine(params=params)
    seen = {"hits": 0, "answers": 0}
    left = list(seeds)
    names_in = [name for name in LookupInputs._fields if hasattr(dut, name) and name in dut.signature.members]
    names_out = [name for name in LookupOutputs._fields if name in dut.signature.members]
    assert len(names_in) + len(names_out) == len(dut.signature.members)

    async def bench(ctx):
        calm = left == seeds
        golden = golden_engine(params)
        stimulus = Stimulus(params, np.random.default_rng(left.pop(0)), calm)
        for cycle in range(cycles):
            inputs = stimulus.inputs()
            for name in names_in:
                ctx.set(getattr(dut, name), getattr(inputs, name))
            got = masked({name: ctx.get(getattr(dut, name)) for name in names_out})
            want = golden.step(inputs)
            assert got == want, f"cycle {cycle}: {inputs}"
            stimulus.observe(inputs, got)
            seen["hits"] += got.resp_valid & got.resp_hit
            seen["answers"] += got.resp_valid & (1 - got.resp_hit)
            await ctx.tick()

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    while left:
        simulator.reset()  # one build for all seeds
        simulator.run()
    return seen


SMALL = {
    "address_bits": 12, "chunk_bits": (2, 3), "comparators": 4, "entries": 16, "ways": 2, "tag_bits": 16,
    "output_bits": 7, "epoch_bits": 2, "mshrs": 4, "request_tag_bits": 5, "tcam_rows": 6, "tcam_latency_cycles": 3,
    "max_members": 3,
}  # fmt: skip
ENGINES = {
    "lru": {},
    "plru": {"policy": "plru", "ways": 4, "mshrs": 3, "epoch_bits": 1, "tcam_latency_cycles": 1},
    "fifo": {"policy": "fifo", "ways": 3, "entries": 24, "mshrs": 5, "tcam_latency_cycles": 2},
    "random": {
        "policy": "random",
        "ways": 3,
        "entries": 12,
        "tcam_kind": "external",
        "address_bits": 33,
        "tag_bits": 40,
    },
    "skewed": {"policy": "random", "skewed": True, "ways": 4, "tcam_latency_cycles": 5},
    "one set": {"entries": 4, "ways": 4, "mshrs": 1, "tcam_kind": "external", "output_bits": 40},
    "one way": {"entries": 8, "ways": 1, "policy": "fifo", "mshrs": 2, "epoch_bits": 3},
    "arbitrary": {"functions": ("arbitrary",), "entries": 32, "mshrs": 2, "tcam_kind": "external"},
    "sram": {"tcam_kind": "sram", "tcam_rows": 9, "tcam_latency_cycles": 4, "mshrs": 8},
}


DEPTHS = [1, 2, 3, 4, 5, 6, 7, 8]
#: each engine, and each depth; the others in the study
QUICK = {(name, DEPTHS[k % len(DEPTHS)]) for k, name in enumerate(ENGINES)}


@pytest.mark.parametrize(("name", "depth"), [
    pytest.param(name, depth, marks=() if (name, depth) in QUICK else pytest.mark.study)
    for name in ENGINES for depth in DEPTHS
])  # fmt: skip
def test_every_output_equals_golden(name: str, depth: int) -> None:
    params = LookupParams(**(SMALL | ENGINES[name] | {"pipeline_depth": depth}))
    cycles = 500 if depth < 5 else 600
    seeds = [zlib.crc32(name.encode()) + 17 * depth + seed for seed in range(2)]
    seen = runs(params, cycles, seeds)
    assert seen["hits"] > 5 and seen["answers"] > 10, "the stimulus must reach hits and misses"
