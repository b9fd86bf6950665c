"""Energy of a lookup or of a flit: a netlist of cells under stated traffic, beside the analytic model."""

import dataclasses
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hopforge.gen.design.blocks import Block, lookup_blocks
from hopforge.gen.design.configured import engine_parameters
from hopforge.gen.design.router_blocks import router_blocks
from hopforge.gen.synth.area_and_delay import map_with_memories
from hopforge.gen.synth.cells import read_library
from hopforge.gen.synth.gate_energy import Activity, GateEnergy, gate_energy, opensta_energy, read_netlist, uniform
from hopforge.gen.tools.abc_recipes import RECIPES
from hopforge.hw.router.router import Router
from hopforge.model.config import Config
from hopforge.model.errors import UserError
from hopforge.model.lookup.fast.layout import INPUTS, OUTPUTS
from hopforge.model.output.results import check_writable
from hopforge.sim.benches.lookup import lookup_replay
from hopforge.sim.cosim.gate_run import run_gates
from hopforge.sim.cosim.lookup import engine_traffic
from hopforge.sim.cosim.prepared import engine_setup
from hopforge.sim.cosim.router import router_of
from hopforge.sim.cosim.run import report_in
from hopforge.sim.drive.replay import Replay
from hopforge.sim.drive.router import router_replay
from hopforge.sim.drive.router_stimulus import router_stimulus
from hopforge.sim.drive.router_traffic import O_KIND, O_VALID, RouterTraffic
from hopforge.sim.drive.stimulus import stimulus
from hopforge.sim.hits.energy import SwitchShape, Traffic, switch_energy

__all__ = ["GATE_PARTS", "GateReport", "measure_gates"]

GATE_PARTS = ("lookup", "router")

_UNIFORM = 0.1
"""Changes of every net per cycle at which the sum is compared with OpenSTA's."""


@dataclass(frozen=True)
class _Case:
    """A design, its traffic, and what it did."""

    block: Block
    replay: Replay
    begin: int
    events: int
    what: str
    traffic: str
    analytic_pj: float
    analytic: str


@dataclass(frozen=True)
class GateReport:
    """What a run found.

    Attributes
    ----------
    name, what, traffic : str
        Design; what is counted (lookup, flit); words on the traffic.
    cycles, events, mismatches : int
        Cycles, lookups or flits in them, cycles with a wrong output.
    period_ns : float
        Clock period for leakage.
    energy : GateEnergy
        Per cycle.
    uniform, opensta : tuple of float
        pJ internal and switching, mW of leakage, at a uniform activity: our sum by OpenSTA's rules, OpenSTA's (None
        without it).
    analytic_pj : float
        What the analytic model says of such an event, in the parts that `analytic` names.
    """

    name: str
    what: str
    traffic: str
    cycles: int
    events: int
    mismatches: int
    period_ns: float
    energy: GateEnergy
    uniform: tuple[float, ...]
    opensta: tuple[float, ...] | None
    analytic_pj: float
    analytic: str

    @property
    def event_pj(self) -> float:
        """Energy of a lookup or a flit."""
        return self.energy.cycle_pj(self.period_ns) * self.cycles / self.events

    def rows(self) -> Iterator[tuple[str, str]]:
        """Return the report as (subject, words) for a table."""
        share, e = self.cycles / self.events, self.energy
        yield "netlist", f"{self.name}, {self.traffic}"
        yield "cycles", f"{self.cycles} with {self.events} {self.what}s, {self.mismatches} with a wrong output"
        yield f"energy of a {self.what}", f"{self.event_pj:.2f} pJ"
        yield "  inside of cells", f"{e.internal_pj * share:.2f} pJ"
        yield "  clock pins, clock nets", f"{e.clock_pj * share:.2f} pJ"
        yield "  capacitance of nets", f"{e.switching_pj * share:.2f} pJ"
        yield (
            "  leakage",
            f"{e.leakage_mw * self.period_ns * share:.2f} pJ ({e.leakage_mw:.3f} mW, {self.period_ns:g} ns)",
        )
        yield "analytic model", f"{self.analytic_pj:.2f} pJ: {self.analytic}"
        for name, found in (("our sum", self.uniform), ("OpenSTA", self.opensta)):
            words = "not there" if found is None else "{:.2f} + {:.2f} pJ, {:.3f} mW".format(*found)
            yield f"uniform {_UNIFORM:g}: {name}", words


