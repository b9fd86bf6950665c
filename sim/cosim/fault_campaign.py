"""Faults in the lines of a lookup engine, one after another, and what becomes of each: `hopforge cosim --faults`."""

import random
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from hopforge.gen.verilog.writer import to_verilog
from hopforge.model.config import Config
from hopforge.model.lookup.csr import csr_map
from hopforge.model.lookup.golden.build import golden_engine
from hopforge.model.lookup.golden.cache import ReadLines
from hopforge.model.lookup.golden.line import Line
from hopforge.model.lookup.golden.ports import LookupInputs, LookupOutputs
from hopforge.model.lookup.params import LookupParams
from hopforge.sim.benches.lookup import engine_replay
from hopforge.sim.cosim.faulty_memory import FaultyEngine
from hopforge.sim.cosim.prepared import prepare_engine
from hopforge.sim.cosim.run import chosen_simulator, play, report_in
from hopforge.sim.drive.replay import Progress, ReplayResult
from hopforge.sim.drive.runner import SimulatorName

__all__ = ["FAULT_PORTS", "FaultReport", "FaultyTraffic", "cosim_faults"]

FAULT_PORTS = ("fault", "fault_row", "fault_way", "fault_bit")
FATES = ("detected", "corrected", "wrong", "harmless", "unread")
"""What becomes of a fault (docs/guides/cosimulate.md, *Faults in lines*)."""

_BEFORE = (8, 40)
"""Cycles of traffic before a fault, from and to."""
_WINDOW = 60
_AFTER = 12
"""Cycles in which what has read the line before it was written leaves the engine."""
_NEAR = 0.6
"""Share of the requests that go to the row of the fault."""


@dataclass(frozen=True)
class FaultReport:
    """What became of the faults.

    Attributes
    ----------
    params : LookupParams
        The engine.
    sites, faults : int
        Bits that a fault can strike, and faults.
    fates : dict
        Number of faults of each of `FATES`.
    wrong_answers, cycles : int
        Responses that were wrong; cycles of the run.
    result : ReplayResult or None
        Of the Verilog with the same faults; None: golden engine alone.
    simulator : str
        Which ran it.
    seconds : float
        Wall-clock time.
    """

    params: LookupParams
    sites: int
    faults: int
    fates: dict[str, int]
    wrong_answers: int
    cycles: int
    result: ReplayResult | None
    simulator: SimulatorName
    seconds: float

    @property
    def passed(self) -> bool:
        """Whether no fault led to a wrong answer, each that was read was found, and Verilog and golden are equal."""
        missed = self.fates["wrong"] + (self.fates["harmless"] if self.params.protection else 0)
        return missed == 0 and not self.wrong_answers and (self.result is None or self.result.mismatches == 0)

    def rows(self) -> Iterator[tuple[str, str]]:
        """Return the report as (subject, words) for a table."""
        p = self.params
        lines = f"{p.sets} rows, {p.ways} ways, depth {p.pipeline_depth}, protection {p.protection or 'none'}"
        yield "engine", lines
        yield "faults", f"{self.faults} single bits of {self.sites} in the lines, each in turn"
        yield "fates", ", ".join(f"{self.fates[fate]} {fate}" for fate in FATES)
        yield "wrong answers", str(self.wrong_answers)
        if self.result is None:
            yield "cycles", f"{self.cycles}, golden engine alone: two lines of a key may answer without protection"
        else:
            yield "cycles", f"{self.cycles}, every output of the Verilog on {self.simulator} compared in each"
            first = self.result.first
            yield "mismatches", "0" if first is None else f"{self.result.mismatches} cycles; first {first}"
        yield "time", f"{self.seconds:.1f} s"


