"""What a configuration of BookSim 2 does not say, although its runs depend on it; given beside it."""

from dataclasses import dataclass
from pathlib import Path

from hopforge.model.input_file import read_input_text
from hopforge.sim.booksim.grammar import BooksimError

_LARGEST_MIB = 16


@dataclass(frozen=True)
class Supplement:
    """What is known beside the configuration.

    Attributes
    ----------
    folder : Path, optional
        Where network files are looked for first; default: beside the configuration.
    permutation : tuple of int, optional
        The destination of every terminal that BookSim has drawn for traffic ``randperm``.
    vc_by_hop : bool
        On ``anynet`` a packet takes the virtual channel whose number is that of the links already travelled: a change
        that users make to BookSim, whose own takes any.
    """

    folder: Path | None = None
    permutation: tuple[int, ...] | None = None
    vc_by_hop: bool = False


def read_permutation(path: Path) -> tuple[int, ...]:
    """Read the destination of terminal 0, 1, …: whole numbers between spaces.

    Raises
    ------
    BooksimError
        It cannot be read, or a word is no such number.
    """
    try:
        words = read_input_text(path, _LARGEST_MIB).split()
    except UnicodeDecodeError as error:
        raise BooksimError(f"--permutation {path}: not UTF-8 text (byte {error.start})") from error
    except OSError as error:
        raise BooksimError(f"--permutation {path}: {error.strerror or error}") from error
    for place, word in enumerate(words):
        if not (word.isascii() and word.isdigit() and len(word) < 9):
            raise BooksimError(f"--permutation {path}: expected the destination of terminal {place}, not {word[:40]!r}")
    return tuple(map(int, words))
