"""The interval comparators that decide which way a digit of a grid is reached."""

from typing import Literal, NamedTuple

from hopforge.model.numbers.address import AddressFormat

__all__ = ["ComparatorSettings", "comparator_settings", "interval_plus"]


class ComparatorSettings(NamedTuple):
    """Registers of one interval comparator (docs/definitions/lookup-engine.md, "Configuration registers").

    Attributes
    ----------
    wrap : bool
        Whether the digits reached by + wrap around beyond the highest one.
    threshold : int
        The last digit reached by +.
    """

    wrap: bool
    threshold: int


def comparator_settings(mode: Literal["mesh", "torus"], c: int, radix: int, chunk_bits: int) -> ComparatorSettings:
    """Return the registers with which two comparisons of a digit decide as `human_keys.mesh_key` and `torus_key` do.

    Parameters
    ----------
    mode : {"mesh", "torus"}
        The key function.
    c : int
        The switch's own digit.
    radix : int
        Values of the digit.
    chunk_bits : int
        Width of the digit.

    Raises
    ------
    ValueError
        If the radix does not fit the chunk, or the digit the radix.

    Examples
    --------
    >>> comparator_settings("torus", 1, 5, 3), comparator_settings("torus", 4, 5, 3)
    (ComparatorSettings(wrap=False, threshold=3), ComparatorSettings(wrap=True, threshold=1))
    """
    AddressFormat(chunk_bits, chunk_bits).join([c], [radix])
    largest = (1 << chunk_bits) - 1
    half = radix // 2
    if mode == "mesh":
        return ComparatorSettings(False, largest)
    if c > half:
        return ComparatorSettings(True, c - half - 1)
    return ComparatorSettings(False, min(c + half, largest))


def interval_plus(settings: ComparatorSettings, c: int, d: int) -> bool:
    """Return whether digit `d` ≠ `c` is reached by +, as the comparators with `settings` decide."""
    if settings.wrap:
        return d > c or not d > settings.threshold
    return d > c and not d > settings.threshold
