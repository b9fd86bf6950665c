"""Memories of generated Verilog: one wrapper module by name, which a user replaces by macros."""

from amaranth.hdl import ClockSignal, Instance

from hopforge.hw.parts.sram import Sram

__all__ = ["OWN_MEMORIES", "memory_instance", "memory_text"]

OWN_MEMORIES = "HOPFORGE_OWN_MEMORIES"
"""Macro that leaves the wrapper modules to the user."""

_CLOCKED, _DIRECT = "hopforge_ram_1r1w", "hopforge_regfile_1r1w"

_HEADER = f"""\
// Memories. Define {OWN_MEMORIES} to leave these modules out and give others of the same name, ports and
// parameters, for instance around SRAM macros. Contents need no initial value in hardware: after power-up with
// unknown contents software flushes a lookup engine twice; a router writes a place before it reads it.
`ifndef {OWN_MEMORIES}
"""

_READS = {
    _CLOCKED: (
        "One write and one read port. r_data is there a cycle after r_en and held until the next read; a read that\n"
        "// meets a write of the same word returns the old contents.",
        "  input wire r_en,\n",
        "output reg [WIDTH-1:0] r_data",
        "  initial r_data = 0;\n  always @(posedge clk)\n    if (r_en)\n      r_data <= words[r_addr];\n",
    ),
    _DIRECT: (
        "One write port and one read port without register: r_data follows r_addr in the same cycle (flip-flops,\n"
        "// distributed memory of an FPGA, or a macro with asynchronous read).",
        "",
        "output wire [WIDTH-1:0] r_data",
        "  assign r_data = words[r_addr];\n",
    ),
}


def memory_instance(memory: Sram) -> Instance:
    """Return an instance of the wrapper module with the ports of `memory`."""
    ports = {
        "i_clk": ClockSignal(),
        "i_r_addr": memory.r_addr,
        "i_w_en": memory.w_en,
        "i_w_addr": memory.w_addr,
        "i_w_data": memory.w_data,
        "o_r_data": memory.r_data,
    }
    if not memory.asynchronous:
        ports["i_r_en"] = memory.r_en
    kind = _DIRECT if memory.asynchronous else _CLOCKED
    return Instance(kind, p_WIDTH=memory.width_bits, p_DEPTH=memory.depth, p_BIT_WRITE=int(memory.bit_write), **ports)


def memory_text(verilog: str) -> str:
    """Return the wrapper modules that `verilog` has instances of, as Verilog; empty if there are none."""
    used = [kind for kind in _READS if f"  {kind} #(" in verilog]
    if not used:
        return ""
    return "\n".join([_HEADER, *map(_module, used), "`endif\n"])


def _module(kind: str) -> str:
    """Text of a wrapper; each has a guard of its own, because two generated files may be compiled together."""
    what, enable, output, read = _READS[kind]
    return f"""\
`ifndef {kind.upper()}
`define {kind.upper()}
// {what}
// w_en: one bit, or one for each bit of the word where BIT_WRITE is 1. Contents are 0 in simulations and FPGAs.
module {kind} #(
  parameter WIDTH = 8,
  parameter DEPTH = 2,
  parameter BIT_WRITE = 0
) (
  input wire clk,
{enable}  input wire [$clog2(DEPTH)-1:0] r_addr,
  {output},
  input wire [(BIT_WRITE ? WIDTH : 1)-1:0] w_en,
  input wire [$clog2(DEPTH)-1:0] w_addr,
  input wire [WIDTH-1:0] w_data
);
  reg [WIDTH-1:0] words [0:DEPTH-1];
  integer place;
  initial
    for (place = 0; place < DEPTH; place = place + 1)
      words[place] = 0;
{read}  generate
    if (BIT_WRITE) begin : bits
      integer b;
      always @(posedge clk)
        for (b = 0; b < WIDTH; b = b + 1)
          if (w_en[b])
            words[w_addr][b] <= w_data[b];
    end else begin : whole
      always @(posedge clk)
        if (w_en[0])
          words[w_addr] <= w_data;
    end
  endgenerate
endmodule
`endif
"""
