"""Mutation test of the benches: whether they notice a fault in the hardware.

Many small faults are put into the netlists of the node reduction, the routing cache, the whole engine, a router or what
a network adds to its routers. The golden traces of the benches are then played to each. A fault that no trace shows,
and that is not proved to be without effect at the ports, is a hole in the stimulus.
"""

import re
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd
from amaranth.hdl import Fragment
from amaranth.lib.wiring import Component

from hopforge.gen.design import NetworkDesign, engine_parameters, network_design
from hopforge.gen.mutate import SELECTOR, Mutant, Netlist, write_netlist
from hopforge.gen.verilator import run_verilator
from hopforge.gen.verilog import tool_versions
from hopforge.hw.lookup_engine import is_deep, lookup_engine
from hopforge.hw.network import Network
from hopforge.hw.q_table import QTable
from hopforge.hw.router import Router
from hopforge.hw.sliced_counter import slices
from hopforge.model.config import Config
from hopforge.model.errors import UserError
from hopforge.model.lookup.params import LookupParams
from hopforge.model.output.destination import clear_folder
from hopforge.model.output.results import check_writable, command_words, staged, write_metadata, write_tables
from hopforge.model.router.configured import network_links
from hopforge.model.router.links import topology_hosts
from hopforge.model.router.params import RouterParams
from hopforge.model.router.q_table import QTableParams
from hopforge.sim.benches.lookup import lookup_replay
from hopforge.sim.benches.network_interface import InterfaceTraffic, disagreeing, network_interface_replay
from hopforge.sim.benches.node_reduction import node_reduction_bench
from hopforge.sim.benches.q_table import QTableTraffic, q_table_replay
from hopforge.sim.benches.routing_cache import routing_cache_bench
from hopforge.sim.cosim.lookup import engine_traffic
from hopforge.sim.cosim.prepared import engine_setup
from hopforge.sim.cosim.router import router_of
from hopforge.sim.drive.held_stimulus import held_stimulus
from hopforge.sim.drive.replay import Replay
from hopforge.sim.drive.router import router_replay
from hopforge.sim.drive.router_stimulus import router_stimulus
from hopforge.sim.drive.router_traffic import RouterTraffic
from hopforge.sim.drive.runner import SimulatorError, check_simulator, member_name
from hopforge.sim.drive.stimulus import Traffic, stimulus

BlockName = Literal["node_reduction", "routing_cache", "lookup", "router", "network_interface", "q_table"]
BLOCKS: tuple[BlockName, ...] = ("node_reduction", "routing_cache", "lookup")
"""The lookup engine and its blocks; the others are mutated each for itself."""
ROUTER: BlockName = "router"
INTERFACE: BlockName = "network_interface"
Q_TABLE: BlockName = "q_table"
SINGLE_BLOCKS = (ROUTER, INTERFACE, Q_TABLE)

State = Literal["killed", "equivalent", "survived"]
Progress = Callable[[str, int, int], None]
"""Called with (what is being done, mutants decided, mutants in all)."""

ENOUGH = 0.95
"""Share of the mutants with an effect that a good bench kills."""

_SHARES = {
    "node_reduction": 1,
    "routing_cache": 1,
    "lookup": 2,
    "router": 1,
    "network_interface": 1,
    "q_table": 1,
}  # of the mutants; the engine contains the others
_BUILD_TIMEOUT_S = 900
_PLAY_TIMEOUT_S = 300
_USED_CYCLES = 400

COUNT_FROM = 2**32 - 1024
"""What counters begin with after reset, in the netlist and in the golden model: they would need 2^31 events for bits
that are tested in no time when there are ones from the start and zeros after a clearing."""

_ENGINE_COUNT_FROM = 2**32 - 64
"""As `COUNT_FROM`, of a lookup engine by itself: some of its events are rare, and each must carry through all bits."""

_EVENTS = {r"count_\w+_high": COUNT_FROM >> 2}  # of hw.event_counter, whose two lowest bits are apart
_DROPS = {"drops": COUNT_FROM}  # of hw.input_ports


class Verdict(NamedTuple):
    """What became of one mutant.

    Attributes
    ----------
    config, block : str
        Which netlist.
    mutant : Mutant
        The fault.
    state : str
        ``killed``, ``equivalent`` (proved) or ``survived``.
    trace : int
        Trace that killed it, from 1; 0: none.
    cycle : int
        First cycle of that trace with a difference; -1: the simulation did not end.
    signal : str
        Port that differed there.
    """

    config: str
    block: BlockName
    mutant: Mutant
    state: State
    trace: int = 0
    cycle: int = 0
    signal: str = ""


