"""Faults made by hand that `hopforge cosim` must notice: each once survived its traffic.

A fault is a change of the text of a hardware module behind a number, so that one build holds all faults of a design.
"""

import importlib
from collections.abc import Callable
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import Component, In

from hopforge.gen.design.configured import engine_parameters
from hopforge.gen.mutation.mutate import SELECTOR, Mutant, Netlist, write_netlist
from hopforge.gen.tools.yosys import run_yosys
from hopforge.hw.lookup.engine import lookup_engine
from hopforge.hw.router.router import Router
from hopforge.model.config import Config, load_config, parse_config
from hopforge.sim.benches.lookup import lookup_replay
from hopforge.sim.cosim.lookup import engine_traffic
from hopforge.sim.cosim.mutation_subjects import Subject
from hopforge.sim.cosim.mutation_verdicts import judge_mutants
from hopforge.sim.cosim.prepared import engine_setup
from hopforge.sim.cosim.router import recorded, router_of, router_runs
from hopforge.sim.drive.router import router_replay
from hopforge.sim.drive.stimulus import stimulus

LOOKUPS = 20_000
CYCLES = 4_000
CONFIGS = Path(__file__).parents[3] / "configs"


class Fault(NamedTuple):
    """What is wrong, in which module, and the text that makes it so: `{wrong}` is 1 while the fault is chosen."""

    name: str
    module: str
    right: str
    wrong: str


INVALIDATE = [
    Fault(
        "INVALIDATE leaves the cache alone", "lookup.shallow",
        "cache.invalidate.eq(op.invalidate),", "cache.invalidate.eq(op.invalidate & ~{wrong}),",
    ),
    Fault(
        "INVALIDATE touches no MSHR", "lookup.shallow",
        "mshrs.invalidate.eq(op.invalidate),", "mshrs.invalidate.eq(op.invalidate & ~{wrong}),",
    ),
    Fault(
        "INVALIDATE does nothing", "lookup.shallow",
        "taken.invalidate.eq(keys.invalidate & keys.accept_invalidate),",
        "taken.invalidate.eq(keys.invalidate & keys.accept_invalidate & ~{wrong}),",
    ),
    Fault(
        "INVALIDATE does not mark ISSUED stale", "lookup.mshr_entries",
        "(waits & (self.stale[i] | invalidated | self.flush))",
        "(waits & (self.stale[i] | invalidated & ~{wrong} | self.flush))",
    ),
    Fault(
        "INVALIDATE misses way 3", "cache.routing_cache",
        "(self.invalidate & match[way])", "(self.invalidate & match[way] & ~({wrong} & (way == 3)))",
    ),
    Fault(
        "a FILL of what is there does not touch the LRU", "cache.arrays",
        "(match & (self.lookup | self.fill).replicate(self.ways))",
        "(match & (self.lookup | self.fill & ~{wrong}).replicate(self.ways))",
    ),
]  # fmt: skip
THRESHOLDS = [
    Fault(
        f"threshold of dimension {digit} ignored", "keys.reduction_compare",
        "wrap = active.wrap[number]\n",
        f"wrap = active.wrap[number]\n            if number == {digit}:\n"
        "                above_bound = (above_bound & ~{wrong})[0]\n",
    )
    for digit in range(3)
]  # fmt: skip
ENABLE = [
    Fault(
        "enable ignored", "ports.input_routes",
        "m.d.sync += enabled.eq(self.enable)", "m.d.sync += enabled.eq(self.enable | {wrong})",
    )
]  # fmt: skip
OUTPUT_ARBITER = [
    Fault(
        "output VA arbiter moves without a grant", "allocation.vc_allocator",
        "arbiter.advance.eq(self.given[w])]", "arbiter.advance.eq(self.given[w] | {wrong})]",
    )
]  # fmt: skip


