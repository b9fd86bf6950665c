"""Everything that an engine holds, as arrays."""

from typing import Any

import numpy as np

from hopforge.model.config.lookup import POLICIES
from hopforge.model.kernel.array_record import ArrayRecord
from hopforge.model.lookup.csr import COUNTERS, MODES, SECOND_LEVEL_COUNTERS, csr_map
from hopforge.model.lookup.fast import layout as at
from hopforge.model.lookup.fast.csr import take_shadow
from hopforge.model.lookup.params import LookupParams
from hopforge.model.numbers.crc import CrcMatrix, affine_tables, crc_tables
from hopforge.model.numbers.skew_matrices import skew_matrices


class CsrAddresses(ArrayRecord):
    """Word addresses that the kernel itself needs; -1 where the engine has no such register."""

    mode: int
    own: int
    own_hi: int
    level: int
    invalidate_hi: int
    radix: int
    value: int
    value_hi: int
    mask: int
    mask_hi: int
    output: int
    output_hi: int
    counters: int
    second_counters: int
    ctrl: int


class Lines(ArrayRecord):
    """Lines of one level, and what looks for them.

    ``params``, ``regs`` as in `EngineState`; ``valid``, ``tags``, ``outputs``, ``epochs`` int64[set, way]; ``order``
    int64[set · ways], the words of `model.lookup.replacement`; ``hash_table`` uint64[byte, 256]; ``skew_table``
    int64[way, byte, 256].
    """

    params: np.ndarray
    regs: np.ndarray
    valid: np.ndarray
    tags: np.ndarray
    outputs: np.ndarray
    epochs: np.ndarray
    order: np.ndarray
    hash_table: np.ndarray
    skew_table: np.ndarray


class EngineState(ArrayRecord):
    """Everything that an engine holds.

    ``params`` int64[P]; ``regs`` int64[S]; ``config`` int64[C]; ``shadow``, ``csr_kind``, ``csr_mask``, ``csr_reset``
    int64[128]; ``mshrs``, ``next_mshrs`` int64[mshr, M]; ``operations`` int64[stage, F]; of deep engines: ``responses``
    int64[place, X], ``late_inputs`` and ``late_events``, those of the cycle before; ``lines`` of the first
    level; ``rows`` int64[row, R]; ``written`` int64[R]; ``pipeline`` int64[latency + 1, T]; ``counters`` int64[10];
    ``totals`` int64[10], the counters if nobody ever cleared them; ``events`` int64[10], what the present cycle adds to
    both; ``program_steps`` int64[step, 5], ``program_roms`` int64[number], ``program_values`` int64[step]: of an
    expression, and room for its values. ``second_…``: the same of a second level, whose ``second_params`` are 0 if
    there is none; ``second_operations`` int64[stage, F]; ``second_asks`` int64[4, A], ``second_results`` int64[mshr,
    G]: queues on the way to the TCAM and back. Counters of an engine with a second level are two more.
    """

    params: np.ndarray
    addresses: CsrAddresses
    regs: np.ndarray
    config: np.ndarray
    shadow: np.ndarray
    csr_kind: np.ndarray
    csr_mask: np.ndarray
    csr_reset: np.ndarray
    mshrs: np.ndarray
    next_mshrs: np.ndarray
    operations: np.ndarray
    responses: np.ndarray
    late_inputs: np.ndarray
    late_events: np.ndarray
    lines: Lines
    rows: np.ndarray
    written: np.ndarray
    pipeline: np.ndarray
    counters: np.ndarray
    totals: np.ndarray
    events: np.ndarray
    program_steps: np.ndarray
    program_roms: np.ndarray
    program_values: np.ndarray
    second_params: np.ndarray
    second_regs: np.ndarray
    second_operations: np.ndarray
    second_asks: np.ndarray
    second_results: np.ndarray
    second_lines: Lines

    def counter_values(self) -> dict[str, int]:
        """Return the counters by name; those of a second level only if there is one."""
        return self._by_name(self.counters)

    def total_values(self) -> dict[str, int]:
        """Return what every counter would be if nobody had cleared it, by name."""
        return self._by_name(self.totals)

    @staticmethod
    def _by_name(values: np.ndarray) -> dict[str, int]:
        names = at.COUNTER_NAMES[: len(values)]
        return {name: int(value) for name, value in zip(names, values, strict=True)}


