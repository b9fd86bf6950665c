"""A replay of ports of any width, from a row of numbers by port for each cycle."""

from collections.abc import Mapping, Sequence

from hopforge.sim.drive.replay import WORD_BITS, Output, Replay, as_words

__all__ = ["wide_replay", "words_of"]

_WORD = (1 << WORD_BITS) - 1


def words_of(value: int, count: int) -> list[int]:
    """Return so many words of a number, the lowest first."""
    return [value >> (WORD_BITS * number) & _WORD for number in range(count)]


def wide_replay(
    inputs: Mapping[str, int],
    outputs: Mapping[str, int],
    gates: Mapping[str, str],
    driven: Sequence[Mapping[str, int]],
    expected: Sequence[Mapping[str, int]],
) -> Replay:
    """Return what is driven and what is expected; a port that a row does not name is 0.

    Parameters
    ----------
    inputs, outputs : mapping
        Name of a port → its bits.
    gates : mapping
        Output → output that says when it means something.
    driven, expected : sequence of mapping
        Port → number, for each cycle.
    """
    sizes = [{name: -(-bits // WORD_BITS) for name, bits in ports.items() if bits} for ports in (inputs, outputs)]
    tables = [
        as_words([[word for name, count in size.items() for word in words_of(row.get(name, 0), count)] for row in rows])
        for size, rows in zip(sizes, (driven, expected), strict=True)
    ]
    return Replay(
        inputs=tuple(name for name, count in sizes[0].items() for _ in range(count)),
        outputs=tuple(Output(name, gates.get(name)) for name, count in sizes[1].items() for _ in range(count)),
        driven=tables[0], expected=tables[1],
    )  # fmt: skip
