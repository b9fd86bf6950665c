"""Runs replays on Icarus and Verilator: finds the tools, builds below a given folder, reads the results.

Two ways: with cocotb, Python in every cycle (`replay_cocotb`), and on Verilator with a C++ loop that reads the recorded
replay from a file (`replay_verilator`), ten times as fast.
"""

import contextlib
import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from hopforge.gen.tools.verilated_runtime import build_model
from hopforge.gen.tools.verilator import MissingVerilatorError, verilator_environment
from hopforge.model.errors import UserError
from hopforge.model.output.destination import check_destination, clear_folder
from hopforge.model.output.results import write_text
from hopforge.model.requirements import pip_command
from hopforge.sim.drive.icarus_text import icarus_text
from hopforge.sim.drive.replay import (
    CYCLE_VARIABLE,
    REPLAY_VARIABLE,
    RESULT_VARIABLE,
    Progress,
    Replay,
    ReplayResult,
    first_of,
    port_columns,
)

SimulatorName = Literal["icarus", "verilator"]
SIMULATORS: tuple[SimulatorName, ...] = ("icarus", "verilator")

BENCH = "hopforge.sim.drive.replay_bench"
_BUILD_TIMEOUT_S = 900
_SPLIT_SOURCE = 400_000
"""Larger ones are cut into files, so that two of them can be compiled at a time."""
# Short runs take a program that the C++ compiler did not optimise: runs of fewer cycles than these, and of a design
# that is not cut longer ones, by characters of the source times cycles. A router of 89 000 characters is compiled with
# 3 s of CPU instead of 11 s, and then plays 300 000 cycles a second; the 2x2 mesh plays 3600
# (docs/guides/cosimulate.md).
_SHORT_RUN_CYCLES = 20_000
_SHORT_RUN_WORK = 100_000_000_000
#: words for Verilator: the C++ compiler does not optimise
UNOPTIMISED = tuple(
    word for name in ("OPT_FAST", "OPT_SLOW", "OPT_GLOBAL") for word in ("-MAKEFLAGS", f"{name}=-O0")
)
_BLOCK_CYCLES = 1 << 16
_POLL_S = 0.2


class SimulatorError(UserError):
    """A simulator is missing, or did not do its work."""


class SimulatorRun(NamedTuple):
    """One replay on one simulator.

    Attributes
    ----------
    result : ReplayResult
        The comparison.
    build_s, run_s : float
        Wall-clock seconds to compile the design and to play.
    waves : Path or None
        The waveforms, if wanted.
    """

    result: ReplayResult
    build_s: float
    run_s: float
    waves: Path | None


def simulator_name(name: str) -> SimulatorName:
    """Return `name` if it is a simulator.

    Raises
    ------
    SimulatorError
        Listing the known ones.
    """
    for known in SIMULATORS:
        if name == known:
            return known
    raise SimulatorError(f"simulator must be one of {', '.join(SIMULATORS)}, not {name!r}")


def check_simulator(simulator: SimulatorName, *, cocotb: bool = True) -> None:
    """Check that everything that `simulator` needs is here.

    Raises
    ------
    SimulatorError
        Naming the first tool that is missing and how to get it.
    """
    if cocotb and importlib.util.find_spec("cocotb") is None:
        raise SimulatorError(f"cocotb is missing: {pip_command('cocotb')}")
    commands = {"icarus": ("iverilog", "vvp"), "verilator": ("g++", "make")}[simulator]
    for command in commands:
        if shutil.which(command) is None:
            package = "iverilog" if simulator == "icarus" else command
            raise SimulatorError(f"{simulator} needs {command}, which is missing: apt-get install {package}")
    if simulator == "verilator":
        try:
            verilator_environment()
        except MissingVerilatorError as error:
            raise SimulatorError(str(error)) from None