class MutationReport(NamedTuple):
    """Everything that was found.

    Attributes
    ----------
    verdicts : tuple of Verdict
        One for each mutant.
    seed : int
        Of mutants and traces.
    seconds : float
        Wall-clock time.
    """

    verdicts: tuple[Verdict, ...]
    seed: int
    seconds: float

    @property
    def survivors(self) -> list[Verdict]:
        """Mutants that nothing noticed and that are not proved equivalent."""
        return [verdict for verdict in self.verdicts if verdict.state == "survived"]

    def summary(self) -> pd.DataFrame:
        """Return one row per block and one for all: mutants, killed, equivalent, survived, score.

        The score is killed / (mutants - equivalent); NaN without any mutant that has an effect.
        """
        rows = []
        for name in (*BLOCKS, *SINGLE_BLOCKS, "all"):
            states = [verdict.state for verdict in self.verdicts if name in {verdict.block, "all"}]
            if not states:
                continue
            killed, equivalent = states.count("killed"), states.count("equivalent")
            different = len(states) - equivalent
            rows.append({
                "block": name, "mutants": len(states), "killed": killed, "equivalent": equivalent,
                "survived": different - killed, "score": killed / different if different else float("nan"),
            })  # fmt: skip
        return pd.DataFrame(rows)

    def table(self) -> pd.DataFrame:
        """Return one row per mutant."""
        return pd.DataFrame(
            [
                {
                    "config": verdict.config, "block": verdict.block,
                    **{name: word for name, word in verdict.mutant._asdict().items() if name != "command"},
                    **{name: getattr(verdict, name) for name in ("state", "trace", "cycle", "signal")},
                }
                for verdict in self.verdicts
            ]
        )  # fmt: skip


class Subject(NamedTuple):
    """A block to be mutated.

    Attributes
    ----------
    block : str
        Which.
    component : Component
        Fresh.
    replays : list of callable
        Each makes one golden trace.
    used_cycles : int
        Cycles of the trace that are played, and not compared, before the reset: without them everything is as after
        reset by itself, and no trace shows a register that the reset forgets.
    spared : str
        Modules that other benches test, see `hopforge.gen.mutate.write_netlist`.
    used_masks : dict
        Inputs of which only these bits are driven in these cycles.
    reset : dict
        Registers that the golden model lets begin elsewhere, see `hopforge.gen.mutate.write_netlist`.
    """

    block: BlockName
    component: Component
    replays: list[Callable[[], Replay]]
    used_cycles: int = 0
    spared: str = ""
    reset: dict[str, int] = {}
    used_masks: dict[str, int] = {}


def mutate(
    configs: Sequence[Config],
    count: int,
    *,
    blocks: Sequence[BlockName] = BLOCKS,
    seed: int = 1,
    output: Path,
    proof_s: float = 25,
    progress: Progress | None = None,
) -> MutationReport:
    """Put faults into the lookup engines of `configs` and see which of them the benches notice.

    Parameters
    ----------
    configs : sequence of Config
        Each gives an engine; small ones are fast. Their names must differ.
    count : int
        Mutants in all; spread over blocks (the whole engine twice the others) and configurations.
    blocks : sequence of str
        Of `BLOCKS`.
    seed : int
        Of mutants and traces; the same seed gives the same result.
    output : Path
        Folder of everything: ``mutants.csv``, ``blocks.csv``, ``mutation.json``.
    proof_s : float
        Limit of a proof, in seconds.
    progress : callable, optional
        See `Progress`.

    Returns
    -------
    MutationReport

    Raises
    ------
    UserError
        If there are fewer mutants than netlists, the hardware cannot do what a configuration wants, or a tool fails.
    """
    check_simulator("verilator", cocotb=False)
    folder = output
    check_writable(folder)
    begin = time.perf_counter()
    parts = _split(count, [(config, block) for config in configs for block in blocks])
    verdicts: list[Verdict] = []
    for config, block, share in parts:
        place = folder / "work" / f"{config.name}_{block}"

        def report(step: str, done: int, before: int = len(verdicts), where: str = f"{config.name} {block}") -> None:
            if progress is not None:
                progress(f"{where}: {step}", before + done, count)

        found = judge(subject(config, block, seed), share, seed, place, config.name, proof_s=proof_s, report=report)
        verdicts += found
    result = MutationReport(tuple(verdicts), seed, time.perf_counter() - begin)
    with staged(folder) as scratch:
        write_tables(scratch, {"mutants": result.table(), "blocks": result.summary()})
        write_metadata(scratch, {
            "command": command_words(),
            "seed": seed, "seconds": round(result.seconds, 1), "configs": [config.name for config in configs],
            "blocks": result.summary().to_dict("records"),
            "survivors": [
                {"config": verdict.config, "block": verdict.block, **verdict.mutant._asdict()}
                for verdict in result.survivors
            ],
            "versions": tool_versions(),
        }, "mutation")  # fmt: skip
    return result


