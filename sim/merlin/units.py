"""Values with units as SST writes them: ``32Gb/s``, ``14kB``, ``20ns``."""

import re
from fractions import Fraction

_VALUE = re.compile(r"\s*([0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?|\.[0-9]+)\s*([a-zA-Z/]+)\s*")
_POWERS = {"f": -15, "p": -12, "n": -9, "u": -6, "m": -3, "": 0, "k": 3, "K": 3, "M": 6, "G": 9, "T": 12, "P": 15}
_BINARY = {"Ki": 1, "ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5}


def bits(text: str) -> Fraction:
    """Return a size in bits.

    Raises
    ------
    ValueError
        It is no number of ``b`` or ``B``.
    """
    return _scaled(text, {"b": 1, "B": 8})


def bits_per_second(text: str) -> Fraction:
    """Return a rate in bits per second.

    Raises
    ------
    ValueError
        It is no number of ``b/s`` or ``B/s``.
    """
    return _scaled(text, {"b/s": 1, "B/s": 8})


def nanoseconds(text: str) -> Fraction:
    """Return a time in ns.

    Raises
    ------
    ValueError
        It is no number of seconds.
    """
    return _scaled(text, {"s": 1}) * 10**9


def _scaled(text: str, units: dict[str, int]) -> Fraction:
    found = _VALUE.fullmatch(text)
    if found:
        number, unit = found.groups()
        for name, factor in units.items():
            prefix = unit.removesuffix(name)
            if prefix != unit or unit == name:
                scale = 1024 ** _BINARY[prefix] if prefix in _BINARY else None
                if scale is None and prefix in _POWERS:
                    return Fraction(number) * factor * Fraction(10) ** _POWERS[prefix]
                if scale is not None:
                    return Fraction(number) * factor * scale
    raise ValueError(f"must be a number of {' or '.join(units)}, not {text}")
