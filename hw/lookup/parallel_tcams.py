"""Several TCAMs that are searched in turns, the rival of the routing cache: dispatcher and answers in order."""

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

__all__ = ["ParallelTcams"]


class ParallelTcams(wiring.Component):
    """K ports to TCAMs with the same rows, and one side with requests (docs/definitions/parallel-tcams.md).

    Request n goes to TCAM n mod K, which has at most one request at a time. Answers leave in the order of the requests.
    Throughput: one request a cycle while TCAM n mod K is idle and takes it; with TCAMs of L cycles min(1, K / (L + 2)).
    Latency: L + 1 cycles, L from a TCAM's taking of a request to its answer. Back-pressure: ``req_ready`` is low while
    the TCAM whose turn it is has a request or an answer that has not left; answers wait in a register of their TCAM
    while ``resp_ready`` is low. Reset: idle, TCAM 0 is next.

    Parameters
    ----------
    tcams : int
        K, at least 1.
    address_bits, tag_bits, output_bits : int
        Widths of a destination, of a request's tag, of an output; each at least 1.

    Raises
    ------
    ValueError
        Naming the parameter, its limit and its value.
    """

    req_valid: Signal
    req_ready: Signal
    req_dst: Signal
    req_tag: Signal
    resp_valid: Signal
    resp_ready: Signal
    resp_tag: Signal
    resp_match: Signal
    resp_output: Signal
    tcam: Sequence[Any]

    def __init__(self, *, tcams: int, address_bits: int = 24, tag_bits: int = 8, output_bits: int = 16):
        for name, value in (
            ("tcams", tcams), ("address_bits", address_bits), ("tag_bits", tag_bits), ("output_bits", output_bits)
        ):  # fmt: skip
            if value < 1:
                raise ValueError(f"{name} must be at least 1, not {value}")
        self.tcams, self.address_bits, self.tag_bits, self.output_bits = tcams, address_bits, tag_bits, output_bits
        port = wiring.Signature(
            {
                "req_valid": Out(1),
                "req_ready": In(1),
                "req_dst": Out(address_bits),
                "resp_valid": In(1),
                "resp_match": In(1),
                "resp_output": In(output_bits),
            }
        )
        super().__init__(
            {
                "req_valid": In(1),
                "req_ready": Out(1),
                "req_dst": In(address_bits),
                "req_tag": In(tag_bits),
                "resp_valid": Out(1),
                "resp_ready": In(1),
                "resp_tag": Out(tag_bits),
                "resp_match": Out(1),
                "resp_output": Out(output_bits),
                "tcam": Out(port).array(tcams),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build the turns and what is kept of each TCAM."""
        m = Module()
        count = range(self.tcams)
        number_bits = max(1, ceil_log2(self.tcams))
        asks, answers = Signal(number_bits), Signal(number_bits)  # whose turn it is
        busy = [Signal(name=f"busy{k}") for k in count]
        done = [Signal(name=f"done{k}") for k in count]
        tag = [Signal(self.tag_bits, name=f"tag{k}", reset_less=True) for k in count]
        match = [Signal(name=f"match{k}", reset_less=True) for k in count]
        output = [Signal(self.output_bits, name=f"output{k}", reset_less=True) for k in count]
        taken, leaves = Signal(), Signal()
        m.d.comb += [taken.eq(self.req_valid & self.req_ready), leaves.eq(self.resp_valid & self.resp_ready)]
        with m.If(taken):
            m.d.sync += asks.eq(Mux(asks == self.tcams - 1, 0, asks + 1))
        with m.If(leaves):
            m.d.sync += answers.eq(Mux(answers == self.tcams - 1, 0, answers + 1))
        for k, port in enumerate(self.tcam):
            mine = asks == k
            m.d.comb += [port.req_dst.eq(self.req_dst), port.req_valid.eq(self.req_valid & mine & ~busy[k])]
            with m.If(mine):
                m.d.comb += self.req_ready.eq(port.req_ready & ~busy[k])
            with m.If(answers == k):
                m.d.comb += [
                    self.resp_valid.eq(done[k]),
                    self.resp_tag.eq(tag[k]),
                    self.resp_match.eq(match[k]),
                    self.resp_output.eq(output[k]),
                ]
            with m.If(taken & mine):
                m.d.sync += [busy[k].eq(1), tag[k].eq(self.req_tag)]
            with m.Elif(leaves & (answers == k)):
                m.d.sync += [busy[k].eq(0), done[k].eq(0)]
            with m.Elif(port.resp_valid):
                m.d.sync += [done[k].eq(1), match[k].eq(port.resp_match), output[k].eq(port.resp_output)]
        return m