def block_names(name: str) -> tuple[BlockName, ...]:
    """Return the blocks that a name on the command line means.

    Raises
    ------
    UserError
        Listing what is possible.
    """
    if name == "all":
        return BLOCKS
    for block in (*BLOCKS, *SINGLE_BLOCKS):
        if name == block:
            return (block,)
    raise UserError(f"block must be one of {', '.join((*BLOCKS, *SINGLE_BLOCKS))} or all, not {name!r}")


def sample_seed(seed: int | None, commit: str | None) -> int:
    """Return the seed of a sample: as given, from the hash of a commit, or 1.

    A seed that follows from the commit that froze benches and operators is one that nobody has chosen.

    Raises
    ------
    UserError
        Both, or something that is no hash.

    Examples
    --------
    >>> sample_seed(None, "0000002a5dcb77e21e0c9c3a3f1d9d2b6a7c8e90")
    42
    """
    if commit is None:
        return 1 if seed is None else seed
    if seed is not None:
        raise UserError("--seed and --seed-from-commit exclude each other")
    if re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", commit) is None:
        raise UserError(
            f"--seed-from-commit must be the whole hash of a commit (40 or 64 hexadecimal digits), not {commit!r}"
        )
    return int(commit[:8], 16)


def enough(report: MutationReport) -> bool:
    """Return whether the share of killed mutants among all that have an effect is at least `ENOUGH`."""
    score = float(report.summary()["score"].iloc[-1])
    return not score < ENOUGH


def report_rows(report: MutationReport) -> Iterator[tuple[str, ...]]:
    """Yield the rows of `MutationReport.summary` as words."""
    for row in report.summary().to_dict("records"):
        score = "-" if np.isnan(row["score"]) else f"{100 * row['score']:.1f} %"
        yield (row["block"], *(str(row[name]) for name in ("mutants", "killed", "equivalent", "survived")), score)


def survivor_lines(report: MutationReport) -> Iterator[str]:
    """Yield a line for every survivor: where it is and what it does."""
    for verdict in report.survivors:
        mutant = verdict.mutant
        place = f"{mutant.cell}.{mutant.port}[{mutant.bit}]" + (f" ({mutant.wire})" if mutant.wire else "")
        where = f"{verdict.config} {verdict.block} {mutant.number}"
        yield f"survived: {where}: {mutant.mode} {place} {mutant.source}".rstrip()


def _split(count: int, parts: list[tuple[Config, BlockName]]) -> list[tuple[Config, BlockName, int]]:
    """Deal `count` mutants to the netlists according to their weights; each gets at least one."""
    if count < len(parts):
        raise UserError(f"count must be at least one mutant for each of the {len(parts)} netlists, not {count}")
    weights = np.array([_SHARES[block] for _, block in parts])
    ends = np.rint(np.cumsum(weights) * (count - len(parts)) / weights.sum()).astype(int)
    shares = np.diff(ends, prepend=0) + 1
    return [(config, block, int(share)) for (config, block), share in zip(parts, shares, strict=True)]


def subject(config: Config, block: BlockName, seed: int) -> Subject:
    """Return the block of the engine, or the router, that `config` describes, with the traces of its bench."""
    if block == ROUTER:
        return router_subject(router_of(config)[1], seed)
    if block == INTERFACE:
        return interface_subject(network_design(config), seed)
    if block == Q_TABLE:
        return q_table_subject(QTableParams.from_config(config), seed)
    params = engine_parameters(config)
    if block == "lookup":
        replays = [*_engine_traces(config, params, seed)]
        # Never enabled before the reset: the memories, which it does not clear, are then as at power-up.
        return Subject(
            block, lookup_engine(params=params), replays, _USED_CYCLES, reset=_event_counters(params),
            used_masks={"csr_wdata": 0xFFFFFFFE},
        )  # fmt: skip
    bench = node_reduction_bench if block == "node_reduction" else routing_cache_bench
    counts = [400, 4000, 20000]

    def trace(number: int, cycles: int) -> Replay:
        made = bench(params, cycles, np.random.default_rng([seed, number]))
        Fragment.get(made.component, None)  # only its trace is wanted, but Amaranth warns of what is never elaborated
        return made.replay

    made = [lambda number=number, cycles=cycles: trace(number, cycles) for number, cycles in enumerate(counts)]
    return Subject(block, bench(params, 2, np.random.default_rng(seed)).component, made)  # type: ignore[arg-type]


