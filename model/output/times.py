"""Times in words."""

__all__ = ["time_unit", "time_words"]

_UNITS = ((1.0, "s"), (1e3, "ms"), (1e6, "µs"))


def time_unit(seconds: float) -> tuple[float, str]:
    """Return the unit that gives a time one to three digits before the point, and how many of it are a second.

    Examples
    --------
    >>> time_unit(0.00151590)
    (1000.0, 'ms')
    """
    return next((each for each in _UNITS if abs(seconds) * each[0] >= 1), (1e9, "ns"))


def time_words(seconds: float, digits: int = 4) -> str:
    """Return a time in the unit of `time_unit`, with so many significant digits.

    Examples
    --------
    >>> [time_words(value) for value in (0.76194, 0.00151590, 4.1e-7, 12.0)]
    ['761.9 ms', '1.516 ms', '410 ns', '12 s']
    >>> time_words(0.000490086, 6)
    '490.086 µs'
    """
    factor, unit = time_unit(seconds)
    return f"{seconds * factor:.{digits}g} {unit}"