class FaultyTraffic:
    """A golden engine among requests and a TCAM that always says the same; everything is recorded.

    Parameters
    ----------
    params : LookupParams
        The engine, with the TCAM outside.
    rng : random.Random
        For everything random.
    """

    def __init__(self, params: LookupParams, rng: random.Random) -> None:
        self.params, self.rng = params, rng
        self.engine = golden_engine(params)
        self.map = csr_map(params)
        self.inputs: list[tuple[int, ...]] = []
        self.outputs: list[LookupOutputs] = []
        self.wrong_answers = 0
        self.read = False  # the line of the fault
        self._answers: dict[int, tuple[int, int]] = {}
        self._by_row: dict[int, list[int]] = {}
        self._tags = list(range(min(64, 1 << params.request_tag_bits)))
        self._asked: dict[int, int] = {}
        self._request: tuple[int, int] | None = None
        self._asking: list[tuple[int, int]] = []
        self._script: list[tuple[str, int]] = [("CTRL", 1)]
        self._struck: tuple[int, int, Line] | None = None
        self._watch()
        self._choose_destinations()

    def _choose_destinations(self) -> None:
        """Draw destinations until each row has more than a line for each way."""
        wanted = self.params.sets * (self.params.ways + 2)
        while len(self._answers) < min(wanted, 1 << self.params.address_bits):
            dst = self.rng.getrandbits(self.params.address_bits)
            match = int(self.rng.random() < 0.95)
            self._answers[dst] = match, match * self.rng.getrandbits(self.params.output_bits)
            for row in self.engine.rows_of(dst):
                self._by_row.setdefault(row, []).append(dst)
        self._all = list(self._answers)

    def _watch(self) -> None:
        """See whether the line of the fault is looked at."""
        cache = self.engine.cache
        for name in ("lookup", "touch", "invalidate", "scrub"):
            setattr(cache, name, self._watched(getattr(cache, name)))

    def _watched(self, method):  # type: ignore[no-untyped-def]
        def call(found: ReadLines, *others: int):  # type: ignore[no-untyped-def]
            if self._struck is not None:
                row, way, line = self._struck
                self.read |= found.rows[way] == row and found.lines[way] is line
            return method(found, *others)

        return call

    @property
    def carried(self) -> bool:
        """Whether the line of the fault is as the fault has left it."""
        assert self._struck is not None
        row, way, line = self._struck
        return self.engine.cache.at(row, way) is line

    def run(self, cycles: int, row: int) -> None:
        """Let traffic go on, most of it about `row`."""
        for _ in range(cycles):
            self.step(row)

    def step(self, row: int, fault: tuple[int, int, int] | None = None) -> None:
        """Make one cycle; `fault`: (row, way, bit) that is inverted at its end."""
        inputs = self._next_inputs(row)
        outputs = self.engine.step(inputs)
        self.inputs.append((*inputs, *((0, 0, 0, 0) if fault is None else (1, *fault))))
        self.outputs.append(outputs)
        if fault is not None:
            self.engine.flip(*fault)
        self._observe(inputs, outputs)

    def strike(self, row: int, way: int, bit: int) -> None:
        """Invert a bit, and watch its line from now on."""
        self.step(row, (row, way, bit))
        self.read = False
        self._struck = row, way, self.engine.cache.at(row, way)

    def _next_inputs(self, row: int) -> LookupInputs:
        rng, values = self.rng, {"resp_ready": int(self.rng.random() < 0.9), "tcam_req_ready": 1}
        if self._request is None and self._tags and rng.random() < 0.8:
            near = self._by_row.get(row)
            dst = rng.choice(near if near and rng.random() < _NEAR else self._all)
            self._request = dst, self._tags.pop(0)
        if self._request is not None:
            values |= {"req_valid": 1, "req_dst": self._request[0], "req_tag": self._request[1]}
        if not self._script and rng.random() < 0.01:
            self._script += self._command(row)
        if self._script:
            name, word = self._script.pop(0)
            values |= {"csr_we": 1, "csr_addr": self.map[name].address, "csr_wdata": word}
        elif rng.random() < 0.2:
            values |= {"csr_re": 1, "csr_addr": rng.choice(self.map.registers).address}
        if self._asking and rng.random() < 0.5:
            number, dst = self._asking.pop(rng.randrange(len(self._asking)))
            match, output = self._answers[dst]
            values |= {
                "tcam_resp_valid": 1, "tcam_resp_id": number, "tcam_resp_match": match, "tcam_resp_output": output,
            }  # fmt: skip
        return LookupInputs(**values)

    def _command(self, row: int) -> list[tuple[str, int]]:
        """Return what software writes: mostly an invalidation, seldom a flush."""
        if self.rng.random() < 0.2:
            return [("CTRL", 3)]
        dst = self.rng.choice(self._by_row.get(row, self._all))
        high = [("INVALIDATE_HI", dst >> 32)] if "INVALIDATE_HI" in self.map else []
        return [*high, ("INVALIDATE_LO", dst & 0xFFFF_FFFF)]

    def _observe(self, inputs: LookupInputs, outputs: LookupOutputs) -> None:
        if inputs.req_valid and outputs.req_ready:
            assert self._request is not None
            self._asked[self._request[1]] = self._request[0]
            self._request = None
        if outputs.tcam_req_valid:
            self._asking.append((outputs.tcam_req_id, outputs.tcam_req_dst))
        if outputs.resp_valid and inputs.resp_ready:
            right = self._answers[self._asked.pop(outputs.resp_tag)]
            self.wrong_answers += (outputs.resp_match, outputs.resp_output) != right
            self._tags.append(outputs.resp_tag)