def router_subject(params: RouterParams, seed: int) -> Subject:
    """Return a router with traces of its bench, shortest first.

    With tables it is not enabled all the time in the second. In the last one nearly all packets are dropped, and nobody
    clears the counters.
    """
    traffic = [
        *(
            RouterTraffic(cycles=cycles, seed=100 * seed + n, count_from=COUNT_FROM)
            for n, cycles in enumerate((1000, 10_000, 60_000))
        ),
        RouterTraffic(
            cycles=60_000,
            seed=100 * seed + 3,
            unroutable=0.98,
            clear_cycles=1 << 30,
            longest_flits=1,
            count_from=COUNT_FROM,
        ),
    ]
    replays: list[Callable[[], Replay]] = [
        lambda one=one: router_replay(router_stimulus(params, one))  # type: ignore[misc]
        for one in traffic
    ]
    if params.rc == "table":
        held = RouterTraffic(cycles=3000, seed=100 * seed + 9, count_from=COUNT_FROM)
        replays.insert(1, lambda: router_replay(held_stimulus(params, held)))
    reset = _DROPS if params.rc == "table" else _EVENTS | _DROPS
    return Subject(ROUTER, Router(params=params), replays, _USED_CYCLES, reset=reset)


def interface_subject(design: NetworkDesign, seed: int) -> Subject:
    """Return what a network adds to its routers, with traces of its bench, shortest first."""
    design = disagreeing(design)
    replays: list[Callable[[], Replay]] = [
        partial(
            network_interface_replay, design,
            InterfaceTraffic(cycles=cycles, seed=100 * seed + n, load=load, count_from=COUNT_FROM),
        )
        for n, (cycles, load) in enumerate([(800, 0.2), (4000, 0.05), (12_000, 0.3)])
    ]  # fmt: skip
    component = Network(
        routers=design.params, links=network_links(design.config, design.topology),
        hosts=topology_hosts(design.topology),
    )  # fmt: skip
    return Subject(INTERFACE, component, replays, _USED_CYCLES, "router*.router*", _EVENTS | _DROPS)


def q_table_subject(params: QTableParams, seed: int) -> Subject:
    """Return a table of Q-adaptive with traces of its bench, shortest first."""
    shapes = [(600, 3, 0.8), (4000, 2, 0.8), (20_000, 8, 0.4), (20_000, 3, 1.0)]
    runs = [
        QTableTraffic(cycles=cycles, seed=100 * seed + n, places=places, queries=share, updates=share)
        for n, (cycles, places, share) in enumerate(shapes)
    ]
    replays: list[Callable[[], Replay]] = [partial(q_table_replay, params, traffic) for traffic in runs]
    return Subject(Q_TABLE, QTable(params=params), replays, _USED_CYCLES)


def _event_counters(params: LookupParams) -> dict[str, int]:
    """Return what the registers of an engine's counters begin with."""
    if not is_deep(params):
        return {name: _ENGINE_COUNT_FROM >> 2 for name in _EVENTS}
    return {rf"count_\w+_at{start}": _ENGINE_COUNT_FROM >> start & (1 << end - start) - 1 for start, end in slices()}


def _engine_traces(config: Config, params: LookupParams, seed: int) -> Iterator[Callable[[], Replay]]:
    """Yield traffic of different kinds, shortest first."""
    network = engine_traffic(config, 1000, seed).addresses
    # near the own address every key function and digit counts; many lookups between two changes of the configuration
    shapes = [(12, 48, 2000), (30, params.entries, 100), (60, 2 * params.entries, 300), (20, params.entries, 60)]
    near = [
        Traffic(
            lookups=4000, seed=seed + 10 + n, quiet_cycles=quiet, pool=pool, pool_lookups=often,
            locality=1.0, centres=2, count_from=_ENGINE_COUNT_FROM, thorough=True,
        )
        for n, (quiet, pool, often) in enumerate(3 * shapes)
    ]  # fmt: skip
    kinds = [
        Traffic(
            lookups=600,
            seed=seed,
            quiet_cycles=15,
            pool=3 * params.entries,
            addresses=network,
            count_from=_ENGINE_COUNT_FROM,
            thorough=True,
        ),
        *near,
        Traffic(
            lookups=2000,
            seed=seed + 1,
            count_from=_ENGINE_COUNT_FROM,
            thorough=True,
            quiet_cycles=4,
            pool=64,
            locality=1.0,
            link_failures=0.004,
        ),
    ]
    for number, traffic in enumerate(kinds):
        begin = engine_setup(config, params) if number == 0 else ()
        yield lambda traffic=traffic, begin=begin: lookup_replay(stimulus(params, traffic, begin))  # type: ignore[misc]


