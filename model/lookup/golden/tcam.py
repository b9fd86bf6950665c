"""The TCAM inside of the engine, and the answers of one outside."""

from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

from hopforge.model.lookup.golden.ports import LookupInputs
from hopforge.model.lookup.params import LookupParams

SRAM_WRITE_CYCLES = 256


class TcamResult(NamedTuple):
    """Answer of the TCAM; without a match the output is 0."""

    match: int = 0
    output: int = 0


class TcamRow(NamedTuple):
    """A row of the TCAM: a bit set in `mask` must equal that of `value`; `lag` adds the member to the output."""

    valid: int
    value: int
    mask: int
    output: int
    lag: int


@dataclass
class _TcamLookup:
    id: int
    dst: int
    member: int
    due: int  # cycles until the answer
    result: TcamResult | None = None


class InsideTcam:
    """The TCAM inside the engine, flops or sram; once per cycle call `answer`, then `accept`, `commit`, then `edge`.

    Parameters
    ----------
    params : LookupParams
        The engine.

    Attributes
    ----------
    row_effective : bool
        Whether this is the first cycle in which a committed row takes part.
    """

    def __init__(self, params: LookupParams) -> None:
        self._params = params
        self._rows = [TcamRow(0, 0, 0, 0, 0)] * params.tcam_rows
        self._pipeline: deque[_TcamLookup] = deque()
        self._write: tuple[int, TcamRow] | None = None
        self._busy_cycles = 0
        self.row_effective = False

    @property
    def busy(self) -> bool:
        """Whether a row is being written: no lookup can be accepted."""
        return self._busy_cycles > 0

    def answer(self) -> tuple[int, TcamResult] | None:
        """Compare and count down at the start of a cycle; return the answer of this cycle."""
        for lookup in self._pipeline:
            lookup.due -= 1
            if lookup.result is None:
                lookup.result = self._match(lookup)
        if self._pipeline and self._pipeline[0].due == 0:
            lookup = self._pipeline.popleft()
            assert lookup.result is not None
            return lookup.id, lookup.result
        return None

    def accept(self, mshr: int, dst: int, member: int) -> None:
        """Take the lookup of `dst` for an MSHR."""
        lookup = _TcamLookup(mshr, dst, member, self._params.tcam_latency_cycles)
        compares_later = self._params.tcam_kind == "flops" and self._params.tcam_latency_cycles > 1
        if not compares_later:
            lookup.result = self._match(lookup)
        self._pipeline.append(lookup)

    def commit(self, row: int, content: TcamRow) -> bool:
        """Begin to write a row; return whether that was an overrun."""
        if row >= self._params.tcam_rows:
            return False
        if self.busy:
            return True
        self._write = row, content
        return False

    def edge(self) -> None:
        """End the cycle."""
        self.row_effective = False
        if self._params.tcam_kind == "sram":
            if self._busy_cycles:
                self._busy_cycles -= 1
                if not self._busy_cycles:
                    self._take_effect()
            elif self._write:
                self._busy_cycles = SRAM_WRITE_CYCLES
        elif self._write:
            self._take_effect()

    def _take_effect(self) -> None:
        assert self._write is not None
        row, content = self._write
        self._rows[row] = content
        self._write = None
        self.row_effective = True

    def _match(self, lookup: _TcamLookup) -> TcamResult:
        for row in self._rows:
            if row.valid and (lookup.dst ^ row.value) & row.mask == 0:
                output = row.output + (lookup.member if row.lag else 0)
                return TcamResult(1, output & (1 << self._params.output_bits) - 1)
        return TcamResult(0, 0)


def external_answer(inputs: LookupInputs) -> tuple[int, TcamResult] | None:
    """Return (MSHR, answer) of a TCAM outside in this cycle."""
    if not inputs.tcam_resp_valid:
        return None
    # the definition: without a match the output is 0
    output = inputs.tcam_resp_output if inputs.tcam_resp_match else 0
    return inputs.tcam_resp_id, TcamResult(inputs.tcam_resp_match, output)