def replay_cocotb(
    verilog: str,
    top: str,
    replay: Replay,
    folder: Path,
    *,
    simulator: SimulatorName,
    waves: bool = False,
    progress: Progress | None = None,
) -> SimulatorRun:
    """Play with cocotb: driver, monitor and scoreboard in Python (`sim.drive.replay_bench`).

    Parameters
    ----------
    verilog : str
        Source text of the design.
    top : str
        Its top module.
    replay : Replay
        What to play.
    folder : Path
        Where everything is built; files of earlier runs in it are replaced.
    simulator : str
        ``icarus`` or ``verilator``.
    waves : bool
        Record all signals.
    progress : callable, optional
        Called with (cycles done, cycles in all), from another thread.

    Returns
    -------
    SimulatorRun

    Raises
    ------
    SimulatorError
        If a tool is missing, or the simulation ended without a result.
    """
    check_simulator(simulator)
    from cocotb_tools.runner import get_runner  # noqa: PLC0415  (an extra)

    folder = folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    source, recorded, outcome = folder / f"{top}.sv", folder / "replay.npz", folder / "result.json"
    write_text(source, icarus_text(verilog) if simulator == "icarus" else verilog)
    replay.save(recorded)
    check_destination(outcome, None)
    outcome.unlink(missing_ok=True)
    runner = get_runner(simulator)
    build_arguments = ["-Wno-fatal", "-Wno-WIDTH", *(["--trace"] if waves else [])] if simulator == "verilator" else []
    start = time.perf_counter()
    with _tools(simulator), _watch(folder / "cycle", replay.cycles, progress):
        trouble = _quietly(
            lambda: runner.build(
                sources=[source], hdl_toplevel=top, build_dir=folder / simulator, build_args=build_arguments,
                always=True, waves=waves, timescale=("1ns", "1ps"), log_file=folder / "build.log",
            )
        )  # fmt: skip
        if trouble is not None:
            raise SimulatorError(f"{simulator} could not build {top}: {trouble}; see {folder / 'build.log'}")
        built = time.perf_counter()
        # a failing bench is an error to the runner, too; what counts is whether there is a result
        trouble = _quietly(
            lambda: runner.test(
                test_module=BENCH, hdl_toplevel=top, build_dir=folder / simulator, test_dir=folder, waves=waves,
                extra_env={
                    REPLAY_VARIABLE: str(recorded), RESULT_VARIABLE: str(outcome),
                    CYCLE_VARIABLE: str(folder / "cycle"), "COCOTB_ANSI_OUTPUT": "0",
                    "COCOTB_REWRITE_ASSERTION_FILES": "",  # pytest would compile all that the bench imports anew
                },
                results_xml=str(folder / "results.xml"), log_file=folder / "run.log",
            )
        )  # fmt: skip
    done = time.perf_counter()
    if not outcome.exists():
        raise SimulatorError(f"{simulator} ended without a result: {trouble}; see {folder / 'run.log'}")
    result = first_of(json.loads(outcome.read_text()))
    _agree(folder / "results.xml", result)
    return SimulatorRun(result, built - start, done - built, _waves(folder, simulator, top) if waves else None)