def judge(
    subject: Subject,
    count: int,
    seed: int,
    folder: Path,
    config: str,
    *,
    proof_s: float = 25,
    report: Callable[[str, int], None] | None = None,
) -> list[Verdict]:
    """Draw mutants of a block and find out what becomes of each; see `mutate`."""
    clear_folder(folder)
    netlist = write_netlist(subject.component, subject.block, folder, spared=subject.spared, reset=subject.reset)
    mutants = netlist.mutants(count, seed)
    return judge_mutants(subject, netlist, mutants, config, proof_s=proof_s, report=report)


def judge_mutants(
    subject: Subject,
    netlist: Netlist,
    mutants: Sequence[Mutant],
    config: str,
    *,
    proof_s: float = 25,
    report: Callable[[str, int], None] | None = None,
) -> list[Verdict]:
    """Play every trace to those of `mutants` that no trace before it has killed, then try to prove the rest equivalent.

    Parameters
    ----------
    subject : Subject
        Block and traces.
    netlist : Netlist
        Of its component.
    mutants : sequence of Mutant
        Numbered from 1.
    config : str
        Name of the configuration.
    proof_s : float
        Limit of a proof, in seconds; 0: try none.
    report : callable, optional
        Called with what is being done and how many mutants are decided.

    Raises
    ------
    SimulatorError
        If the netlist without a fault differs from the golden model, or cannot be built or run.
    """
    say = report or (lambda _step, _done: None)
    verdicts: dict[int, Verdict] = {}
    program: Path | None = None
    gates: dict[str, str] = {}
    for trace, make in enumerate(subject.replays, 1):
        left = [mutant.number for mutant in mutants if mutant.number not in verdicts]
        if not left:
            break
        say(f"trace {trace}", len(verdicts))
        replay = make()
        if program is None:
            program = _build(netlist, mutants, replay, subject.used_cycles, subject.used_masks)
            gates = {output.name: output.gate for output in replay.outputs if output.gate is not None}
        for number, cycle, signal in _play(program, replay, [0, *left]):
            if number == 0:
                where = f"trace {trace}, cycle {cycle}, {signal}"
                raise SimulatorError(f"{config} {subject.block}: differs without a fault: {where}")
            verdicts[number] = Verdict(config, subject.block, mutants[number - 1], "killed", trace, cycle, signal)
    for mutant in mutants:
        if mutant.number not in verdicts:
            say("proofs", len(verdicts))
            same = proof_s > 0 and netlist.has_no_effect(mutant, gates, timeout_s=proof_s)
            verdicts[mutant.number] = Verdict(
                config, subject.block, mutant, "equivalent" if same else "survived"
            )  # fmt: skip
    return [verdicts[mutant.number] for mutant in mutants]


def _build(
    netlist: Netlist,
    mutants: Sequence[Mutant],
    replay: Replay,
    used_cycles: int = 0,
    used_masks: Mapping[str, int] | None = None,
) -> Path:
    """Compile the netlist with all mutants and the loop that plays a trace to some of them."""
    folder = netlist.folder.resolve()
    netlist.verilog(mutants)
    (folder / "race.cpp").write_text(_race_source(netlist.top, replay, used_cycles, used_masks or {}))
    done = run_verilator(
        [
            "--cc", "--exe", "--build", "-j", "1", "-O3", "--x-assign", "fast", "-Wno-fatal", "-Wno-lint", "-Wno-style",
            "--no-assert", "-CFLAGS", "-O1", "--top-module", netlist.top, "mutants.sv", "race.cpp",
        ],
        folder, timeout_s=_BUILD_TIMEOUT_S,
    )  # fmt: skip
    (folder / "build.log").write_text(done.stdout)
    program = folder / "obj_dir" / f"V{netlist.top}"
    if done.returncode != 0 or not program.exists():
        raise SimulatorError(f"verilator could not build the mutants of {netlist.top}: see {folder / 'build.log'}")
    return program


