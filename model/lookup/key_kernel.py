"""Node reduction inside kernels: encoded keys of destinations."""

import numpy as np
from numpy.typing import NDArray

from hopforge.model.kernel.array_record import ArrayRecord
from hopforge.model.kernel.compile import inlined, kernel
from hopforge.model.lookup.params import MEMBER_BITS
from hopforge.model.numbers.crc import table_crc

__all__ = ["DE_BRUIJN", "KIND_BITS", "KeyTables", "reduce_key", "reduce_keys"]

KIND_BITS = 2
DE_BRUIJN = 0x03F79D71B4CB0A89
"""A lone bit times this has another number in its top six bits for each bit."""

_ARBITRARY, _MESH, _TORUS, _FAT_TREE, _DRAGONFLY = range(5)
_VALUE_SHIFT = MEMBER_BITS + KIND_BITS


class KeyTables(ArrayRecord):
    """A `NodeReduction` for kernels; argument of `reduce_key`.

    Attributes
    ----------
    mode : int
        Index in `model.lookup.csr.MODES`.
    address_bits, chunk_bits : int
        A and K.
    digits : int
        Grid: dimensions n. Fat tree: n. Else 0.
    half : ndarray, int64[digit]
        Torus: ⌊k_i/2⌋. Mesh: larger than any digit.
    highest : int
        1: up choice is the highest mismatch.
    members : int
        Link-aggregation members.
    modulo : int
        1: member is d mod members, else CRC(d) mod members.
    crc : ndarray, uint64[byte, 256]
        `model.numbers.crc.crc_tables` of the address.
    digit_of : ndarray, int64[64]
        Digit of a lone bit, indexed by its de Bruijn product.
    """

    mode: int
    address_bits: int
    chunk_bits: int
    digits: int
    half: NDArray[np.int64]
    highest: int
    members: int
    modulo: int
    crc: NDArray[np.uint64]
    digit_of: NDArray[np.int64]


@inlined
def _grid_payload(t, own, dst):  # type: ignore[no-untyped-def]
    differ = (dst ^ own) & ((1 << (t.digits * t.chunk_bits)) - 1)
    if differ == 0:
        return (dst >> (t.digits * t.chunk_bits)) & ((1 << t.chunk_bits) - 1)
    # the lowest bit that differs lies in the digit that decides
    i = t.digit_of[(((differ & -differ) * DE_BRUIJN) >> 58) & 63]
    mask = (1 << t.chunk_bits) - 1
    offset = ((dst >> (i * t.chunk_bits)) & mask) - ((own >> (i * t.chunk_bits)) & mask)
    # + exactly if the sign says so and the way is short, or neither
    minus = (offset > 0) ^ (abs(offset) <= t.half[i])
    return ((1 + minus) << (t.address_bits - _VALUE_SHIFT)) | i


@inlined
def _fat_tree_payload(t, own, level, dst):  # type: ignore[no-untyped-def]
    mask = (1 << t.chunk_bits) - 1
    kind = 2
    value = (dst >> (level * t.chunk_bits)) & mask
    for i in range(t.digits - 1, level - 1, -1):
        if (dst >> ((i + 1) * t.chunk_bits)) & mask != (own >> (i * t.chunk_bits)) & mask:
            kind = 1
            if t.highest:
                value = (dst >> (i * t.chunk_bits)) & mask
            break
    return (kind << (t.address_bits - _VALUE_SHIFT)) | value


@inlined
def _dragonfly_payload(t, own, dst):  # type: ignore[no-untyped-def]
    k = t.chunk_bits
    mask = (1 << k) - 1
    group = dst >> (2 * k)
    if group != own >> (2 * k):
        value_bits = t.address_bits - _VALUE_SHIFT
        return (2 << value_bits) | (group & ((1 << value_bits) - 1))
    router = (dst >> k) & mask
    if router != (own >> k) & mask:
        return (1 << (t.address_bits - _VALUE_SHIFT)) | router
    return dst & mask


@inlined
def reduce_key(t, own, level, dst):  # type: ignore[no-untyped-def]
    """Return the encoded key of one destination at one switch; for use in kernels, checks nothing.

    Parameters
    ----------
    t : KeyTables
        `NodeReduction.tables`.
    own, level : int64
        Place of the switch (`Switch`).
    dst : int64
        Destination address.

    Returns
    -------
    int64
    """
    if t.mode == _ARBITRARY:
        return dst
    if t.mode == _FAT_TREE:
        payload = _fat_tree_payload(t, own, level, dst)
    elif t.mode == _DRAGONFLY:
        payload = _dragonfly_payload(t, own, dst)
    else:
        payload = _grid_payload(t, own, dst)
    if t.members > 1:
        member = dst % t.members if t.modulo else np.int64(table_crc(t.crc, dst) % np.uint64(t.members))
        payload |= member << (t.address_bits - MEMBER_BITS)
    return (t.mode << t.address_bits) | payload


@kernel
def reduce_keys(t, own, level, dst, keys):  # type: ignore[no-untyped-def]
    """Encode the keys of arrays of switches and destinations, by `reduce_key`.

    Parameters
    ----------
    t : KeyTables
        `NodeReduction.tables`.
    own, level : ndarray, int64[lookup] or int64[1]
        Places of the switches; one place: the same for all lookups.
    dst : ndarray, int64[lookup]
        Destination addresses.
    keys : ndarray, int64[lookup]
        Receives the keys.
    """
    many = len(own) > 1
    for index in range(len(dst)):
        place = index if many else 0
        keys[index] = reduce_key(t, own[place], level[place], dst[index])