def _fate(traffic: FaultyTraffic, site: tuple[int, int, int]) -> str:
    """Strike a bit and return what becomes of it; the bit is then as it was."""
    row, counters = site[0], traffic.engine.counters
    traffic.run(traffic.rng.randint(*_BEFORE), row)
    before, wrong = dict(counters), traffic.wrong_answers
    traffic.strike(*site)
    for _ in range(_WINDOW):
        traffic.step(row)
        if not traffic.carried:
            break
    if traffic.carried:
        traffic.step(row, site)  # the bit is inverted back
    traffic.run(_AFTER, row)
    counters = traffic.engine.counters
    if traffic.wrong_answers > wrong:
        return "wrong"
    for counter, fate in (("line_errors", "detected"), ("line_repairs", "corrected")):
        if counters.get(counter, 0) > before.get(counter, 0):
            return fate
    return "harmless" if traffic.read else "unread"


def cosim_faults(
    config: Config,
    faults: int,
    *,
    simulator: SimulatorName | None = None,
    seed: int | None = None,
    output: Path,
    progress: Progress | None = None,
) -> FaultReport:
    """Invert bits in the lines of the configured engine, one after another, under random traffic.

    Every bit that means something is struck once before one is struck again. Keys are whole addresses, the TCAM is
    outside. With protection the generated engine runs with the same faults, every output compared in every cycle.

    Parameters
    ----------
    config : Config
        Address and lookup sections give the engine.
    faults : int
        How many.
    simulator, seed, output, progress
        As for `hopforge.sim.cosim.lookup.cosim`; progress counts faults.

    Raises
    ------
    UserError
        If the hardware cannot do what the configuration wants, or a tool is missing or fails.
    """
    simulator = chosen_simulator(config, simulator)
    params = replace(prepare_engine(config)[0], tcam_kind="external", functions=("arbitrary",), expression=None)
    start = time.perf_counter()
    rng = random.Random(config.seed if seed is None else seed)
    with report_in(output, config, "faults.json") as facts:
        traffic = FaultyTraffic(params, rng)
        traffic.run(_BEFORE[1] + 4 * params.entries, 0)
        fates = Counter(dict.fromkeys(FATES, 0))
        sites: list[tuple[int, int, int]] = []
        bits = traffic.engine.cache.words.used_bits
        for number in range(faults):
            if not sites:
                sites = [(row, way, bit) for row in range(params.sets) for way in range(params.ways) for bit in bits]
                rng.shuffle(sites)
            fates[_fate(traffic, sites.pop())] += 1
            if progress is not None:
                progress(number + 1, faults)
        result = None
        if params.protection is not None:
            columns = np.array([[_signed(word) for word in row] for row in traffic.inputs], np.int64)
            expected = np.array([[_signed(word) for word in row] for row in traffic.outputs], np.int64)
            replay = engine_replay(params, columns, expected, FAULT_PORTS)
            verilog = to_verilog(FaultyEngine(params), "faulty_engine")
            result = play(simulator, verilog, "faulty_engine", replay, output / simulator).result
        report = FaultReport(
            params, params.entries * len(bits), faults, dict(fates), traffic.wrong_answers, len(traffic.inputs), result,
            simulator, time.perf_counter() - start,
        )  # fmt: skip
        facts.update(dict(report.rows()) | {"fates": report.fates, "wrong_answers": report.wrong_answers})
    return report


def _signed(word: int) -> int:
    return int(word) - (1 << 64) if int(word) >> 63 else int(word)


