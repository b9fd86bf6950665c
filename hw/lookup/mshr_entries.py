"""What the MSHRs of an engine have at any depth: ports, fields and states."""

from collections.abc import Mapping
from typing import Any

from amaranth.hdl import Cat, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Member, Out
from amaranth.utils import ceil_log2

__all__ = ["MshrEntries", "entry_number"]


def entry_number(one_hot: Value, width_bits: int) -> Value:
    """Return the number of the entry whose bit is set."""
    ones = [Cat(one_hot[i] for i in range(len(one_hot)) if i >> bit & 1) for bit in range(width_bits)]
    return Cat(one.any() if len(one) else 0 for one in ones)


class MshrEntries(wiring.Component):
    """Registers of all entries; who has the engine's ports adds its own.

    States are one-hot: FREE, WAIT_ISSUE, ISSUED (with *stale*), WAIT_PRIMARY, DONE, INJECTED.

    Parameters
    ----------
    entries : int
        Registers.
    key_bits, index_bits, address_bits, tag_bits, output_bits : int
        Widths of the fields.
    primary_bits : int
        Width of what names another entry.
    reset_less : bool
        Whether fields keep what they hold in a reset.
    before, to_b, rows, behind : dict of Member
        Further ports: before the shared ones, before the fields of a FILL, behind its index, and last.

    Raises
    ------
    ValueError
        A number below 1.
    """

    miss: Signal
    may_merge: Signal
    invalidate: Signal
    fresh: Signal
    key: Signal
    index: Signal
    dst: Signal
    tag: Signal
    flush: Signal
    hold: Signal
    fill_valid: Signal
    fill_key: Signal
    fill_index: Signal
    fill_tag: Signal
    fill_fresh: Signal
    fill_match: Signal
    fill_output: Signal
    issue_valid: Signal
    issue_ready: Signal
    issue_id: Signal
    issue_dst: Signal
    answer_valid: Signal
    answer_id: Signal
    answer_match: Signal
    answer_output: Signal
    merged: Signal
    retried: Signal
    release: Signal
    next_key: Signal

    def __init__(
        self,
        *,
        entries: int,
        key_bits: int,
        index_bits: int,
        address_bits: int,
        tag_bits: int,
        output_bits: int,
        primary_bits: int,
        reset_less: bool,
        before: Mapping[str, Member],
        to_b: Mapping[str, Member],
        rows: Mapping[str, Member],
        behind: Mapping[str, Member],
    ):
        self.entries = entries
        self.key_bits = key_bits
        self.index_bits = index_bits
        self.address_bits = address_bits
        self.tag_bits = tag_bits
        self.output_bits = output_bits
        for name in ("entries", "key_bits", "index_bits", "address_bits", "tag_bits", "output_bits"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}")
        self.id_bits = max(1, ceil_log2(entries))
        super().__init__(
            {
                **before,
                "miss": In(1),
                "may_merge": In(1),
                "invalidate": In(1),
                "fresh": In(1),
                "key": In(key_bits),
                "index": In(index_bits),
                "dst": In(address_bits),
                "tag": In(tag_bits),
                "flush": In(1),
                "hold": In(1),
                **to_b,
                "fill_key": Out(key_bits),
                "fill_index": Out(index_bits),
                **rows,
                "fill_tag": Out(tag_bits),
                "fill_fresh": Out(1),
                "fill_match": Out(1),
                "fill_output": Out(output_bits),
                "issue_valid": Out(1),
                "issue_ready": In(1),
                "issue_id": Out(self.id_bits),
                "issue_dst": Out(address_bits),
                "answer_valid": In(1),
                "answer_id": In(self.id_bits),
                "answer_match": In(1),
                "answer_output": In(output_bits),
                "merged": Out(1),
                "retried": Out(1),
                **behind,
            }
        )
        N = entries
        self.free = Signal(N, init=(1 << N) - 1)
        self.wait_issue = Signal(N)
        self.issued = Signal(N)
        self.stale = Signal(N)
        self.wait_primary = Signal(N)
        self.done = Signal(N)
        self.injected = Signal(N)
        self.entry_fresh = Signal(N)

        def fields(name: str, width_bits: int) -> list[Signal]:
            return [Signal(width_bits, name=f"{name}{i}", reset_less=reset_less) for i in range(N)]

        self.keys = fields("key", key_bits)
        self.indices = fields("index", index_bits)
        self.destinations = fields("dst", address_bits)
        self.tags = fields("tag", tag_bits)
        self.primaries = fields("primary", primary_bits)
        self.results = fields("result", 1 + output_bits)

    def asked_again(self, i: int, answered: Value, invalidated: Value) -> Value:
        """Return whether an entry has an answer that it may not use, and asks again."""
        return answered & (self.stale[i] | invalidated | self.flush)

    def at_the_tcam(self, i: int, accepted: Value, answered: Value, invalidated: Value) -> list[Any]:
        """Return what the registers of a request at the TCAM become: whether it is there, and whether it is stale."""
        waits = self.issued[i] & ~answered
        return [
            self.issued[i].eq(waits | accepted),
            self.stale[i].eq((waits & (self.stale[i] | invalidated | self.flush)) | (accepted & self.flush)),
        ]