class Mutated(Component):
    """A component with a port that says which of its faults is there."""

    def __init__(self, inner: Component, chosen: Signal) -> None:
        self.inner = inner
        self.chosen = chosen
        super().__init__({**inner.signature.members, SELECTOR: In(len(chosen))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.inner = self.inner
        m.d.comb += self.chosen.eq(getattr(self, SELECTOR))
        for name in self.inner.signature.members:
            member = self.inner.signature.members[name]
            outside, inside = getattr(self, name), getattr(self.inner, name)
            for one, other in zip(*(_listed(port, member) for port in (outside, inside)), strict=True):
                if member.is_signature:
                    wiring.connect(m, wiring.flipped(one), other)
                elif member.flow == In:
                    m.d.comb += other.eq(one)
                else:
                    m.d.comb += one.eq(other)
        return m


def _listed(port: Any, member: wiring.Member) -> list[Any]:
    return list(port) if member.dimensions else [port]


class HandMade(Netlist):
    """A netlist that holds its mutants already."""

    def verilog(self, mutants: Any) -> str:
        run_yosys("read_rtlil netlist.il\nwrite_verilog -sv -noattr mutants.sv\n", self.folder)
        return (self.folder / "mutants.sv").read_text()


@pytest.fixture
def faulty(monkeypatch: pytest.MonkeyPatch) -> Callable[[list[Fault]], Signal]:
    """Return a function that puts faults into the hardware, and returns the signal that chooses one (0: none)."""

    def rewrite(faults: list[Fault]) -> Signal:
        chosen = Signal(range(len(faults) + 1), name="chosen")
        texts: dict[str, str] = {}
        for number, fault in enumerate(faults, 1):
            text = texts.get(fault.module) or Path(str(_module(fault.module).__file__)).read_text()
            assert text.count(fault.right) == 1, f"{fault.name}: the text is not there, or not only once"
            texts[fault.module] = text.replace(fault.right, fault.wrong.replace("{wrong}", f"(CHOSEN == {number})"))
        for name, text in texts.items():
            module = _module(name)
            changed = {**vars(module), "CHOSEN": chosen}
            exec(compile(text, str(module.__file__), "exec"), changed)
            for kind in (kind for kind in vars(module).values() if isinstance(kind, type)):
                if kind.__module__ == module.__name__:
                    for method, body in vars(changed[kind.__name__]).items():
                        if isinstance(body, FunctionType) and method != "__init__":
                            monkeypatch.setattr(kind, method, body)
        return chosen

    return rewrite


def _module(name: str) -> ModuleType:
    return importlib.import_module(f"hopforge.hw.{name}")


@pytest.mark.parametrize("fault", [*INVALIDATE, *THRESHOLDS, *ENABLE, *OUTPUT_ARBITER], ids=lambda fault: fault.name)
def test_the_text_of_a_fault_is_there_once(fault: Fault) -> None:
    """Also of those that only `make study` puts in."""
    assert Path(str(_module(fault.module).__file__)).read_text().count(fault.right) == 1


def survivors(component: Component, faults: list[Fault], chosen: Signal, replays: list[Any], folder: Path) -> list[str]:
    """Names of the faults that none of the replays shows."""
    netlist = HandMade(*write_netlist(Mutated(component, chosen), "faulty", folder))
    mutants = [Mutant(number, "hand", "", "", 0, "", fault.name, "") for number, fault in enumerate(faults, 1)]
    verdicts = judge_mutants(Subject("lookup", component, replays), netlist, mutants, "hand", proof_s=0)
    return [verdict.mutant.source for verdict in verdicts if verdict.state == "survived"]


def engine(text: str) -> Config:
    return parse_config(f"name: small\ntopology: {{kind: torus, radices: [4, 4, 4]}}\nlookup: {text}\n")


@pytest.mark.parametrize(
    ("config", "faults"),
    [
        pytest.param(
            engine("{reduction: false, tcam: {kind: external}, cache: {entries: 16, ways: 4}, mshrs: 4}"),
            INVALIDATE, id="whole addresses",
        ),
        pytest.param(
            engine("{reduction: false, tcam: {kind: external}}"),
            INVALIDATE, id="large cache", marks=pytest.mark.study,
        ),
        pytest.param(
            engine("{functions: [arbitrary, torus], chunk_bits: [4], comparators: 3, tcam: {kind: external}}"),
            THRESHOLDS, id="torus", marks=pytest.mark.study,
        ),
    ],
)  # fmt: skip
def test_faults_of_an_engine(config: Config, faults: list[Fault], faulty: Any, tmp_path: Path) -> None:
    params = engine_parameters(config)
    chosen = faulty(faults)
    replay = lookup_replay(stimulus(params, engine_traffic(config, LOOKUPS, 1), engine_setup(config, params)))
    assert survivors(lookup_engine(params=params), faults, chosen, [lambda: replay], tmp_path) == []


@pytest.mark.parametrize("name", ["output_first"])
def test_faults_of_a_router(name: str, faulty: Any, tmp_path: Path) -> None:
    faults = [*ENABLE, *OUTPUT_ARBITER]
    _, params = router_of(load_config(CONFIGS / "mutation" / "router" / f"{name}.yml", hardware=True))
    chosen = faulty(faults)
    replays = [
        lambda traffic=traffic, held=held: router_replay(recorded(params, traffic, held=held))
        for traffic, held in router_runs(params, CYCLES, 1)
    ]
    assert survivors(Router(params=params), faults, chosen, replays, tmp_path) == []
