"""Flit buffers: contents, and latches against memories cycle by cycle in a Verilog simulator."""

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from amaranth.sim import Simulator

from hopforge.gen.verilog.writer import to_verilog
from hopforge.hw.ports.flit_buffer import FlitBuffer
from hopforge.hw.router.router import Router
from hopforge.model.router.params import Route, RouterParams


@pytest.mark.parametrize("kind", ["memory", "flip_flops"])
@pytest.mark.parametrize(("queues", "depth"), [(1, 1), (1, 3), (2, 4), (3, 1)])
def test_every_word_is_read_back(queues: int, depth: int, kind: str) -> None:
    """A dictionary of the words written, random reads of all of them from the following cycle on."""
    dut = FlitBuffer(queues=queues, depth=depth, data_bits=8, note_bits=5, kind=kind)
    rng = np.random.default_rng(queues)
    words = {(q, place): (0, 0) for q in range(queues) for place in range(depth)}

    async def bench(ctx):
        for _ in range(200):
            read = int(rng.integers(queues * depth))
            ctx.set(dut.read_at, read)
            notes = rng.integers(0, depth, queues).tolist()
            for q, place in enumerate(notes):
                ctx.set(dut.note_at[q], place)
            assert ctx.get(dut.data) == words[divmod(read, depth)][0]
            assert [ctx.get(note) for note in dut.notes] == [words[q, place][1] for q, place in enumerate(notes)]
            target = int(rng.integers(queues + 1))
            word = int(rng.integers(256)), int(rng.integers(32))
            place = int(rng.integers(depth))
            ctx.set(dut.arrives, 1 << target if target < queues else 0)
            ctx.set(dut.w_data, word[0])
            ctx.set(dut.w_note, word[1])
            if target < queues:
                ctx.set(dut.write_at[target], place)
                words[target, place] = word
            await ctx.tick()

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


def test_bad_kind() -> None:
    with pytest.raises(ValueError, match="flit_buffers must be one of memory, latches, flip_flops, not 'paper'"):
        FlitBuffer(queues=1, depth=1, data_bits=1, note_bits=0, kind="paper")


def _twins(kinds: dict[str, str], ports: dict[str, tuple[str, int]], cycles: int, body: str) -> str:
    """Test bench with both kinds side by side; `body` sets the inputs from $random before each cycle.

    Inputs change after the rising edge, outputs are compared just before the next one, from the second write of every
    word on (before, a latch holds X and a memory 0).
    """
    lines = ["module bench;", "  reg clk = 0, rst = 1;", "  integer cycle, bad = 0, seen = 0;"]
    for name, (side, width) in ports.items():
        if side == "in":
            lines.append(f"  reg [{width - 1}:0] {name} = 0;")
        else:
            lines += [f"  wire [{width - 1}:0] {name}_{kind};" for kind in kinds]
    for kind, module in kinds.items():
        pins = [f".{name}({name if side == 'in' else f'{name}_{kind}'})" for name, (side, _) in ports.items()]
        lines.append(f"  {module} {kind} (.clk(clk), .rst(rst), {', '.join(pins)});")
    compare = " || ".join(f"{name}_memory !== {name}_latches" for name, (side, _) in ports.items() if side == "out")
    differs = " || ".join(f"{name}_memory !== {name}_before" for name, (side, _) in ports.items() if side == "out")
    lines += [f"  reg [{width - 1}:0] {name}_before = 0;" for name, (side, width) in ports.items() if side == "out"]
    keep = " ".join(f"{name}_before = {name}_memory;" for name, (side, _) in ports.items() if side == "out")
    lines += [
        "  initial begin",
        f"    for (cycle = 0; cycle < {cycles}; cycle = cycle + 1) begin",
        "      #1 clk = 1; #1;",
        "      rst = cycle < 2;",
        f"      {body}",
        "      #2 clk = 0; #3;",
        f"      if (cycle > {cycles // 4} && ({compare})) bad = bad + 1;",
        f"      if ({differs}) seen = seen + 1;",
        f"      {keep}",
        "    end",
        '    $display("bad %0d seen %0d", bad, seen); $finish;',
        "  end",
        "endmodule",
    ]
    return "\n".join(lines) + "\n"


def _run_icarus(folder: Path, sources: dict[str, str]) -> tuple[int, int]:
    for name, text in sources.items():
        (folder / f"{name}.sv").write_text(text)
    files = [f"{name}.sv" for name in sources]
    subprocess.run(["iverilog", "-g2012", "-o", "bench.vvp", *files], cwd=folder, check=True, capture_output=True)
    done = subprocess.run(["vvp", "bench.vvp"], cwd=folder, check=True, capture_output=True, text=True, timeout=60)
    words = done.stdout.split()
    return int(words[words.index("bad") + 1]), int(words[words.index("seen") + 1])