def engine_state(params: LookupParams) -> EngineState:
    """Return an engine after reset.

    Parameters
    ----------
    params : LookupParams
        What the engine is built with.
    """
    registers = csr_map(params)
    kind, mask, reset = (np.zeros(at.CSR_WORDS, np.int64) for _ in range(3))
    for register in registers:
        kind[register.address] = _csr_kind(register.name)
        mask[register.address] = register.write_mask
        reset[register.address] = register.reset
    hash_table = crc_tables(params.crc, params.address_bits)
    byte_count = hash_table.shape[0]
    skew = np.zeros((params.ways, byte_count, 256), np.int64)
    if params.skewed:
        for way, masks in enumerate(skew_matrices(params.address_bits, params.index_bits, params.ways)):
            skew[way] = affine_tables(CrcMatrix(masks, 0), params.address_bits).astype(np.int64)
    steps, roms = np.zeros((1, 5), np.int64), np.zeros(1, np.int64)
    if params.expression is not None:
        steps, _, roms = params.expression.program.arrays
    own, regs = _parameters(params), np.zeros(at.S_COUNT, np.int64)
    deep = params.pipeline_depth > at.SHALLOW_DEPTHS
    state = EngineState(
        params=own,
        addresses=_addresses(params),
        regs=regs,
        config=np.zeros(at.C_RADIX0 + params.radices, np.int64),
        shadow=reset & mask,
        csr_kind=kind,
        csr_mask=mask,
        csr_reset=reset,
        mshrs=np.zeros((params.mshrs, at.M_COUNT), np.int64),
        next_mshrs=np.zeros((params.mshrs, at.M_COUNT), np.int64),
        operations=np.zeros((at.DEEP_STAGES, at.F_DEEP_COUNT) if deep else (5, at.F_COUNT), np.int64),
        responses=np.zeros((at.DEEP_RESPONSES + params.memory_stage, at.X_COUNT), np.int64),
        late_inputs=np.zeros(len(at.INPUTS), np.int64),
        late_events=np.zeros(_counters(params), np.int64),
        lines=_lines(own, regs, params.sets, params.ways, hash_table, skew),
        rows=np.zeros((params.tcam_rows, at.R_COUNT), np.int64),
        written=np.zeros(at.R_COUNT, np.int64),
        pipeline=np.zeros((params.tcam_latency_cycles + 1, at.T_COUNT), np.int64),
        counters=np.zeros(_counters(params), np.int64),
        totals=np.zeros(_counters(params), np.int64),
        events=np.zeros(_counters(params), np.int64),
        program_steps=steps,
        program_roms=roms,
        program_values=np.zeros(len(steps), np.int64),
        **_second_arrays(params, hash_table, skew),
    )
    state.regs[at.S_LFSR] = state.second_regs[at.S_LFSR] = params.random_seed
    take_shadow.py_func(state)
    return state


def _counters(params: LookupParams) -> int:
    """Return how many counters are kept; those of faults are not."""
    return len(COUNTERS) + (0 if params.second_level is None else len(SECOND_LEVEL_COUNTERS))


def _lines(
    params: np.ndarray, regs: np.ndarray, sets: int, ways: int, hash_table: np.ndarray, skew_table: np.ndarray
) -> Lines:
    """Return the lines of a level after reset."""
    arrays = {name: np.zeros((sets, ways), np.int64) for name in ("valid", "tags", "outputs", "epochs")}
    order = np.zeros(sets * ways, np.int64)
    return Lines(params=params, regs=regs, order=order, hash_table=hash_table, skew_table=skew_table, **arrays)


