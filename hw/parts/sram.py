"""Memory with one read and one write port: the unit that gate-level flows leave as a macro."""

from amaranth.hdl import Elaboratable, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2


class Sram(wiring.Component):
    """Memory of ``depth`` words with one read and one write port.

    Every memory of the design is an instance of this component, so that synthesis can replace the whole submodule by
    a macro. The read port is not transparent: a read that meets a write of the same word returns the old contents.

    Latency: one cycle from ``r_en`` to ``r_data``, which is held until the next read; with ``asynchronous`` (an array
    of flops) ``r_data`` follows ``r_addr`` in the same cycle and ``r_en`` has no effect. Throughput: one read and one
    write per cycle. Reset: contents and ``r_data`` are 0 at power-up; the contents survive a reset.

    Parameters
    ----------
    depth : int
        Words; at least 1.
    width_bits : int
        Bits per word; at least 1.
    bit_write : bool
        One write enable per bit instead of one per word.
    asynchronous : bool
        Read in the same cycle.

    Attributes
    ----------
    late_output : bool
        Little logic fits behind ``r_data``; a circuit may be built otherwise, with the same behaviour.

    Raises
    ------
    ValueError
        A depth or width below 1.
    """

    late_output = False

    r_en: Signal
    r_addr: Signal
    r_data: Signal
    w_en: Signal
    w_addr: Signal
    w_data: Signal

    def __init__(self, *, depth: int, width_bits: int, bit_write: bool = False, asynchronous: bool = False):
        if depth < 1:
            raise ValueError(f"depth must be at least 1, not {depth}")
        if width_bits < 1:
            raise ValueError(f"width_bits must be at least 1, not {width_bits}")
        self.depth = depth
        self.width_bits = width_bits
        self.bit_write = bit_write
        self.asynchronous = asynchronous
        address_bits = ceil_log2(depth)
        ports = {
            "r_data": Out(width_bits),
            "w_en": In(width_bits if bit_write else 1),
            "w_data": In(width_bits),
        }
        if not asynchronous:
            ports["r_en"] = In(1)
        if address_bits:
            ports["r_addr"] = In(address_bits)
            ports["w_addr"] = In(address_bits)
        super().__init__(ports)

    def elaborate(self, platform: object) -> Elaboratable:
        """Build a memory, or a register where there is only one word.

        A platform with a method ``memory(self)`` (`hopforge.gen.verilog.shared_modules`) may give something else for
        the memory.
        """
        memory = getattr(platform, "memory", None)
        other: Elaboratable | None = memory(self) if memory is not None and self.depth > 1 else None
        if other is not None:
            return other
        m = Module()
        if self.depth == 1:
            word = Signal(self.width_bits)
            for bit in range(self.width_bits if self.bit_write else 0):
                with m.If(self.w_en[bit]):
                    m.d.sync += word[bit].eq(self.w_data[bit])
            if not self.bit_write:
                with m.If(self.w_en):
                    m.d.sync += word.eq(self.w_data)
            if self.asynchronous:
                m.d.comb += self.r_data.eq(word)
            else:
                with m.If(self.r_en):
                    m.d.sync += self.r_data.eq(word)
            return m
        m.submodules.array = array = Memory(shape=self.width_bits, depth=self.depth, init=[])
        write = array.write_port(granularity=1 if self.bit_write else None)
        read = array.read_port(domain="comb" if self.asynchronous else "sync")
        m.d.comb += [
            write.en.eq(self.w_en),
            write.addr.eq(self.w_addr),
            write.data.eq(self.w_data),
            read.addr.eq(self.r_addr),
            self.r_data.eq(read.data),
        ]
        if not self.asynchronous:
            m.d.comb += read.en.eq(self.r_en)
        return m


class LateSram(Sram):
    """`Sram` whose ``r_data`` comes late in its cycle, as from a block RAM of an FPGA: 5.6 ns of 10 in an ECP5."""

    late_output = True
