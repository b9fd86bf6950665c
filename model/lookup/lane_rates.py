"""Rates of lookups of a link whose wavelengths have engines of their own (docs/definitions/wavelengths.md)."""

from collections.abc import Sequence

__all__ = ["lane_rate"]


def lane_rate(
    packets: Sequence[int], misses: Sequence[int], *, cache_ns: float, tcam_ns: float, shared: float = 0.0
) -> float:
    """Return the most packets per second that a link with these packets can look up.

    n / max_l max(n_l·t_cache, m_l·t_cam) if every lane has a TCAM, else n / max(max_l n_l·t_cache, s·m·t_cam).

    Parameters
    ----------
    packets, misses : sequence of int [lane]
        n_l and m_l; there is a packet.
    cache_ns, tcam_ns : float
        Times of a lookup.
    shared : float
        s: links with this many misses that share a TCAM; 0: every lane has one.

    Examples
    --------
    >>> lane_rate([60, 40], [3, 2], cache_ns=1, tcam_ns=25) / 1e9
    1.3333333333333333
    >>> lane_rate([60, 40], [3, 2], cache_ns=1, tcam_ns=25, shared=1) / 1e9
    0.8
    """
    if not sum(packets) > 0:
        raise ValueError("packets must be at least 1 in all, not 0")
    if len(packets) != len(misses):
        raise ValueError(f"misses must be as many as packets={len(packets)}, not {len(misses)}")
    caches = max(packets) * cache_ns
    tcams = (shared * sum(misses) if shared else max(misses)) * tcam_ns
    return sum(packets) / max(caches, tcams) * 1e9
