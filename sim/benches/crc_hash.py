"""Bench of `hw.parts.crc_hash`: addresses and their CRC, bit by bit from the definition."""

import numpy as np

from hopforge.hw.parts.crc_hash import CrcHash
from hopforge.model.numbers.crc import crc_address, crc_matrix
from hopforge.sim.drive.replay import Bench, Output, Replay, as_words


def crc_hash_bench(crc: str, address_bits: int, count: int, rng: np.random.Generator) -> Bench:
    """Return a bench of the CRC hash.

    Parameters
    ----------
    crc : str
        Name in the catalogue (`model.numbers.crc_catalogue.CRC`).
    address_bits : int
        Width of an address.
    count : int
        Random addresses, besides 0, all ones and every single bit.
    rng : numpy.random.Generator
        Draws them.
    """
    words = [0, (1 << address_bits) - 1, *(1 << bit for bit in range(address_bits))]
    words += rng.integers(0, 1 << address_bits, count).tolist()
    masks, constant = crc_matrix(crc, address_bits)
    return Bench(
        "crc_hash",
        CrcHash(width_bits=address_bits, masks=masks, constant=constant),
        Replay(
            ("data",),
            (Output("hash"),),
            as_words([[word] for word in words]),
            as_words([[crc_address(crc, word, address_bits)] for word in words]),
            clocked=False,
        ),
    )
