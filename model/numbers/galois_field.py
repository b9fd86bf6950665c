"""Finite fields GF(pᵐ) as tables, for the graphs that are built from them."""

import numpy as np
from numpy.typing import NDArray

Elements = NDArray[np.int64]


def prime_power(q: int) -> tuple[int, int] | None:
    """Return the prime p and the exponent m with pᵐ = q, None if there are none.

    Examples
    --------
    >>> prime_power(27), prime_power(12)
    ((3, 3), None)
    """
    if q < 2:
        return None
    p = next((d for d in range(2, int(q**0.5) + 1) if q % d == 0), q)
    m = 0
    while q % p == 0:
        q //= p
        m += 1
    return (p, m) if q == 1 else None


class GaloisField:
    """GF(q). The element Σ a_i·xⁱ is the number Σ a_i·pⁱ; arithmetic is on arrays of such numbers.

    Parameters
    ----------
    q : int
        Number of elements, a power of a prime.

    Attributes
    ----------
    p, m : int
        q = pᵐ.
    powers : ndarray, int64[q − 1]
        ``powers[i]`` = ξⁱ, of a primitive element ξ.

    Raises
    ------
    ValueError
        No field has q elements.

    Examples
    --------
    >>> field = GaloisField(9)
    >>> bool((field.times(field.powers[3], field.powers[7]) == field.powers[2]).all())
    True
    """

    def __init__(self, q: int) -> None:
        found = prime_power(q)
        if found is None:
            raise ValueError(f"q must be a power of a prime, not {q}")
        self.q, (self.p, self.m) = q, found
        self.powers = self._primitive_powers()
        self._logarithm = np.zeros(q, np.int64)
        self._logarithm[self.powers] = np.arange(q - 1)

    def plus(self, a: Elements, b: Elements) -> Elements:
        """Return the sums of elements."""
        return self._digitwise(a, b, 1)

    def minus(self, a: Elements, b: Elements) -> Elements:
        """Return the differences of elements."""
        return self._digitwise(a, b, -1)

    def times(self, a: Elements, b: Elements) -> Elements:
        """Return the products of elements."""
        product = self.powers[(self._logarithm[a] + self._logarithm[b]) % (self.q - 1)]
        return np.where((np.asarray(a) == 0) | (np.asarray(b) == 0), 0, product)

    def inverse(self, a: Elements) -> Elements:
        """Return the multiplicative inverses of elements other than 0."""
        return self.powers[-self._logarithm[a] % (self.q - 1)]

    def _digitwise(self, a: Elements, b: Elements, sign: int) -> Elements:
        total = np.zeros(np.broadcast(a, b).shape, np.int64)
        for i in range(self.m):
            place = self.p**i
            total += (a // place + sign * (b // place)) % self.p * place
        return total

    def _primitive_powers(self) -> Elements:
        """Powers of a primitive element: of the least primitive root, or of x modulo the first primitive polynomial."""
        p, m, q = self.p, self.m, self.q
        if m == 1:
            for root in range(1, p):
                powers = [1]
                while (following := powers[-1] * root % p) != 1:
                    powers.append(following)
                if len(powers) == q - 1:
                    return np.array(powers, np.int64)
        top = p ** (m - 1)
        for polynomial in range(1, q):  # x^m = - (what `polynomial` stands for)
            rest = [-(polynomial // p**i) % p for i in range(m)]
            powers, element = [1], 1
            while True:
                high, low = divmod(element, top)
                digits = [0] + [low // p**i % p for i in range(m - 1)]
                element = sum(
                    (digit + high * r) % p * p**i for i, (digit, r) in enumerate(zip(digits, rest, strict=True))
                )
                if element == 1 or len(powers) == q:
                    break
                powers.append(element)
            if element == 1 and len(powers) == q - 1:
                return np.array(powers, np.int64)
        raise AssertionError(f"GF({q}) has a primitive polynomial")


def generator_sets(field: GaloisField) -> tuple[Elements, Elements]:
    """Return the sets X and X' of GF(q) that make a Slim Fly, q = 4w + δ; with each element they hold its negative.

    δ = 1: even and odd powers of a primitive element ξ. δ = 0: ξ⁰, ξ², …, ξ^(q−2) and ξ, ξ³, …, ξ^(q−1). δ = −1: even
    powers below 2w − 1 and odd powers from there on; odd powers up to 2w − 1 and even powers beyond (Hafner 2004;
    Besta and Hoefler 2014).
    """
    q = field.q
    power = np.arange(q - 1)
    if q % 4 == 1:
        return field.powers[power % 2 == 0], field.powers[power % 2 == 1]
    if q % 4 == 0:
        return field.powers[np.arange(0, q - 1, 2)], field.powers[np.arange(1, q, 2) % (q - 1)]
    w = (q + 1) // 4
    x = np.concatenate([np.arange(0, 2 * w - 1, 2), np.arange(2 * w - 1, 4 * w - 2, 2)])
    other = np.concatenate([np.arange(1, 2 * w, 2), np.arange(2 * w, 4 * w - 1, 2)])
    return field.powers[x], field.powers[other % (q - 1)]