needs_icarus = pytest.mark.skipif(shutil.which("iverilog") is None, reason="Icarus Verilog is not installed")


def _buffer(kind: str) -> FlitBuffer:
    return FlitBuffer(queues=2, depth=3, data_bits=8, note_bits=4, kind=kind)


BUFFER_PORTS = {
    "arrives": ("in", 2), "write_at__0": ("in", 2), "write_at__1": ("in", 2), "w_data": ("in", 8), "w_note": ("in", 4),
    "read_at": ("in", 3), "note_at__0": ("in", 2), "note_at__1": ("in", 2),
    "data": ("out", 8), "notes__0": ("out", 4), "notes__1": ("out", 4),
}  # fmt: skip
BUFFER_BODY = """arrives = $random; if (arrives == 3) arrives = 0;
      write_at__0 = $unsigned($random) % 3; write_at__1 = $unsigned($random) % 3; w_data = $random; w_note = $random;
      read_at = $unsigned($random) % 6; note_at__0 = $unsigned($random) % 3; note_at__1 = $unsigned($random) % 3;"""


@needs_icarus
def test_latches_read_as_memories(tmp_path: Path) -> None:
    sources = {kind: to_verilog(_buffer(kind), f"buffer_{kind}") for kind in ("memory", "latches")}
    kinds = {kind: f"buffer_{kind}" for kind in sources}
    bench = _twins(kinds, BUFFER_PORTS, 2000, BUFFER_BODY)
    bad, seen = _run_icarus(tmp_path, sources | {"bench": bench})
    assert bad == 0
    assert seen > 1000, "the outputs move"


@needs_icarus
def test_a_gate_that_is_always_open_is_noticed(tmp_path: Path) -> None:
    text = to_verilog(_buffer("latches"), "buffer_latches")
    assert text.count("if (!clk)") == 1 and text.count("hopforge_clock_gate gate") == 6, "one module of clock gates"
    sources = {"memory": to_verilog(_buffer("memory"), "buffer_memory")}
    sources["latches"] = text.replace("if (!clk)", "if (1)")
    kinds = {kind: f"buffer_{kind}" for kind in sources}
    bad, _ = _run_icarus(tmp_path, sources | {"bench": _twins(kinds, BUFFER_PORTS, 2000, BUFFER_BODY)})
    assert bad > 10


@needs_icarus
def test_router_with_latches_is_the_router_with_memories(tmp_path: Path) -> None:
    """Two routers, random flits on two inputs within their credits, all outputs that mean something."""
    given = {"ports": 2, "vcs": 2, "buffer_flits": 2, "width_bits": 12, "address_bits": 2, "tag_bits": 0}
    routes = (Route(1), Route(2), Route(1), Route(2))
    sources = {
        kind: to_verilog(Router(params=RouterParams(**given, routes=routes, flit_buffers=kind)), f"router_{kind}")
        for kind in ("memory", "latches")
    }
    ports: dict[str, tuple[str, int]] = {"enable": ("in", 1), "clear_drops": ("in", 1)}
    for n in range(2):
        ports |= {
            f"port__{n}__in_valid": ("in", 1), f"port__{n}__in_flit": ("in", 15),
            f"port__{n}__out_credit_valid": ("in", 1), f"port__{n}__out_credit_vc": ("in", 1),
            f"port__{n}__in_credit_valid": ("out", 1), f"port__{n}__in_credit_vc": ("out", 1),
            f"port__{n}__out_valid": ("out", 1), f"port__{n}__out_flit": ("out", 15), f"port__{n}__drops": ("out", 32),
        }  # fmt: skip
    # Single flits on VC 0 of input n while fewer than 2 are on their way; every flit that leaves returns its credit.
    body = "enable = 1; clear_drops = 0;\n"
    for n in range(2):
        body += f"""      if (port__{n}__in_credit_valid_memory) room{n} = room{n} + 1;
      port__{n}__in_valid = !rst && room{n} > 0 && ($random & 1);
      if (port__{n}__in_valid) room{n} = room{n} - 1;
      port__{n}__in_flit = {{$random, 1'b0, 2'b11}};
      port__{n}__out_credit_valid = port__{n}__out_valid_memory;
      port__{n}__out_credit_vc = port__{n}__out_flit_memory[2];
"""
    bench = _twins({kind: f"router_{kind}" for kind in sources}, ports, 3000, body)
    bench = bench.replace("  integer cycle", "  integer room0 = 2, room1 = 2;\n  integer cycle")
    bad, seen = _run_icarus(tmp_path, sources | {"bench": bench})
    assert bad == 0
    assert seen > 1000, "flits move"
