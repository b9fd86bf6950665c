"""In which order a stage of a pipeline takes microbatches: GPipe, 1F1B, 1F1B with virtual stages."""

from collections.abc import Callable
from typing import NamedTuple


class Pass(NamedTuple):
    """A microbatch through a part of the model that a stage holds.

    Attributes
    ----------
    forward : bool
        Forwards, not backwards.
    chunk : int
        Which part.
    microbatch : int
        Which microbatch.
    """

    forward: bool
    chunk: int
    microbatch: int


def gpipe(stage: int, stages: int, chunks: int, microbatches: int) -> list[Pass]:
    """All forwards, then all backwards in reverse (Huang et al. 2019)."""
    forwards = [Pass(True, 0, n) for n in range(microbatches)]
    return forwards + [Pass(False, 0, n) for n in reversed(range(microbatches))]


def one_forward_one_backward(stage: int, stages: int, chunks: int, microbatches: int) -> list[Pass]:
    """First p − 1 − s forwards, then one forwards and one backwards in turn (Narayanan et al. 2019)."""
    return _in_turn(
        min(stages - 1 - stage, microbatches), [Pass(True, 0, n) for n in range(microbatches)],
        [Pass(False, 0, n) for n in range(microbatches)],
    )  # fmt: skip


def interleaved(stage: int, stages: int, chunks: int, microbatches: int) -> list[Pass]:
    """Take p microbatches through each part in turn (Narayanan et al. 2021, section 2.2).

    First 2 (p − 1 − s) + (v − 1) p forwards; the parts go forwards from the first, backwards from the last.
    """
    forwards, backwards = [], []
    for number in range(microbatches * chunks):
        turn, inside = divmod(number, stages * chunks)
        chunk, microbatch = inside // stages, turn * stages + inside % stages
        forwards.append(Pass(True, chunk, microbatch))
        backwards.append(Pass(False, chunks - 1 - chunk, microbatch))
    ahead = 2 * (stages - 1 - stage) + (chunks - 1) * stages
    return _in_turn(min(ahead, len(forwards)), forwards, backwards)


def _in_turn(ahead: int, forwards: list[Pass], backwards: list[Pass]) -> list[Pass]:
    pairs = zip(forwards[ahead:], backwards, strict=False)
    behind = backwards[len(forwards) - ahead :]
    return [*forwards[:ahead], *(each for pair in pairs for each in pair), *behind]


ORDERS: dict[str, Callable[[int, int, int, int], list[Pass]]] = {
    "gpipe": gpipe, "1f1b": one_forward_one_backward, "interleaved": interleaved,
}  # fmt: skip
"""Name → passes of (stage, stages, virtual stages, microbatches), in order."""