def _play(program: Path, replay: Replay, numbers: Sequence[int]) -> Iterator[tuple[int, int, str]]:
    """Yield (mutant, cycle, port) of those that differ from `replay`; cycle -1 if the simulation did not end."""
    rows = program.with_name("trace.bin")
    rows.write_bytes(np.hstack([replay.driven, replay.expected]).tobytes())
    left = list(numbers)
    while left:
        done: set[int] = set()
        output: str | bytes = b""
        try:
            output = subprocess.run(
                [str(program), str(rows), *map(str, left)], capture_output=True, timeout=_PLAY_TIMEOUT_S, check=False
            ).stdout
        except subprocess.TimeoutExpired as late:
            output = late.stdout or b""
        text = output.decode() if isinstance(output, bytes) else output
        for number, cycle, signal in re.findall(r"^(\d+) (\d+) (\S+)$", text, re.MULTILINE):  # nothing of Verilator's
            done.add(int(number))
            if signal != "-":
                yield int(number), int(cycle), signal
        left = [number for number in left if number not in done]
        if left:  # the simulator ended, or did not end, at the next one: its loops do not settle
            yield left[0], -1, "none"
            left = left[1:]


def _race_source(top: str, replay: Replay, used_cycles: int, used_masks: Mapping[str, int]) -> str:
    """Return the C++ loop: the file of a trace and numbers of mutants as arguments, a line for each to stdout."""
    inputs, outputs = len(replay.inputs), len(replay.outputs)
    sets = "\n".join(
        f"            top->{member_name(name)} = row[{index}];" for index, name in enumerate(replay.inputs)
    )
    uses = "\n".join(
        f"            top->{member_name(name)} = row[{index}]"
        + (f" & {used_masks[name]}ull;" if name in used_masks else ";")
        for index, name in enumerate(replay.inputs)
    )
    gets = "\n".join(
        f"            got[{index}] = top->{member_name(output.name)};" for index, output in enumerate(replay.outputs)
    )
    names = ", ".join(f'"{output.name}"' for output in replay.outputs)
    gates = ", ".join(map(str, replay.gates))
    tick = "top->clk = 1; top->eval(); top->clk = 0;" if replay.clocked else ""
    zeros = " ".join(f"top->{member_name(name)} = 0;" for name in replay.inputs)
    reset = f"{zeros} top->rst = 1; for (int i = 0; i < 2; i++) {{ top->eval(); {tick} }} top->rst = 0;"
    return f"""\
// Plays a recorded replay to several mutants; each ends at the first difference. Prints: mutant, cycle, port or "-".
#include "V{top}.h"
#include "verilated.h"
#include <algorithm>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

static const char *const names[] = {{{names}}};
static const int gates[] = {{{gates}}};
static const size_t width = {inputs + outputs};

int main(int argc, char **argv) {{
    std::vector<uint64_t> trace;
    FILE *const file = fopen(argv[1], "rb");
    if (!file) return 2;
    uint64_t block[width];
    while (fread(block, sizeof block, 1, file) == 1) trace.insert(trace.end(), block, block + width);
    fclose(file);
    for (int argument = 2; argument < argc; argument++) {{
        const auto context = std::make_unique<VerilatedContext>();
        const auto top = std::make_unique<V{top}>(context.get());
        top->{SELECTOR} = atoi(argv[argument]);
        uint64_t got[{outputs}];
        uint64_t cycle = 0;
        int signal = -1;
        const uint64_t *const used = trace.data() + std::min<size_t>(trace.size(), width * {used_cycles});
        for (const uint64_t *row = trace.data(); row < used; row += width) {{
{uses}
            top->eval();
            {tick}
        }}
        {reset if replay.clocked else ""}
        for (const uint64_t *row = trace.data(); row < trace.data() + trace.size(); row += width) {{
{sets}
            top->eval();
{gets}
            const uint64_t *const want = row + {inputs};
            for (int i = 0; i < {outputs} && cycle >= {replay.settle_cycles}; i++) {{
                if (got[i] == want[i] || (gates[i] >= 0 && !want[gates[i]])) continue;
                signal = i;
                break;
            }}
            if (signal >= 0) break;
            {tick}
            cycle++;
        }}
        top->final();
        printf("%s %" PRIu64 " %s\\n", argv[argument], cycle, signal < 0 ? "-" : names[signal]);
        fflush(stdout);
    }}
    return 0;
}}
"""
