"""Clock gates of generated Verilog: one module by name, which a user replaces by a cell of the library."""

from amaranth.hdl import ClockSignal, Instance

from hopforge.hw.parts.clock_gate import ClockGate

__all__ = ["OWN_CLOCK_GATES", "clock_gate_instance", "clock_gate_text"]

OWN_CLOCK_GATES = "HOPFORGE_OWN_CLOCK_GATES"
"""Macro that leaves the module to the user."""

_NAME = "hopforge_clock_gate"
# A second text in a compilation must not define the module again: a guard of its own.
_TEXT = f"""\
// Clock gates. Define {OWN_CLOCK_GATES} to leave this module out and give another of the same name and ports.
`ifndef {OWN_CLOCK_GATES}
`ifndef {_NAME.upper()}
`define {_NAME.upper()}
// The high phase of the clock passes in the cycle after one with enable. Verilator opens latches on a clock before
// flip-flops sample what is read of them; there the gate is open for all of that cycle, and flip-flops see the same.
module {_NAME}(
  input wire clk,
  input wire enable,
  output wire gated
);
`ifdef VERILATOR
  reg opened = 1'h0;
  always_ff @(posedge clk)
    opened <= enable;
  assign gated = opened;
`else
  reg held;
  always_latch
    if (!clk) held = enable;
  assign gated = held & clk;
`endif
endmodule
`endif
`endif
"""


def clock_gate_instance(gate: ClockGate) -> Instance:
    """Return an instance of the module with the ports of `gate`."""
    return Instance(_NAME, i_clk=ClockSignal(), i_enable=gate.enable, o_gated=gate.gated)


def clock_gate_text(verilog: str) -> str:
    """Return the module if `verilog` has instances of it, else nothing."""
    return _TEXT if f"  {_NAME} " in verilog else ""