def replay_verilator(
    verilog: str,
    top: str,
    replay: Replay,
    folder: Path,
    *,
    blocks: Sequence[str] = (),
    waves: bool = False,
    progress: Progress | None = None,
) -> SimulatorRun:
    """Play on Verilator with a loop in C++: the fast way.

    The compiled model stays in `folder` and is used again for the same design.

    Parameters
    ----------
    verilog, top, replay, folder, waves
        As for `replay_cocotb`.
    blocks : sequence of str
        Modules that Verilator compiles by themselves, once for all their instances (its hierarchical blocks): for
        designs with many instances of few modules. With `waves` everything is compiled together.
    progress : callable, optional
        Called with (cycles done, cycles in all).

    Returns
    -------
    SimulatorRun
        ``build_s`` is almost 0 if the model was there already.

    Raises
    ------
    SimulatorError
        If a tool is missing, or the model cannot be built or ends without a result.
    """
    check_simulator("verilator", cocotb=False)
    folder = folder.resolve()
    start = time.perf_counter()
    program = _build_player(verilog, top, replay, folder, blocks=() if waves else blocks, waves=waves)
    built = time.perf_counter()
    dump = folder / f"{top}.vcd"
    command = [str(program), str(dump)] if waves else [str(program)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as player:
        assert player.stdin is not None
        assert player.stdout is not None
        try:
            for begin in range(0, replay.cycles, _BLOCK_CYCLES):
                block = slice(begin, begin + _BLOCK_CYCLES)
                player.stdin.write(np.hstack([replay.driven[block], replay.expected[block]]).tobytes())
                if progress is not None:
                    progress(min(begin + _BLOCK_CYCLES, replay.cycles), replay.cycles)
            player.stdin.close()
        except BrokenPipeError:
            pass  # the status below says why
        answer = player.stdout.read()
    if player.returncode != 0 or not answer:
        raise SimulatorError(f"the verilated model ended with status {player.returncode} and no result ({program})")
    result = first_of(json.loads(answer))
    return SimulatorRun(result, built - start, time.perf_counter() - built, dump if waves else None)


def _build_player(verilog: str, top: str, replay: Replay, folder: Path, *, blocks: Sequence[str], waves: bool) -> Path:
    """Return the program that plays on stdin; built only if the design or the loop is new.

    A short run takes a program that is not optimised, unless an optimised one is there.
    """
    loop = _player_source(top, replay)
    digest = hashlib.sha256("\0".join([verilog, loop, str(waves)]).encode()).hexdigest()[:16]
    quick = is_short(len(verilog), replay.cycles)
    optimised = folder / f"player-{digest}" / "obj_dir" / f"V{top}"
    if optimised.exists():
        return optimised
    build = folder / (f"player-{digest}-quick" if quick else f"player-{digest}")
    program = build / "obj_dir" / f"V{top}"
    if program.exists():
        return program
    options = _build_options(quick=quick, blocks=bool(blocks), whole=len(verilog) < _SPLIT_SOURCE)
    clear_folder(build)
    build.mkdir(parents=True)
    (build / f"{top}.sv").write_text(verilog)
    (build / "player.cpp").write_text(loop)
    if blocks:
        named = "".join(f'hier_block -module "{block}"\n' for block in blocks)
        (build / "blocks.vlt").write_text(f"`verilator_config\n{named}")
        options += ["--hierarchical", "blocks.vlt"]
    arguments = [
        "--cc", "--exe", "--build", "-j", "2", *options, "--x-assign", "unique", "-Wno-fatal", "-Wno-lint",
        "-Wno-style", "--top-module", top, *(["--trace"] if waves else []), f"{top}.sv", "player.cpp",
    ]  # fmt: skip
    done = build_model(arguments, build, timeout_s=_BUILD_TIMEOUT_S)
    (build / "build.log").write_text(done.stdout)
    if done.returncode != 0 or not program.exists():
        raise SimulatorError(f"verilator could not build {top}: see {build / 'build.log'}")
    return program


def _build_options(*, quick: bool, blocks: bool, whole: bool = False) -> list[str]:
    """Return how Verilator and the C++ compiler optimise; if the build is to be quick the compiler does not at all.

    A design that is not `whole` is cut into many files.

    Without blocks Verilator's own optimisation makes more C++ of a large design than it saves; with blocks most of what
    is compiled is wires between them, and it removes these.
    """
    if not quick:
        return ["-O3", "-CFLAGS", "-O1"]
    if whole and not blocks:
        return ["-O3", "--output-split", "1000000", *UNOPTIMISED]
    own = ["-O3"] if blocks else ["-O0", "-fcombine"]
    return [*own, "--output-split", "20000", *UNOPTIMISED]


def is_short(characters: int, cycles: int) -> bool:
    """Whether a run of a design ends before an optimised program would be compiled.

    Parameters
    ----------
    characters : int
        Length of the source.
    cycles : int
        Of the run.
    """
    whole = characters < _SPLIT_SOURCE
    return cycles < _SHORT_RUN_CYCLES or (whole and characters * cycles < _SHORT_RUN_WORK)


def _player_source(top: str, replay: Replay) -> str:
    """Return the C++ loop: rows of (inputs, expected outputs) from stdin, the result as JSON to stdout."""
    inputs, outputs = len(replay.inputs), len(replay.outputs)
    of_outputs = port_columns([output.name for output in replay.outputs])
    sets = "\n".join(
        f"        SET({member_name(name)}, {first});"
        if words > 1
        else f"        top->{member_name(name)} = row[{first}];"
        for name, first, words in port_columns(replay.inputs)
    )
    gets = "\n".join(
        f"        GET({member_name(name)}, {first});"
        if words > 1
        else f"        got[{first}] = top->{member_name(name)};"
        for name, first, words in of_outputs
    )
    names = ", ".join(f'"{output.name}"' for output in replay.outputs)
    gates = ", ".join(map(str, replay.gates))
    tick = "top->clk = 1; top->eval(); DUMP(); top->clk = 0;" if replay.clocked else ""
    reset = f"top->rst = 1; for (int i = 0; i < 2; i++) {{ top->eval(); DUMP(); {tick} }} top->rst = 0;"
    return f"""\
// Plays a recorded replay: rows of inputs and expected outputs on stdin, the comparison as JSON on stdout.
#include "V{top}.h"
#include "verilated.h"
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <memory>
#if VM_TRACE
#include "verilated_vcd_c.h"
#define DUMP() do {{ if (trace) trace->dump(now++); }} while (0)
#else
#define DUMP() do {{ now++; }} while (0)
#endif

// Verilator keeps wide ports in words of 32 bits.
#define SET(port, first) for (size_t i = 0; i < sizeof top->port / 4; i++) {{ \\
    top->port[i] = static_cast<uint32_t>(row[first + i / 2] >> 32 * (i % 2)); }}
#define GET(port, first) for (size_t i = 0; i < sizeof top->port / 4; i++) {{ \\
    if (i % 2 == 0) got[first + i / 2] = 0; \\
    got[first + i / 2] |= static_cast<uint64_t>(top->port[i]) << 32 * (i % 2); }}

static const char *const names[] = {{{names}}};
static const int gates[] = {{{gates}}};

int main(int argc, char **argv) {{
    const auto context = std::make_unique<VerilatedContext>();
    const auto top = std::make_unique<V{top}>(context.get());
    uint64_t now = 0;
#if VM_TRACE
    std::unique_ptr<VerilatedVcdC> trace;
    if (argc > 1) {{
        context->traceEverOn(true);
        trace = std::make_unique<VerilatedVcdC>();
        top->trace(trace.get(), 99);
        trace->open(argv[1]);
    }}
#endif
    uint64_t row[{inputs + outputs}], got[{outputs}];
    uint64_t cycles = 0, mismatches = 0, cycle = 0, expected = 0, wrong = 0;
    int signal = -1;
    {reset if replay.clocked else ""}
    while (fread(row, sizeof row, 1, stdin) == 1) {{
{sets}
        top->eval();
        DUMP();
{gets}
        const uint64_t *const want = row + {inputs};
        for (int i = 0; i < {outputs} && cycles >= {replay.settle_cycles}; i++) {{
            if (got[i] == want[i] || (gates[i] >= 0 && !want[gates[i]])) continue;
            if (mismatches++ == 0) {{ cycle = cycles; signal = i; expected = want[i]; wrong = got[i]; }}
            break;
        }}
        {tick}
        cycles++;
    }}
#if VM_TRACE
    if (trace) trace->close();
#endif
    top->final();
    printf("{{\\"cycles\\": %" PRIu64 ", \\"mismatches\\": %" PRIu64 ", \\"first\\": ", cycles, mismatches);
    if (signal < 0) printf("null}}\\n");
    else printf("[%" PRIu64 ", \\"%s\\", %" PRIu64 ", %" PRIu64 "]}}\\n", cycle, names[signal], expected, wrong);
    return 0;
}}
"""


def member_name(name: str) -> str:
    """Return the name of a port in the verilated class, where two underscores are Verilator's own."""
    return name.replace("__", "___05F")


@contextlib.contextmanager
def _watch(counter: Path, cycles: int, progress: Progress | None) -> Iterator[None]:
    """Report the cycle that the bench writes to the file `counter` now and then."""
    counter.unlink(missing_ok=True)
    if progress is None:
        yield
        return
    over = threading.Event()

    def poll(report: Progress = progress) -> None:
        while not over.wait(_POLL_S):
            with contextlib.suppress(OSError, ValueError):
                report(int(counter.read_text()), cycles)

    watcher = threading.Thread(target=poll, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()
        progress(cycles, cycles)


@contextlib.contextmanager
def _tools(simulator: SimulatorName) -> Iterator[None]:
    """Let cocotb's runner find Verilator: it knows the environment only."""
    additions = verilator_environment() if simulator == "verilator" else {}
    before = {name: os.environ.get(name) for name in additions}
    os.environ.update(additions)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _quietly(action: Callable[[], object]) -> str | None:
    """Call cocotb's runner, which ends the program or raises when a tool fails; return what is wrong."""
    try:
        action()
    except (SystemExit, RuntimeError, subprocess.CalledProcessError) as error:
        return (str(error).splitlines() or [type(error).__name__])[0]
    return None


def _agree(results: Path, result: ReplayResult) -> None:
    """Check cocotb's own results file: its runner ends with status 0 whatever happened."""
    from cocotb_tools.check_results import get_results  # noqa: PLC0415  (an extra)

    tests, failures = get_results(results)
    if tests != 1 or bool(failures) != bool(result.mismatches):
        raise SimulatorError(f"cocotb ran {tests} tests, {failures} of them failed, against {result}: see {results}")


def _waves(folder: Path, simulator: SimulatorName, top: str) -> Path:
    return folder / "icarus" / f"{top}.fst" if simulator == "icarus" else folder / "dump.vcd"
