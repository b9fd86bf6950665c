"""A simulated board: Verilator's model of the design, with its serial line at a pseudo-terminal."""

import contextlib
import hashlib
import os
import subprocess
import tty
from collections.abc import Iterator
from pathlib import Path

from hopforge.gen.fpga.board_design import BoardDesign
from hopforge.gen.tools.verilated_runtime import build_model
from hopforge.gen.verilog.writer import to_verilog
from hopforge.model.output.destination import clear_folder
from hopforge.model.progress import tell
from hopforge.sim.drive.runner import SimulatorError, check_simulator

__all__ = ["SIMULATED_BAUD", "SIMULATED_HZ", "build_simulated", "simulated_board"]

SIMULATED_HZ, SIMULATED_BAUD = 1_000_000, 125_000
"""The clock of the simulated board and the rate of its line: eight cycles a bit, so that runs are short."""

_LOOP = """\
// A board with its serial line on stdin and stdout.
#include "V@TOP@.h"
#include "verilated.h"
#include <cstdio>
#include <memory>
#include <poll.h>
#include <unistd.h>

static const int divisor = @DIVISOR@;
static const long quiet_cycles = 4096L * divisor;  // a wrong or broken request has been answered by then

int main() {
    const auto context = std::make_unique<VerilatedContext>();
    const auto top = std::make_unique<V@TOP@>(context.get());
    const auto tick = [&] { top->clk = 0; top->eval(); top->clk = 1; top->eval(); };
    top->rx = 1;
    top->rst = 1;
    tick();
    tick();
    top->rst = 0;
    unsigned char ahead[256];           // bytes from the host
    int first = 0, count = 0;
    int out_bits = 0, out_time = 0;     // of the byte to the board: bits left, cycles left of this one
    unsigned out = 1;
    int in_bits = 0, in_time = 0;       // of the byte from the board
    unsigned in = 0;
    long quiet = 0;                     // cycles in which nothing has happened
    for (long cycle = 0;; cycle++) {
        if (count == 0 && cycle % 64 == 0) {
            pollfd host = {STDIN_FILENO, POLLIN, 0};
            if (poll(&host, 1, quiet > quiet_cycles ? 20 : 0) > 0) {
                const ssize_t got = read(STDIN_FILENO, ahead, sizeof ahead);
                if (got <= 0) break;
                first = 0;
                count = static_cast<int>(got);
            }
        }
        if (out_bits == 0 && count > 0) {
            out = ahead[first++] << 1 | 0x200;
            count--;
            out_bits = 10;
            out_time = divisor;
        }
        top->rx = out_bits ? out & 1 : 1;
        if (out_bits && --out_time == 0) { out >>= 1; out_bits--; out_time = divisor; }
        tick();
        if (top->restart) { top->rst = 1; tick(); top->rst = 0; }
        if (in_bits == 0) {
            if (!top->tx) { in_bits = 9; in_time = divisor + divisor / 2; in = 0; }
        } else if (--in_time == 0) {
            in_time = divisor;
            if (--in_bits > 0) in |= static_cast<unsigned>(top->tx) << (8 - in_bits);
            else {
                const unsigned char byte = static_cast<unsigned char>(in);
                if (write(STDOUT_FILENO, &byte, 1) != 1) break;
            }
        }
        quiet = out_bits || in_bits || count || top->activity ? 0 : quiet + 1;
    }
    top->final();
    return 0;
}
"""


def build_simulated(design: BoardDesign, folder: Path) -> Path:
    """Return the program that is the board; the one of an earlier call is used again for the same design.

    Raises
    ------
    SimulatorError
        A tool is missing, or the model cannot be built.
    """
    check_simulator("verilator", cocotb=False)
    verilog, top = to_verilog(design.component, design.name), design.name
    loop = _LOOP.replace("@TOP@", top).replace("@DIVISOR@", str(design.identity.divisor))
    build = folder.resolve() / f"board-{hashlib.sha256((verilog + loop).encode()).hexdigest()[:16]}"
    program = build / "obj_dir" / f"V{top}"
    if program.exists():
        return program
    tell(f"Verilator: building {top}")
    clear_folder(build)
    build.mkdir(parents=True)
    (build / f"{top}.sv").write_text(verilog)
    (build / "board.cpp").write_text(loop)
    done = build_model(
        [
            "--cc", "--exe", "--build", "-j", "2", "-O3", "-CFLAGS", "-O1", "--x-assign", "unique", "-Wno-fatal",
            "-Wno-lint", "-Wno-style", "--top-module", top, f"{top}.sv", "board.cpp",
        ],
        build, timeout_s=900,
    )  # fmt: skip
    (build / "build.log").write_text(done.stdout)
    if done.returncode != 0 or not program.exists():
        raise SimulatorError(f"verilator could not build {top}: see {build / 'build.log'}")
    return program


@contextlib.contextmanager
def simulated_board(program: Path) -> Iterator[tuple[Path, subprocess.Popen[bytes]]]:
    """Run a simulated board; yields the path of its serial port and the process."""
    board_end, host_end = os.openpty()
    with contextlib.ExitStack() as stack:
        stack.callback(os.close, host_end)  # kept open: a host may come and go
        tty.setraw(host_end)
        process = subprocess.Popen([str(program)], stdin=board_end, stdout=board_end)
        os.close(board_end)
        stack.callback(process.wait)
        stack.callback(process.kill)
        yield Path(os.ttyname(host_end)), process
