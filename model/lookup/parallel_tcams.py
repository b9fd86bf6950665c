"""TCAMs that are searched in turns, one `step` per cycle, from docs/definitions/parallel-tcams.md."""

from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["Answer", "ParallelTcamsModel", "TurnOutputs"]


class Answer(NamedTuple):
    """What a TCAM found: whether a row matches, and its output."""

    match: int
    output: int


class TurnOutputs(NamedTuple):
    """Outputs in one cycle: accepted, TCAM that is asked (None: none), tag and answer that stand there (None: none)."""

    ready: bool
    asks: int | None
    answer: tuple[int, Answer] | None


class ParallelTcamsModel:
    """The dispatcher of K TCAMs.

    Parameters
    ----------
    tcams : int
        K.

    Attributes
    ----------
    accepted, left : int
        Requests and answers up to now.
    """

    def __init__(self, tcams: int) -> None:
        self.tcams = tcams
        self.accepted = self.left = 0
        self._tag: list[int | None] = [None] * tcams  # of a busy TCAM
        self._kept: list[Answer | None] = [None] * tcams

    def step(
        self, tag: int | None, resp_ready: bool, takes: Sequence[bool], answers: Sequence[Answer | None]
    ) -> TurnOutputs:
        """Go through one cycle.

        Parameters
        ----------
        tag : int or None
            Tag of the request, if there is one.
        resp_ready : bool
            Whether an answer can leave.
        takes, answers : sequence
            For each TCAM, whether it takes requests, and its answer.
        """
        turn, oldest = self.accepted % self.tcams, self.left % self.tcams
        idle = self._tag[turn] is None
        kept, kept_tag = self._kept[oldest], self._tag[oldest]
        shown = None if kept is None or kept_tag is None else (kept_tag, kept)
        outputs = TurnOutputs(idle and takes[turn], turn if idle and tag is not None else None, shown)

        for k, answer in enumerate(answers):
            if answer is not None:
                self._kept[k] = answer
        if shown is not None and resp_ready:
            self._tag[oldest] = self._kept[oldest] = None
            self.left += 1
        if tag is not None and outputs.ready:
            self._tag[turn] = tag
            self.accepted += 1
        return outputs
