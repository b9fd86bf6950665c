"""Bench of `hw.lookup.tcam`: lookups and row writes, and the answers of the golden TCAM, in every cycle."""

import numpy as np

from hopforge.hw.lookup.tcam import ROW_NUMBER_BITS, Tcam
from hopforge.model.lookup.golden.tcam import InsideTcam, TcamRow
from hopforge.model.lookup.params import LookupParams
from hopforge.sim.drive.replay import Bench, Output, Replay, as_words

_INPUTS = (
    "req_valid", "req_id", "req_dst", "commit", "commit_row", "commit_value", "commit_mask", "commit_output",
    "commit_valid",
)  # fmt: skip
_OUTPUTS = (
    Output("req_ready"), Output("resp_valid"), Output("resp_id", "resp_valid"), Output("resp_match", "resp_valid"),
    Output("resp_output", "resp_valid"), Output("busy"), Output("effective"), Output("overrun"),
)  # fmt: skip


def tcam_bench(params: LookupParams, count: int, rng: np.random.Generator) -> Bench:
    """Return a bench of the TCAM inside.

    Parameters
    ----------
    params : LookupParams
        The engine whose TCAM it is; `tcam_kind` flops or sram.
    count : int
        Cycles.
    rng : numpy.random.Generator
        Draws idle cycles, destinations and rows; some rows do not exist, some commits come while it is busy.
    """
    limit, id_bits = 1 << params.address_bits, params.mshr_id_bits
    golden = InsideTcam(params)
    driven, expected = [], []
    pool = [int(word) for word in rng.integers(0, limit, 6)]
    for _ in range(count):
        valid, commit = int(rng.random() < 0.8), int(rng.random() < 0.05)
        row = int(rng.integers(0, min(params.tcam_rows + 2, 1 << ROW_NUMBER_BITS)))
        number = int(rng.integers(0, 1 << id_bits))
        dst = pool[int(rng.integers(0, 6))] ^ int(rng.random() < 0.2)
        mask = int(rng.integers(0, limit)) & int(rng.integers(0, limit)) & int(rng.integers(0, limit))
        written = TcamRow(
            int(rng.random() < 0.8), pool[int(rng.integers(0, 6))], mask, int(rng.integers(0, 1 << 16)), 0
        )
        answer = golden.answer()
        ready, busy, effective = int(not golden.busy), int(golden.busy), int(golden.row_effective)
        if valid and ready:
            golden.accept(number, dst, 0)
        overrun = int(bool(commit and golden.commit(row, written)))
        golden.edge()
        driven.append([
            valid, number, dst, commit, row, written.value, written.mask, written.output, written.valid,
        ])  # fmt: skip
        result = (1, answer[0], *answer[1]) if answer else (0, 0, 0, 0)
        expected.append([ready, *result, busy, effective, overrun])
    component = Tcam(
        kind=params.tcam_kind, rows=params.tcam_rows, address_bits=params.address_bits, output_bits=16,
        id_bits=id_bits, latency_cycles=params.tcam_latency_cycles,
    )  # fmt: skip
    return Bench("tcam", component, Replay(_INPUTS, _OUTPUTS, as_words(driven), as_words(expected)))