def measure_gates(
    config: Config, part: str, liberty: Path, *, folder: Path, cycles: int = 1000, period_ns: float = 1.0,
    recipe: str = "lut-fast", timeout_s: float = 300, progress: Callable[[str], None] = lambda step: None,
) -> GateReport:  # fmt: skip
    """Map a design to cells, play traffic to the netlist, and sum the energy of what changes.

    Parameters
    ----------
    config : Config
        Checked configuration.
    part : str
        ``lookup``: the engine of depth 4, memories and TCAM outside; ``router``: the one in the middle of the network.
    liberty : Path
        Cell library.
    folder : Path
        Receives ``energy.json``.
    cycles : int
        Length of the traffic: lookups, or cycles with new packets.
    period_ns : float
        Clock period, which counts for leakage only.
    recipe : str
        Of abc.
    timeout_s : float
        Limit of processor time of the mapping.
    progress : callable
        Called with the name of each step before it is begun.

    Raises
    ------
    UserError
        An unknown part, a period that is none, a library without power, a missing tool, or outputs that differ.
    """
    if part not in GATE_PARTS:
        raise UserError(f"--part must be one of {', '.join(GATE_PARTS)}, not {part!r}")
    if recipe not in RECIPES:
        raise UserError(f"--recipe must be one of {', '.join(RECIPES)}, not {recipe!r}")
    if not 0 < period_ns < float("inf"):
        raise UserError(f"--period-ns must be above 0 and finite, not {period_ns:g}")
    check_writable(folder)
    library = read_library(liberty)
    progress("recording the traffic")
    case = _engine(config, cycles) if part == "lookup" else _router(config, cycles)
    if not case.events:
        raise UserError(f"{config.name}: no {case.what} in --cycles {cycles}; give more")
    top = f"block_{case.block.name}"
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        progress("mapping to cells")
        result = map_with_memories(case.block, library, recipe, place, timeout_s)
        path = place / f"{result.recipe}.v"
        netlist = read_netlist(path.read_text(), library, top)
        progress("playing the traffic to the netlist")
        run = run_gates(path, place / "memories.v", netlist, top, case.replay, place, begin=case.begin)
        if run.mismatches:
            raise UserError(f"{config.name}: {run.mismatches} cycles of the netlist differ from the golden model")
        progress("summing")
        still = Activity(0.0, 0.0)
        energy = gate_energy(netlist, lambda bit: run.activities.get(bit, still), library, "clk")
        even = gate_energy(netlist, uniform(netlist, "clk", _UNIFORM), library, "clk", as_opensta=True)
        opensta = opensta_energy(path, top, library, _UNIFORM, place)
    report = GateReport(
        config.name, case.what, case.traffic, run.cycles, case.events, run.mismatches, period_ns, energy,
        (even.internal_pj + even.clock_pj, even.switching_pj, even.leakage_mw), opensta,
        case.analytic_pj, case.analytic,
    )  # fmt: skip
    with report_in(folder, config, "energy.json") as facts:
        facts.update(dataclasses.asdict(report), event_pj=report.event_pj, library=library.name, recipe=recipe)
    return report


def _engine(config: Config, lookups: int) -> _Case:
    """Return the engine and lookups of random hosts, with idle cycles and back-pressure."""
    params = dataclasses.replace(engine_parameters(config), pipeline_depth=4, memory_stage=False, tcam_kind="external"
    )  # fmt: skip
    traffic = dataclasses.replace(
        engine_traffic(config, lookups, config.seed), change_configuration=False, link_failures=0.0, quiet_cycles=10**6
    )
    recorded = stimulus(params, traffic, engine_setup(config, params))
    replay = lookup_replay(recorded)
    valid, ready = (recorded.inputs[:, INPUTS.index("req_valid")], recorded.outputs[:, OUTPUTS.index("req_ready")])
    taken = np.flatnonzero(valid & ready)
    begin = int(taken[0])
    totals, timing = recorded.totals, config.timing
    misses = totals["misses"] / totals["lookups"]
    return _Case(
        lookup_blocks(engine_parameters(config))["engine"], replay, begin, len(taken), "lookup",
        f"{len(taken) / (len(replay.driven) - begin):.2f} lookups a cycle, {misses:.1%} misses",
        1000 * timing.cache_energy_nj, "a cache lookup (memories of the cache; the netlist has none)",
    )  # fmt: skip


def _router(config: Config, cycles: int) -> _Case:
    """Return the router in the middle of the network and random packets from and to all its ports."""
    name, params = router_of(config)
    if params.rc != "table":
        raise UserError(f"{name}: router.route_computation must be table for energies of a router, not {params.rc}")
    recorded = router_stimulus(params, RouterTraffic(cycles=cycles, seed=config.seed))
    flits = recorded.flits
    heads = int(((recorded.outputs[:, :, O_VALID] == 1) & (recorded.outputs[:, :, O_KIND] & 1 == 1)).sum())
    shape = SwitchShape(params.ports, params.vcs, params.buffer_flits, params.width_bits)
    counted = Traffic(seconds=0.0, packets=heads, flits=flits, tcam_share=0.0)
    parts = switch_energy(config, shape, 1, counted, cached=True)
    analytic = {part: 1e12 * joule / flits for part, joule in parts.items() if joule and "lookup" not in part}
    block = dataclasses.replace(router_blocks(config)["router"], build=lambda: Router(params=params))
    return _Case(
        block, router_replay(recorded), 0, flits, "flit",
        f"{params.ports} ports, {flits / recorded.cycles / params.ports:.2f} flits a port and cycle",
        sum(analytic.values()), ", ".join(f"{part} {pj:.2f}" for part, pj in analytic.items()),
    )  # fmt: skip
