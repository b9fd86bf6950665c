"""Masks of the ports of one router: of one word, a value, or of several, in an array.

A mask has `many` words. One word is a value that functions take and return. Several words lie in the array at an
address; the value then says no more than that a bit was set.
"""

from typing import Any

from numba import int64, uint64

from hopforge.model.kernel.bits import bit_of, bits_at, bits_between
from hopforge.model.kernel.compile import inlined
from hopforge.model.kernel.memory import words
from hopforge.model.network.core.net_record import Net


@inlined
def asked_words(net: Net, many: int, router: int) -> int:
    """Count the words in which the ports of a router lie in ``net.asking``: 1 if they are taken out as one word."""
    first, last = router * net.ports, (router + 1) * net.ports
    return 1 if many == 1 else ((last + 63) >> 6) - (first >> 6)


@inlined
def asked_ports(net: Net, many: int, router: int, k: int) -> tuple[Any, Any]:
    """Output ports of a router that somebody asks for: the port of bit 0, and word number `k` of `asked_words`."""
    first, last = router * net.ports, (router + 1) * net.ports
    if many == 1:
        return int64(first), bits_at(words(net.asking), first, net.ports)
    word = int64((first >> 6) + k)
    return word << 6, bits_between(words(net.asking)[word], word, first, last)


@inlined
def any_asks(net: Net, many: int, router: int) -> bool:
    """Whether somebody asks for an output port of a router."""
    found = uint64(0)
    for k in range(asked_words(net, many, router)):
        found |= asked_ports(net, many, router, k)[1]
    return bool(found != uint64(0))


@inlined
def word_of(mask: Any, address: int, many: int, word: int) -> Any:
    """Word number `word` of a mask: `mask` itself, or in the array at `address`."""
    return mask if many == 1 else words(address)[word]


@inlined
def take_word(mask: Any, address: int, many: int, word: int) -> Any:
    """As `word_of`; the word in the array is cleared."""
    if many == 1:
        return mask
    found = words(address)[word]
    words(address)[word] = 0
    return found


@inlined
def put_bit(mask: Any, address: int, many: int, number: int) -> Any:
    """Return a mask with bit `number`, which is set in the array at `address`, too."""
    if many != 1:
        words(address)[number >> 6] |= bit_of(number)
    return mask | bit_of(number)


@inlined
def take_bit(mask: Any, address: int, many: int, number: int) -> Any:
    """Return a mask without bit `number`; of several words, the mask as it is, for the array holds it."""
    if many == 1:
        return mask & ~bit_of(number)
    words(address)[number >> 6] &= ~bit_of(number)
    return mask


@inlined
def forget(masks: Any, number: int, many: int) -> None:
    """Clear mask `number` of masks of `many` words."""
    masks[number * many] = 0
    for k in range(1, many):
        masks[number * many + k] = 0


@inlined
def place_of(many: int, i: int, o: int) -> int:
    """Where the VC that stands for input `i` and output `o` is in ``net.representative``: 64 · `many` for an input."""
    return (i << 6) | o if many == 1 else (i * many << 6) + o
