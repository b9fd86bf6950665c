"""The port of ECMP, bit by bit from the words of any-routing.md (Spread)."""


def port_of(source: int, goal: int, entropy: int, router: int, ports: int) -> int:
    """Return the place of the port, 0 … ports − 1."""
    key = [(router + 1) * 2654435761 >> i & 1 for i in range(32)]
    key = [key[i] ^ (key[i + 16] if i < 16 else 0) for i in range(32)]
    s, d, e = ([number >> i & 1 for i in range(32)] for number in (source, goal, entropy * 668265263))
    a = [s[i] ^ d[i - 16] ^ e[i] ^ key[i] for i in range(32)]  # a[-1] is a[31]: rotated to the left
    b = [a[i] ^ (a[i - 6] & a[i - 9]) for i in range(32)]
    c = [b[i] ^ b[i - 7] ^ b[i - 16] ^ b[i - 19] ^ b[i - 27] for i in range(16)]
    f = [c[i] ^ (c[i - 1] & c[i - 5]) for i in range(16)]
    h = sum((f[i] ^ f[i - 5] ^ f[i - 7]) << i for i in range(16))
    bits = 8 if ports <= 16 else 16
    return ((h >> 16 - bits) * ports) // 2**bits
