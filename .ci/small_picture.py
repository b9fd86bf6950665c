"""PNG pictures with fewer colours and bytes, for the documentation."""

import io
from pathlib import Path
from typing import IO

from PIL import Image

_COLOURS, _WIDTH = 256, 1100  # with 64 thin curves of two colours became one
_KEEPS_RARE = Image.Quantize.MAXCOVERAGE  # the median cut mixed blue words into green ones


def write_small(picture: str | Path | IO[bytes], target: Path | IO[bytes]) -> None:
    """Write a picture with 256 colours, at most 1100 points wide."""
    with Image.open(picture) as whole:
        smaller = whole.convert("RGB")
        smaller.thumbnail((_WIDTH, 2 * _WIDTH))
        smaller.quantize(_COLOURS, _KEEPS_RARE, dither=Image.Dither.NONE).save(target, format="PNG", optimize=True)


def small(png: bytes) -> bytes:
    """Return the bytes of a smaller picture."""
    made = io.BytesIO()
    write_small(io.BytesIO(png), made)
    return made.getvalue()
