"""What stage A of an engine has at any depth: ports, and the set index of a key."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hopforge.hw.keys.reduction_parameters import ReductionParameters
from hopforge.hw.parts.crc_hash import CrcHash

__all__ = ["KeyMaker"]


class KeyMaker(wiring.Component):
    """Ports of what makes keys and indices of requests and invalidations.

    Parameters
    ----------
    reduction : ReductionParameters
        Key functions.
    tag_bits : int
        Width of a request's tag.
    index_masks : tuple of int
        Masks of the payload whose parities are the index, bit 0 first (skewed: way after way); none: the index is 0.
    index_constant : int
        Index of payload 0.
    takes : tuple of str
        Inputs by which what stands at the exit leaves.

    Raises
    ------
    ValueError
        ``tag_bits`` below 1.
    """

    req_valid: Signal
    req_ready: Signal
    req_dst: Signal
    req_tag: Signal
    invalidate_pending: Signal
    invalidate_dst: Signal
    invalidate_taken: Signal
    active: Any  # a view of `ReductionParameters.active_layout`
    flush: Signal
    lookup: Signal
    invalidate: Signal
    fresh: Signal
    key: Signal
    index: Signal
    dst: Signal
    tag: Signal

    def __init__(
        self,
        *,
        reduction: ReductionParameters,
        tag_bits: int,
        index_masks: tuple[int, ...],
        index_constant: int,
        takes: tuple[str, ...],
    ):
        if tag_bits < 1:
            raise ValueError(f"tag_bits must be at least 1, not {tag_bits}")
        self.reduction = reduction
        self.tag_bits = tag_bits
        self.index_masks = index_masks
        self.index_constant = index_constant
        self.index_bits = max(1, len(index_masks))
        ports = {
            "req_valid": In(1),
            "req_ready": Out(1),
            "req_dst": In(reduction.address_bits),
            "req_tag": In(tag_bits),
            "invalidate_pending": In(1),
            "invalidate_dst": In(reduction.address_bits),
            "invalidate_taken": Out(1),
            "flush": In(1),
            "lookup": Out(1),
            "invalidate": Out(1),
            "fresh": Out(1),
            "key": Out(reduction.key_bits),
            "index": Out(self.index_bits),
            "dst": Out(reduction.address_bits),
            "tag": Out(tag_bits),
            **{name: In(1) for name in takes},
        }
        if reduction.reduces:
            ports["active"] = In(reduction.active_layout)
        super().__init__(ports)

    def _address_key(self, dst: Value) -> Value:
        """Key of mode arbitrary, which is 0."""
        return Cat(dst, Const(0, self.reduction.key_bits - self.reduction.address_bits))

    def _index(self, m: Module, payload: Value) -> Value:
        if not self.index_masks:
            return Const(0, 1)
        m.submodules.set_index = set_index = CrcHash(
            width_bits=self.reduction.address_bits, masks=self.index_masks, constant=self.index_constant
        )
        m.d.comb += set_index.data.eq(payload)
        return set_index.hash