def _second_arrays(params: LookupParams, hash_table: np.ndarray, skew_table: np.ndarray) -> dict[str, Any]:
    """Return the arrays of the second level after reset; as small as can be if there is none."""
    second = params.second_level
    sets, ways, registers = (1, 1, 1) if second is None else (second.sets, second.ways, second.request_registers)
    own = np.zeros_like(_parameters(params)) if second is None else _parameters(params.second_lines)
    regs = np.zeros(at.S_SECOND_COUNT, np.int64)
    return {
        "second_params": own,
        "second_regs": regs,
        "second_operations": np.zeros((at.SECOND_R + registers, at.F_DEEP_COUNT), np.int64),
        "second_asks": np.zeros((at.SECOND_ASKS, at.A_COUNT), np.int64),
        "second_results": np.zeros((params.mshrs, at.G_COUNT), np.int64),
        "second_lines": _lines(own, regs, sets, ways, hash_table, skew_table),
    }


def _csr_kind(name: str) -> int:
    if name in {"CTRL", "STATUS", "TCAM_WRITE"}:
        return {"CTRL": at.K_CTRL, "STATUS": at.K_STATUS, "TCAM_WRITE": at.K_TCAM_WRITE}[name]
    if name in {"MODE", "LEVEL", "OWN_LO", "OWN_HI"} or name.startswith("RADIX"):
        return at.K_CONFIG
    if name == "INVALIDATE_LO":
        return at.K_INVALIDATE
    # counters of lines with changed bits stay 0: faults are not in the kernel
    return at.K_COUNTER if name.removeprefix("COUNT_").lower() in at.COUNTER_NAMES else at.K_WORD


def _parameters(params: LookupParams) -> np.ndarray:
    values = {
        at.P_A: params.address_bits,
        at.P_DEPTH: params.pipeline_depth,
        at.P_SETS: params.sets,
        at.P_WAYS: params.ways,
        at.P_POLICY: POLICIES.index(params.policy),
        at.P_SKEWED: int(params.skewed),
        at.P_EPOCHS: 1 << params.epoch_bits,
        at.P_MSHRS: params.mshrs,
        at.P_TCAM: ("flops", "sram", "external").index(params.tcam_kind),
        at.P_LATENCY: params.tcam_latency_cycles,
        at.P_OUTPUT_MASK: _signed((1 << params.output_bits) - 1),
        at.P_COMPARATORS: params.comparators,
        at.P_CHUNKS: len(params.chunk_bits),
        at.P_MAX_MEMBERS: params.max_members,
        at.P_FUNCTIONS: sum(1 << MODES.index(name) for name in params.functions),
        at.P_ROWS: params.tcam_rows,
        at.P_RADICES: params.radices,
        at.P_MEMORY_STAGE: int(params.memory_stage),
    }
    return np.array([values[index] for index in range(at.P_CHUNK0)] + list(params.chunk_bits), np.int64)


def _addresses(params: LookupParams) -> CsrAddresses:
    registers = csr_map(params)

    def address(name: str) -> int:
        return registers[name].address if name in registers else -1

    return CsrAddresses(
        mode=address("MODE"), own=address("OWN_LO"), own_hi=address("OWN_HI"), level=address("LEVEL"),
        invalidate_hi=address("INVALIDATE_HI"), radix=address("RADIX0"), value=address("TCAM_VALUE_LO"),
        value_hi=address("TCAM_VALUE_HI"), mask=address("TCAM_MASK_LO"), mask_hi=address("TCAM_MASK_HI"),
        output=address("TCAM_OUTPUT_LO"), output_hi=address("TCAM_OUTPUT_HI"),
        counters=address(f"COUNT_{COUNTERS[0][0].upper()}"),
        second_counters=address(f"COUNT_{SECOND_LEVEL_COUNTERS[0][0].upper()}"), ctrl=address("CTRL"),
    )  # fmt: skip


def _signed(word: int) -> int:
    return word - (1 << 64) if word >> 63 else word
