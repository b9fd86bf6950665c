"""Scripts of abc: from gates to cells."""

__all__ = ["EFFORTS", "QUICK", "RECIPES"]

_EXACT = "strash; ifraig; scorr; dc2; dc2; strash; &get -n; &syn3; &syn4; &put; dch -f; "
_LUTS = "strash; if -g -K 6 -C 8; strash; dch -f; if -g; strash; dch -f; "
_DEEP = _LUTS + "if -g; strash; dc2; dch -f; "
_SIZE = "topo; buffer -c; upsize -D {ps}; dnsize -D {ps}; stime -p"

_BUFFERED = "buffer -p -N 8; topo; upsize; dnsize; stime -p"

RECIPES: dict[str, str] = {
    "fraig-fast": "strash; &get -n; &fraig -x; &put; scorr; dc2; dch -f; map -B 0.9; topo; buffer -c; upsize; dnsize; "
    "stime -p",
    "lut-fast": _LUTS + "map -B 0.9; topo; buffer -c; upsize; dnsize; stime -p",
    "lut-buffered": _LUTS + "map -B 0.9; " + _BUFFERED,
    "exact-buffered": _EXACT + "map -B 0.9; " + _BUFFERED,
    "lut": _LUTS + "map; " + _SIZE,
    "deep": _DEEP + "map -B 0.5; " + _SIZE,
    "deep-fast": _DEEP + "map; topo; buffer -c; upsize; dnsize; stime -p",
    "exact": _EXACT + "map -B 0.5; " + _SIZE,
    "exact-fast": _EXACT + "map -B 0.9; topo; buffer -c; upsize; dnsize; stime -p",
    "choices": "strash; &get -n; &st; &dch -x; &put; map -B 0.9; topo; buffer -c; upsize; dnsize; stime -p",
    "area": _LUTS + "map -a; " + _SIZE,
}
"""Scripts of abc by name; ``{ps}`` stands for the wanted delay in ps."""

EFFORTS = (1.0, 0.95, 0.92, 0.88)
"""Shares of the aim that a recipe with ``{ps}`` is told to reach; the name of a result carries it."""

QUICK = ("lut-buffered", "exact-buffered", "lut-fast")
"""Those that take the least time, for large blocks."""
