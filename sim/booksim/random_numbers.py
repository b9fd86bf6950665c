"""The permutation that BookSim 2 draws for traffic ``randperm``: with Knuth's generator, from `perm_seed`.

Knuth, The Art of Computer Programming 2, section 3.6 and exercise 3.6-15: the lagged Fibonacci sequence
x_n = x_(n-100) - x_(n-37) modulo 2^30, of which the first 100 of each 1009 numbers are used.
"""

from collections.abc import Iterator

__all__ = ["draw_permutation", "random_numbers"]

_LONG, _SHORT, _MODULUS = 100, 37, 1 << 30
_STREAMS, _WARM_UPS, _BLOCK = 70, 10, 1009


def random_numbers(seed: int) -> Iterator[int]:
    """Yield the numbers from 0 to 2^30 - 1 that follow a seed."""
    state = _start(seed)
    while True:
        block, state = _next_block(state, _BLOCK)
        yield from block[:_LONG]


def _next_block(state: list[int], count: int) -> tuple[list[int], list[int]]:
    """Return the next `count` numbers, and the state behind them."""
    numbers = list(state)
    for n in range(_LONG, count + _LONG):
        numbers.append((numbers[n - _LONG] - numbers[n - _SHORT]) % _MODULUS)
    return numbers[:count], numbers[count:]


def _start(seed: int) -> list[int]:
    """Return the state of a seed: a power of z, by squaring, modulo z^100 + z^37 + 1, on numbers from the seed."""
    number = (seed + 2) & (_MODULUS - 2)
    x = []
    for _ in range(_LONG):
        x.append(number)
        number <<= 1
        if number >= _MODULUS:
            number -= _MODULUS - 2
    x[1] += 1
    rest, left = seed & (_MODULUS - 1), _STREAMS - 1
    while left:
        square = [0] * (2 * _LONG - 1)
        square[::2] = x
        for j in range(2 * _LONG - 2, _LONG - 1, -1):
            square[j - _LONG + _SHORT] = (square[j - _LONG + _SHORT] - square[j]) % _MODULUS
            square[j - _LONG] = (square[j - _LONG] - square[j]) % _MODULUS
        x = square[:_LONG]
        if rest & 1:
            x = [x[-1], *x[:-1]]
            x[_SHORT] = (x[_SHORT] - x[0]) % _MODULUS
        if rest:
            rest >>= 1
        else:
            left -= 1
    state = x[_SHORT:] + x[:_SHORT]
    for _ in range(_WARM_UPS):
        _, state = _next_block(state, 2 * _LONG - 1)
    return state


def draw_permutation(hosts: int, seed: int) -> list[int]:
    """Return the destination of every terminal: terminal i is that of the drawn one of those left."""
    numbers = random_numbers(seed)
    left, goals = list(range(hosts)), [0] * hosts
    for i in range(hosts):
        goals[left.pop(next(numbers) % (hosts - i))] = i
    return goals
