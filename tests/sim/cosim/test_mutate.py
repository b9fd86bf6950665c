import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from amaranth.hdl import Const, Module, Mux
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import Component, In, Out
from typer.testing import CliRunner

import hopforge
from hopforge.cli import app
from hopforge.gen.mutation.mutate import Mutant, Netlist, _always_read, write_netlist
from hopforge.hw.parts.event_counter import event_counter
from hopforge.hw.parts.sliced_counter import slices
from hopforge.model.config import load_config
from hopforge.model.errors import UserError
from hopforge.sim.cosim import mutate as mutate_module
from hopforge.sim.cosim import mutation_race, mutation_verdicts
from hopforge.sim.cosim.mutate import block_names, mutate, sample_seed
from hopforge.sim.cosim.mutation_kept import keeper
from hopforge.sim.cosim.mutation_race import Surroundings, Use, _race_source, build, play
from hopforge.sim.cosim.mutation_report import (
    BLOCKS,
    MutationReport,
    Verdict,
    enough,
    report_rows,
    survivor_lines,
)
from hopforge.sim.cosim.mutation_subjects import Subject, counts, each_carry, subject
from hopforge.sim.cosim.mutation_verdicts import judge_mutants
from hopforge.sim.cosim.poked_counters import CounterBits, counter_bits
from hopforge.sim.drive.replay import Output, Replay, as_words
from hopforge.sim.drive.runner import SimulatorError

CONFIGS = Path(__file__).parents[3] / "configs" / "mutation"


class Adder(Component):
    """Adds up what is marked; the sum means something only while it is asked for."""

    def __init__(self) -> None:
        super().__init__({"add": In(1), "word": In(4), "ask": In(1), "valid": Out(1), "output": Out(4)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        with m.If(self.add):
            m.d.sync += self.output.eq(self.output + self.word)
        m.d.comb += self.valid.eq(self.ask)
        return m


class Names(Component):
    """A table that yosys keeps as a memory without a clock."""

    def __init__(self) -> None:
        super().__init__({"number": In(4), "name": Out(7)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        with m.Switch(self.number):
            for number in range(16):
                with m.Case(number):
                    m.d.comb += self.name.eq(number * number * 11 % 128)
        return m


def adder_replay(words: list[int], asked: bool = True) -> Replay:
    total, rows, expected = 0, [], []
    for word in words:
        rows.append([1, word, int(asked)])
        expected.append([int(asked), total % 16])
        total += word
    return Replay(
        ("add", "word", "ask"), (Output("valid"), Output("output", "valid")), np.array(rows, np.uint64),
        np.array(expected, np.uint64),
    )  # fmt: skip


def cells_of(netlist: Netlist) -> dict[str, str]:
    """Cells by their type."""
    text = (netlist.folder / "netlist.il").read_text()
    return {line.split()[1]: line.split()[2] for line in text.splitlines() if line.startswith("  cell ")}


def numbered(netlist: Netlist, *commands: str) -> list[Mutant]:
    return [netlist.by_hand(command)._replace(number=number) for number, command in enumerate(commands, 1)]


def test_a_memory_without_a_clock_is_always_read(tmp_path: Path) -> None:
    """Yosys ends with an assertion of its own if its enable is not 1."""
    netlist = write_netlist(Names(), "names", tmp_path)
    assert "$mem_v2" in cells_of(netlist)
    mutants = netlist.mutants(500, 1)
    assert '-port RD_EN' in (tmp_path / "list.txt").read_text().replace("\\", "")
    assert {mutant.port for mutant in mutants} == {"RD_ADDR", "RD_DATA"}
    assert "names" in netlist.verilog(mutants)


class ManyReaders(Component):
    """Words of a memory without a clock, read through 32 ports."""

    def __init__(self) -> None:
        super().__init__({"numbers": In(2).array(32), "words": Out(3).array(32)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.memory = memory = Memory(shape=3, depth=4, init=[5, 1, 6, 2])
        for number, word in zip(self.numbers, self.words, strict=True):
            port = memory.read_port(domain="comb")
            m.d.comb += [port.addr.eq(number), word.eq(port.data)]
        return m


def test_a_memory_of_32_ports_without_a_clock(tmp_path: Path) -> None:
    """Yosys writes 32 bits as a decimal number."""
    write_netlist(ManyReaders(), "readers", tmp_path)
    text = (tmp_path / "netlist.il").read_text()
    assert "RD_CLK_ENABLE 0\n" in text
    assert _always_read(text) == {"memory"}


def test_mutants_made_by_hand(tmp_path: Path) -> None:
    netlist = write_netlist(Adder(), "adder", tmp_path)
    assert netlist.inputs == (("add", 1), ("word", 4), ("ask", 1))
    assert netlist.outputs == (("valid", 1), ("output", 4))
    cell = f"-module adder -cell {cells_of(netlist)['$add']}"
    mutants = numbered(
        netlist,
        f"-mode const0 {cell} -port A -portbit 1",  # killed by the first trace
        f"-mode const0 {cell} -port B -portbit 3",  # only words with bit 3 show it; which operand has them is not said
        f"-mode const0 {cell} -port A -portbit 3",
    )
    small, large = adder_replay([1, 2, 1, 2, 0]), adder_replay([8, 8, 8, 0])
    subject = Subject("lookup", Adder(), [lambda: small, lambda: large])
    verdicts = judge_mutants(subject, netlist, mutants, "hand", proof_s=20)
    assert [verdict.state for verdict in verdicts] == ["killed", "killed", "killed"]
    assert verdicts[0].trace == 1
    assert max(verdict.trace for verdict in verdicts) == 2
    assert {verdict.signal for verdict in verdicts} == {"output"}


def test_only_a_mutant_that_does_not_end_is_killed_by_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others may wait for a busy machine, and all together may take longer than the limit of one."""
    program = tmp_path / "program"
    program.write_text(
        "#!/bin/sh\nshift 2\nfor n; do sleep 0.4; while [ $n = 3 ]; do :; done; echo $n 5 -; done\n"
    )
    program.chmod(0o755)
    monkeypatch.setattr(mutation_race, "_PLAY_TIMEOUT_S", 1)
    assert list(play(program, adder_replay([1]), [0, 1, 2, 3, 4, 5])) == [(3, -1, "none")]


def test_a_stopped_test_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A trace that has ended is not played again, a proof not tried again; nothing is built if all is kept."""
    config = load_config(CONFIGS / "torus.yml", hardware=True)
    netlist = write_netlist(Adder(), "adder", tmp_path / "work")
    cell = f"-module adder -cell {cells_of(netlist)['$add']}"
    # the first trace kills the first; no trace asks for what the third does
    mutants = numbered(netlist, *[f"-mode const0 {cell} -port {port}" for port in ("A -portbit 1", "B -portbit 2")])
    mutants += [mutants[1]._replace(number=3, command=f"-mode const0 {cell} -port B -portbit 3")]
    traces = [lambda: adder_replay([1, 2, 1, 2, 0]), lambda: adder_replay([4, 4, 4, 0])]
    played: list[list[int]] = []
    told: list[str] = []

    def watched(program: Path, replay: Replay, numbers: list[int], counts_from: None) -> Iterator[tuple[int, int, str]]:
        played.append(numbers)
        return play(program, replay, numbers, counts_from)

    monkeypatch.setattr(mutation_verdicts, "play", watched)

    def judged(seed: int = 1, *more: Callable[[], Replay]) -> list[tuple[str, int]]:
        keep = keeper(
            config, "lookup", count=3, seed=seed, proof_s=20, store=tmp_path / "runs", tell=told.append
        )  # fmt: skip
        subject = Subject("lookup", Adder(), [*traces, *more])
        found = judge_mutants(subject, netlist, mutants, "hand", proof_s=20, keep=keep)
        return [(verdict.state, verdict.trace) for verdict in found]

    def stop() -> Replay:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        judged(1, stop)
    assert played == [[0, 1, 2, 3], [0, 2, 3]]
    played.clear()
    expected = [("killed", 1), ("killed", 2), ("killed", 3)]
    assert judged(1, lambda: adder_replay([8, 8, 8, 0])) == expected
    assert played == [[0, 3]]
    monkeypatch.setattr(mutation_verdicts, "build", None)
    assert judged(1, stop) == expected
    assert told == []
    with pytest.raises(TypeError):  # what another seed has drawn is not taken
        judged(2)
    assert told == ["1 of 1 steps computed again: the configuration changed (seed)"]


def test_an_interrupted_command_says_what_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def judge(*_words: object, report: Callable[[str, int], None], **_more: object) -> None:
        report("trace 1", 0)
        report("trace 2", 5)
        raise KeyboardInterrupt

    monkeypatch.setattr(mutate_module, "judge", judge)
    words = ["mutate", str(CONFIGS / "torus.yml"), "--block", "node_reduction", "--count", "9", "-o", str(tmp_path)]
    ran = CliRunner().invoke(app, words)
    assert ran.exit_code == 130
    assert f"hopforge: 5 of 9 mutants are decided and kept in {tmp_path}; the same command goes on" in ran.stderr


@pytest.mark.study
def test_weak_stimulus_lets_a_mutant_survive_and_is_no_proof(tmp_path: Path) -> None:
    netlist = write_netlist(Adder(), "adder", tmp_path)
    mutants = numbered(netlist, f"-mode inv -module adder -cell {cells_of(netlist)['$add']} -port Y -portbit 0")
    subject = Subject("lookup", Adder(), [lambda: adder_replay([1, 2, 3], asked=False)])
    (verdict,) = judge_mutants(subject, netlist, mutants, "hand", proof_s=20)
    assert (verdict.state, verdict.trace) == ("survived", 0)


class Counted(Component):
    """Counts; its register is reset."""

    def __init__(self) -> None:
        super().__init__({"ask": In(1), "count": Out(3)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        with m.If(self.ask):
            m.d.sync += self.count.eq(self.count + 1)
        return m


@pytest.mark.study
def test_a_register_without_reset_shows_after_some_use(tmp_path: Path) -> None:
    netlist = write_netlist(Counted(), "counted", tmp_path)
    register = next(name for kind, name in cells_of(netlist).items() if kind.startswith("$sdff"))
    fault = numbered(netlist, f"-mode const0 -module counted -cell {register} -port SRST -portbit 0")
    replay = Replay(("ask",), (Output("count"),), as_words([[1]] * 4), as_words([[k] for k in range(4)]))
    for used, state in ((0, "survived"), (3, "killed")):
        (verdict,) = judge_mutants(Subject("lookup", Counted(), [lambda: replay], used), netlist, fault, "x", proof_s=0)
        assert verdict.state == state


def test_a_register_without_reset_shows_after_a_reset_in_the_middle_of_work(tmp_path: Path) -> None:
    netlist = write_netlist(Counted(), "counted", tmp_path)
    register = next(name for kind, name in cells_of(netlist).items() if kind.startswith("$sdff"))
    fault = numbered(netlist, f"-mode const0 -module counted -cell {register} -port SRST -portbit 0")
    replay = Replay(("ask",), (Output("count"),), as_words([[1]] * 4), as_words([[k] for k in range(4)]))
    uses = (Use(0, 2, 1), Use(1, 9, 2))  # the second is longer than the trace
    around = Subject("lookup", Counted(), [lambda: replay], uses=uses)
    (verdict,) = judge_mutants(around, netlist, fault, "x", proof_s=0)
    assert (verdict.state, verdict.cycle) == ("killed", 0)


class EventsCounted(Component):
    """Counts with a counter of the hardware."""

    def __init__(self) -> None:
        super().__init__({"ask": In(1), "count": Out(32)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.comb += self.count.eq(event_counter(m, "asks", self.ask, Const(0, 1)))
        return m


@pytest.mark.study
def test_counters_begin_before_a_carry(tmp_path: Path) -> None:
    netlist = write_netlist(EventsCounted(), "counting", tmp_path)
    first = 0x5A0FFFFD
    replays = [
        lambda begin=begin: Replay(  # type: ignore[misc]
            ("ask",), (Output("count"),), as_words([[1]] * 9), as_words([[begin + k] for k in range(9)])
        )
        for begin in (0, first)
    ]
    add = next(
        line.split()[2]
        for line in (tmp_path / "netlist.il").read_text().splitlines()
        if line.startswith("  cell $add ") or line.startswith("  cell $alu ")
    )
    fault = numbered(netlist, f"-mode const0 -module counting -cell {add} -port A -portbit 17")
    around = Subject("lookup", EventsCounted(), replays, counts_from=(None, first))
    (verdict,) = judge_mutants(around, netlist, fault, "x", proof_s=0)
    assert (verdict.state, verdict.trace) == ("killed", 2)


@pytest.mark.study
def test_counters_whose_registers_are_mutated_begin_before_a_carry(tmp_path: Path) -> None:
    """Every mutant behind a register at once: without a fault the trace is the golden one all the same."""
    netlist = write_netlist(EventsCounted(), "counting", tmp_path)
    first = 0x5A0FFFFD
    replay = Replay(
        ("ask",), (Output("count"),), as_words([[1]] * 9), as_words([[first + k] for k in range(9)])
    )  # fmt: skip
    drawn = [mutant for mutant in netlist.mutants(600, 1) if mutant.port == "Q"]
    faults = [mutant._replace(number=number) for number, mutant in enumerate(drawn, 1)]
    program = build(netlist, faults, replay, Surroundings())
    assert len(faults) > 30
    assert [*play(program, replay, [0], first)] == []
    late = [number for number, cycle, _ in play(program, replay, [fault.number for fault in faults], first)]
    assert len(late) > 10


SLICED = "".join(
    f"  reg [{end - start - 1}:0] \\a.count_hits_at{start}  = {end - start}'h0;\n" for start, end in slices()
)


def test_registers_of_counters_are_found() -> None:
    text = (
        f"  reg [3:0] \\a.count_hits_low  = 4'h0;\n{SLICED}  reg [1:0] \\count_x_low  = 2'h0;\n"
        "  reg [29:0] count_x_high = 30'h0;\n  reg \\count_x_carry  = 1'h0;\n"
        "  wire [31:0] port__0__drops;\n  reg [31:0] \\a.drops_counted  = 32'd0;\n"
    )
    assert counter_bits(text) == sorted([
        CounterBits("a.count_hits_low", 0, 4, 0),
        *(CounterBits(f"a.count_hits_at{start}", 0, end - start, start) for start, end in slices()),
        CounterBits("count_x_low", 0, 2, 0), CounterBits("count_x_high", 0, 30, 2),
        CounterBits("a.drops_counted", 0, 32, 0),
    ])  # fmt: skip


@pytest.mark.parametrize(
    ("text", "counter", "bit"),
    [
        ("  wire [31:0] \\a.drops_counted ;\n  assign \\a.drops_counted  = b + c;\n", "a.drops_counted", 0),
        ("  reg [1:0] count_x_low;\n  reg [28:0] count_x_high;\n", "count_x", 31),
        ("  reg [1:0] count_x_low;\n  wire [29:0] count_x_high;\n  reg [28:0] r;\n"
         "  assign count_x_high[6:0] = r[6:0];\n  assign count_x_high[29:8] = r[28:7];\n", "count_x", 9),
        (f"{SLICED}", "a.count_hits", 0),
    ],
)  # fmt: skip
def test_a_counter_without_a_register_is_told(text: str, counter: str, bit: int) -> None:
    """What begins elsewhere in the golden model only would hide a hole of the bench."""
    with pytest.raises(SimulatorError, match=f"counter {counter}: no register holds bit {bit}, so that"):
        counter_bits(text)


def test_counts_begin_before_a_carry() -> None:
    starts = counts(7, 40, 5)
    assert starts[0] == 5 and counts(7, 40, 5) == starts != counts(8, 40, 5)
    for start in starts[1:]:
        above = start + 12  # within twelve events there is a carry into a bit with a zero above the carried one
        assert 0 <= start < 1 << 32 and (start ^ above) & above


def test_each_bit_is_carried_into() -> None:
    starts = each_carry(7)
    assert len(starts) == 30 and starts == each_carry(7) != each_carry(8)
    for bit, start in enumerate(starts, 2):
        assert (start + 3) >> bit == (start >> bit) + 1  # within three events
        assert start >> bit & 1 == 0


class Gated(Component):
    """Its output is b while it means nothing."""

    def __init__(self) -> None:
        super().__init__({"ask": In(1), "a": In(2), "b": In(2), "valid": Out(1), "output": Out(2)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.comb += [self.valid.eq(self.ask), self.output.eq(Mux(self.ask, self.a, self.b))]
        return m


def test_what_means_nothing_may_differ(tmp_path: Path) -> None:
    netlist = write_netlist(Gated(), "gated", tmp_path)
    mux = f"-mode inv -module gated -cell {cells_of(netlist)['$mux']} -portbit 1"
    faults = [netlist.by_hand(f"{mux} -port {port}") for port in "AB"]
    assert [netlist.has_no_effect(fault, {"output": "valid"}, timeout_s=20) for fault in faults] == [True, False]
    assert [netlist.has_no_effect(fault, {}, timeout_s=20) for fault in faults] == [False, False]


class Doubled(Component):
    """Has a redundant term: a & (a | b) is a."""

    def __init__(self) -> None:
        super().__init__({"a": In(1), "b": In(1), "y": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.sync += self.y.eq(self.a & (self.a | self.b))
        return m


def test_equivalent_mutant_is_recognised(tmp_path: Path) -> None:
    netlist = write_netlist(Doubled(), "doubled", tmp_path)
    cells = f"-module doubled -cell {cells_of(netlist)['$or']}"
    without_b = [f"-mode {mode} {cells} -port {port} -portbit 0" for mode in ("const0", "inv") for port in "AB"]
    found = [netlist.has_no_effect(netlist.by_hand(command), {}, timeout_s=20) for command in without_b]
    # one of the operands is b: forced to 0 or inverted, y stays a; the same faults of a show
    assert sorted(found[:2]) == [False, True]
    assert sorted(found[2:]) == [False, True]


@pytest.mark.study
def test_design_that_differs_without_a_fault(tmp_path: Path) -> None:
    netlist = write_netlist(Adder(), "adder", tmp_path)
    wrong = adder_replay([1, 2, 3])
    wrong.expected[2, 1] += 1
    with pytest.raises(UserError, match="hand lookup: differs without a fault: trace 1, cycle 2, output"):
        judge_mutants(Subject("lookup", Adder(), [lambda: wrong]), netlist, netlist.mutants(3, 1), "hand", proof_s=0)


def test_what_the_simulator_says_itself_is_no_result(tmp_path: Path) -> None:
    program = tmp_path / "V"
    program.write_text(
        "#!/bin/sh\nshift\nfor n in $*; do\n"
        "  test $n = 2 && echo '[0] %Error: mutants.sv:18975: Assertion failed' && exit 1\n"
        "  echo $n 7 output\ndone\n"
    )
    program.chmod(0o755)
    found = list(play(program, adder_replay([1]), [1, 2, 3]))
    assert found == [(1, 7, "output"), (2, -1, "none"), (3, 7, "output")]


def test_mutants_are_drawn_by_seed_and_clocks_are_left_alone(tmp_path: Path) -> None:
    netlist = write_netlist(Adder(), "adder", tmp_path)
    first, again, other = (netlist.mutants(20, seed) for seed in (1, 1, 2))
    assert first == again
    assert first != other
    assert [mutant.number for mutant in first] == list(range(1, 21))
    assert not {mutant.port for mutant in first} & {"CLK"}
    with pytest.raises(ValueError, match="mutants must have the numbers 1 to 2"):
        netlist.verilog(first[1:3])


@pytest.mark.study
def test_benches_kill_mutants_of_the_routing_cache(tmp_path: Path) -> None:
    config = load_config(CONFIGS / "torus.yml", hardware=True)
    steps: list[str] = []
    report = mutate(
        [config], 20, blocks=("routing_cache",), seed=3, output=tmp_path, progress=lambda step, *_: steps.append(step)
    )
    assert len(report.verdicts) == 20
    assert enough(report), list(survivor_lines(report))
    assert steps[0] == "mutate_lru routing_cache: trace 1"
    written = json.loads((tmp_path / "mutation.json").read_text())
    assert [row["block"] for row in written["blocks"]] == ["routing_cache", "all"]
    assert str(tmp_path) not in (tmp_path / "mutants.csv").read_text()
    assert len((tmp_path / "mutants.csv").read_text().splitlines()) == 21


@pytest.mark.study
def test_benches_kill_mutants_of_all_blocks(tmp_path: Path) -> None:
    verdicts: list[Verdict] = []
    for path in sorted(CONFIGS.glob("*.yml")):
        config = load_config(path, hardware=True)
        verdicts += mutate([config], 80, output=tmp_path / config.name).verdicts
    report = MutationReport(tuple(verdicts), 1, 0.0)
    assert len(report.verdicts) == 240
    assert enough(report), list(survivor_lines(report))


@pytest.mark.study
def test_benches_kill_mutants_of_routers(tmp_path: Path) -> None:
    configs = [load_config(path, hardware=True) for path in sorted((CONFIGS / "router").glob("*.yml"))]
    assert len(configs) == 3
    report = mutate(configs, 210, blocks=("router",), output=tmp_path)
    assert enough(report), list(survivor_lines(report))


def test_traces_fit_the_ports_of_a_router(tmp_path: Path) -> None:
    config = load_config(CONFIGS / "router" / "wavefront.yml", hardware=True)
    router = subject(config, "router", 1)
    netlist = write_netlist(router.component, "router", tmp_path)
    replay = router.replays[0]()
    assert {name for name, _ in netlist.inputs} == set(replay.inputs)
    assert {name for name, _ in netlist.outputs} == {output.name for output in replay.outputs}


def test_time_of_a_service_host_begins_elsewhere(tmp_path: Path) -> None:
    config = load_config(CONFIGS / "acknowledges" / "mesh.yml", hardware=True)
    host = subject(config, "service_host", 1)
    netlist = write_netlist(host.component, "service_host", tmp_path, reset=host.reset)
    replay = host.replays[0]()
    assert {name for name, bits in netlist.inputs if bits} == set(replay.inputs)
    assert {name for name, bits in netlist.outputs if bits} == {output.name for output in replay.outputs}
    assert "parameter \\SRST_VALUE 32'11111111111111111111110000000000" in (tmp_path / "netlist.il").read_text()


@pytest.mark.study
def test_faults_lie_between_the_routers_and_not_in_them(tmp_path: Path) -> None:
    config = load_config(CONFIGS / "network" / "table.yml", hardware=True)
    interface = subject(config, "network_interface", 1)
    netlist = write_netlist(
        interface.component, "network_interface", tmp_path, spared=interface.spared, reset=interface.reset
    )
    replay = interface.replays[0]()
    assert {name for name, _ in netlist.inputs} == set(replay.inputs)
    assert {name for name, _ in netlist.outputs} == {output.name for output in replay.outputs}
    files = {line.partition(":")[0] for mutant in netlist.mutants(150, 1) for line in mutant.source.split("|")}
    assert {f"hopforge/hw/{name}.py" for name in ("network/network", "router/csr", "parts/event_counter")} <= files
    # names of signals that have become a port of the router are kept with the line of the router
    inside = ["allocation/vc_allocator", "allocation/crossbar", "ports/input_unit", "ports/input_queues"]
    inside += ["ports/input_routes", "ports/input_requests", "ports/flit_buffer"]
    modules = {f"hopforge/hw/{name}.py" for name in inside}
    assert all((Path(hopforge.__file__).parents[1] / name).is_file() for name in modules)
    assert not files & modules


def test_counters_begin_elsewhere(tmp_path: Path) -> None:
    netlist = write_netlist(Counted(), "counted", tmp_path, reset={"cou.t": 5})
    assert "parameter \\SRST_VALUE 3'101" in (tmp_path / "netlist.il").read_text()
    expected = as_words([[(5 + k) % 8] for k in range(6)])
    replay = Replay(("ask",), (Output("count"),), as_words([[1]] * 6), expected)
    faults = numbered(netlist, f"-mode const0 -module counted -cell {cells_of(netlist)['$add']} -port Y -portbit 2")
    (verdict,) = judge_mutants(Subject("lookup", Counted(), [lambda: replay], 2), netlist, faults, "x", proof_s=0)
    assert (verdict.state, verdict.cycle) == ("killed", 1)
    with pytest.raises(ValueError, match="counter must be the name of a register with a reset"):
        write_netlist(Counted(), "counted", tmp_path, reset={"counter": 5})


@pytest.mark.study
def test_benches_kill_mutants_of_network_interfaces(tmp_path: Path) -> None:
    configs = [load_config(path, hardware=True) for path in sorted((CONFIGS / "network").glob("*.yml"))]
    assert len(configs) == 2
    report = mutate(configs, 100, blocks=("network_interface",), output=tmp_path)
    assert enough(report), list(survivor_lines(report))


@pytest.mark.study
def test_bench_kills_mutants_of_service_hosts(tmp_path: Path) -> None:
    config = load_config(CONFIGS / "acknowledges" / "mesh.yml", hardware=True)
    report = mutate([config], 60, blocks=("service_host",), output=tmp_path)
    assert enough(report), list(survivor_lines(report))


@pytest.mark.study
def test_bench_kills_mutants_of_rule_caches(tmp_path: Path) -> None:
    configs = [load_config(CONFIGS / "rules" / f"{policy}.yml", hardware=True) for policy in ("mep", "host")]
    report = mutate(configs, 40, blocks=("rule_cache",), output=tmp_path)
    assert enough(report), list(survivor_lines(report))


def test_netlist_of_a_rule_cache_has_the_ports_of_its_traces(tmp_path: Path) -> None:
    config = load_config(CONFIGS / "rules" / "mep.yml", hardware=True)
    cache = subject(config, "rule_cache", 1)
    netlist = write_netlist(cache.component, "rule_cache", tmp_path)
    replay = cache.replays[0]()
    assert {name for name, _ in netlist.inputs} == set(replay.inputs)
    assert {name for name, _ in netlist.outputs} == {output.name for output in replay.outputs}
    files = {line.partition(":")[0] for mutant in netlist.mutants(150, 1) for line in mutant.source.split("|")}
    assert {f"hopforge/hw/rules/{name}.py" for name in ("rule_cache", "cube_lines", "prefix_rules")} <= files


def test_score_leaves_equivalent_mutants_out() -> None:
    mutant = Mutant(1, "inv", "$1", "A", 2, "word[2]", "hopforge/hw/x.py:1", "")
    states = ["killed"] * 18 + ["equivalent"] * 5 + ["survived"]
    report = MutationReport(tuple(Verdict("c", "lookup", mutant, state) for state in states), 1, 0.0)  # type: ignore[arg-type]
    assert list(report_rows(report))[-1] == ("all", "24", "18", "5", "1", "94.7 %")
    assert not enough(report)
    assert list(survivor_lines(report)) == ["survived: c lookup 1: inv $1.A[2] (word[2]) hopforge/hw/x.py:1"]


def test_mistakes_are_one_line(tmp_path: Path) -> None:
    assert block_names("all") == BLOCKS
    assert block_names("lookup") == ("lookup",)
    assert block_names("router") == ("router",)
    assert block_names("network_interface") == ("network_interface",)
    with pytest.raises(
        UserError,
        match="--block must be one of node_reduction, routing_cache, lookup, router, network_interface, q_table, "
        "service_host, rule_cache or all, not 'tcam'",
    ):
        block_names("tcam")
    with pytest.raises(UserError, match="--seed and --seed-from-commit exclude each other"):
        sample_seed(1, "0" * 40)
    for commit in ("abc1234", "x" * 40, "0" * 41, "A" * 40):
        with pytest.raises(UserError, match=f"must be the whole hash of a commit .40 or 64 .*, not '{commit}'"):
            sample_seed(None, commit)
    assert [sample_seed(None, None), sample_seed(7, None), sample_seed(None, "f" * 40)] == [1, 7, 2**32 - 1]
    config = load_config(CONFIGS / "torus.yml", hardware=True)
    with pytest.raises(UserError, match="count must be at least one mutant for each of the 3 netlists, not 2"):
        mutate([config], 2, output=tmp_path / "out")
    assert not (tmp_path / "out").exists()
    ran = CliRunner().invoke(app, ["mutate", "--help"])
    assert "CONFIG" in ran.output


def test_a_port_of_several_words_is_set_once() -> None:
    """Verilator keeps more than 64 bits in an array: it takes no word, and each word has a column of its own."""
    none = np.zeros((1, 3), np.uint64)
    replay = Replay(("narrow", "wide", "wide"), (Output("sum"), Output("sum"), Output("low")), none, none)
    source = _race_source("top", replay, Surroundings(), [])
    assert source.count("    SET(wide, 1);\n") == 2 and "top->wide =" not in source  # before a reset, and the trace
    assert source.count("top->narrow = row[0];") == 2
    assert "GET(sum, 0);" in source and "got[2] = top->low;" in source and "ZERO(wide)" in source
