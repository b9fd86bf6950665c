"""Random software at the register bus of a lookup engine."""

from collections.abc import Iterator

import numpy as np

from hopforge.model.lookup.csr import COUNTERS, CSR_ADDR_BITS, MODES, SECOND_LEVEL_COUNTERS, CsrMap, csr_map
from hopforge.model.lookup.params import LookupParams
from hopforge.sim.drive.stimulus_destinations import near_addresses
from hopforge.sim.drive.stimulus_traffic import Traffic

__all__ = ["OWN_WORD", "TARGET_HI", "TARGET_LO", "bus_program"]

OWN_WORD, TARGET_LO, TARGET_HI = range(3)
"""What a write carries: its own word, or low or high word of an address in use (the first one chooses it)."""

_OPERATIONS = 512
_SWITCHING = {"switch": 6.0, "configuration": 2.0, "invalidate": 1.0, "read": 0.5, "flush": 0.5}
"""What software does in traffic that is `switching`, and how often beside the others."""
_COUNTING = {"counters": 2.0, "invalidate": 4.0, "flush": 2.0, "enable": 0.3}
"""The same of traffic that is `counting`."""

_PERIOD_OPERATIONS = 32


def bus_program(
    params: LookupParams,
    traffic: Traffic,
    setup: tuple[tuple[str, int], ...],
    rng: np.random.Generator,
    centres: np.ndarray,
) -> tuple[np.ndarray, int]:
    """Return int64[operation, (cycles before, write, read, address, data, whose word)] and where to repeat from."""
    registers = csr_map(params)
    begin = list(_begin(params, registers, traffic, setup, rng, centres))
    rows = [(0, *row) for row in _all_counters(registers)] if traffic.thorough else []
    rows += [(0, 1, 0, registers[name].address, data, OWN_WORD) for name, data in begin]
    repeat_from = len(rows)
    for number in range(_OPERATIONS):
        if number % _PERIOD_OPERATIONS == 0:
            calm = bool(rng.random() < 0.5)
        operation = list(_operation(params, registers, traffic, setup, rng, centres, calm=calm))
        gap = int(rng.geometric(1 / max(1, traffic.quiet_cycles)))
        for index, (write, read, address, data, word) in enumerate(operation):
            rows.append((gap if index == 0 else int(rng.integers(0, 3)), write, read, address, data, word))
    return np.array(rows, np.int64), repeat_from


def _begin(
    params: LookupParams,
    registers: CsrMap,
    traffic: Traffic,
    setup: tuple[tuple[str, int], ...],
    rng: np.random.Generator,
    centres: np.ndarray,
) -> Iterator[tuple[str, int]]:
    if params.tcam_kind != "external":
        for row in range(min(params.tcam_rows, 8 if params.tcam_kind == "flops" else 1)):
            yield from _tcam_row(params, registers, rng, row, thorough=traffic.thorough)
    if setup:
        yield from setup
    else:
        for name in ("MODE", "OWN_LO", "LEVEL", *(f"RADIX{index}" for index in range(params.radices))):
            yield name, _configuration(params, registers, rng, name, centres)
    yield "CTRL", registers["CTRL"].encode(enable=1)


def _tcam_row(
    params: LookupParams, registers: CsrMap, rng: np.random.Generator, row: int, *, thorough: bool
) -> Iterator[tuple[str, int]]:
    """Write a row that matches a good part of all addresses; `thorough`: any bit of an address may decide."""
    care = int(rng.integers(0, 1 << params.address_bits)) & int(rng.integers(0, 1 << params.address_bits))
    care &= int(rng.integers(0, 1 << params.address_bits)) & 0xFFFFFFFFFF0F0F
    if thorough:
        care = sum(1 << int(bit) for bit in {*rng.integers(0, params.address_bits, rng.integers(0, 4))})
    words = {
        "TCAM_VALUE": int(rng.integers(0, 1 << params.address_bits)),
        "TCAM_MASK": care,
        "TCAM_OUTPUT": int(rng.integers(0, 1 << 62)) & (1 << params.output_bits) - 1,
    }
    for name, word in words.items():
        yield f"{name}_LO", word & 0xFFFFFFFF
        if f"{name}_HI" in registers:
            yield f"{name}_HI", word >> 32
    valid, lag = int(rng.random() < 0.85), int(rng.integers(0, 2))
    yield "TCAM_WRITE", registers["TCAM_WRITE"].encode(row=row, lag=lag, valid=valid)


def _configuration(
    params: LookupParams, registers: CsrMap, rng: np.random.Generator, name: str, centres: np.ndarray
) -> int:
    """Return a random word for a configuration register: mostly sensible, sometimes any bits."""
    if rng.random() < 0.05:
        return int(rng.integers(0, 1 << 32))
    if name == "MODE":
        return registers["MODE"].encode(
            mode=MODES.index(rng.choice(params.functions)),
            chunk_select=int(rng.integers(0, len(params.chunk_bits))),
            up_choice=int(rng.integers(0, 2)),
            member_hash=int(rng.integers(0, 2)),
            members=int(rng.integers(1, params.max_members + 1)),
        )
    if name == "LEVEL":
        return registers["LEVEL"].encode(level=int(rng.integers(0, 4)), digits=int(rng.integers(0, params.radices + 2)))
    if name.startswith("RADIX"):
        return int(rng.integers(1, 1 << int(rng.integers(2, 10))))
    if len(centres):
        return int(rng.choice(centres)) & 0xFFFFFFFF
    return int(rng.integers(0, 1 << 32)) & (0xFFF if rng.random() < 0.5 else 0xFFFFFFFF)


def _drawn_kind(traffic: Traffic, rng: np.random.Generator, *, calm: bool) -> str:
    """Return the kind of the next operation."""
    kinds = ["invalidate", "read", "clear", "flush", "row", "configuration", "enable", "change", "any"]
    weights = np.array([4.0, 4, 0.2, 2, 2, 2 * traffic.change_configuration, 0.7, 0.4, 0.3])
    if calm:
        weights[3:] = 0
    if traffic.thorough:
        kinds += ["counters", "beside", "switch"]
        weights = np.append(weights, [0.5, 1.0, 0.0 if calm else 2.0 * traffic.change_configuration])
    for chosen, mix in ((traffic.switching, _SWITCHING), (traffic.counting, _COUNTING)):
        if chosen:
            weights = np.array([mix.get(kind, 0.0) for kind in kinds])
    return str(rng.choice(kinds, p=weights / weights.sum()))


def _configuration_writes(
    params: LookupParams,
    registers: CsrMap,
    traffic: Traffic,
    setup: tuple[tuple[str, int], ...],
    rng: np.random.Generator,
    centres: np.ndarray,
) -> Iterator[tuple[str, int]]:
    """Yield names and words of configuration registers: those of a switch of the network again, or one of them."""
    if setup and rng.random() < 0.5:
        # random registers alone seldom make dimensions after the first one decide
        for name, word in setup:
            own = rng.choice(np.array(traffic.addresses)) if name == "OWN_LO" and traffic.addresses else word
            yield name, int(own) & 0xFFFFFFFF
        return
    radices = [f"RADIX{index}" for index in range(params.radices)]
    name = rng.choice(["MODE", "MODE", "LEVEL", "OWN_LO", rng.choice(radices)])
    yield name, _configuration(params, registers, rng, name, centres)
    if name == "OWN_LO" and "OWN_HI" in registers:
        yield "OWN_HI", int(rng.choice(centres)) >> 32 if len(centres) else int(rng.integers(0, 1 << 16))


def _operation(
    params: LookupParams,
    registers: CsrMap,
    traffic: Traffic,
    setup: tuple[tuple[str, int], ...],
    rng: np.random.Generator,
    centres: np.ndarray,
    *,
    calm: bool,
) -> Iterator[tuple[int, int, int, int, int]]:
    """Yield the bus cycles (write, read, address, data, whose word) of one random operation.

    Nothing that empties the cache while it is `calm`.
    """
    ctrl = registers["CTRL"]

    def write(name: str, data: int, word: int = OWN_WORD) -> tuple[int, int, int, int, int]:
        return 1, int(rng.random() < 0.1), registers[name].address, data, word

    kind = _drawn_kind(traffic, rng, calm=calm)
    if kind == "flush":
        yield write("CTRL", ctrl.encode(enable=1, flush=1))
    elif kind == "invalidate":
        for _ in range(int(rng.integers(1, 4))):
            any_address = int(rng.integers(0, 1 << params.address_bits))
            in_use = rng.random() < 0.85
            if "INVALIDATE_HI" in registers:
                yield write("INVALIDATE_HI", any_address >> 32, TARGET_HI if in_use else OWN_WORD)
            yield write("INVALIDATE_LO", any_address & 0xFFFFFFFF, TARGET_LO if in_use else OWN_WORD)
    elif kind == "read":
        for _ in range(int(rng.integers(1, 5))):
            name = rng.choice([register.name for register in registers])
            yield 0, 1, registers["STATUS" if rng.random() < 0.3 else name].address, 0, OWN_WORD
    elif kind == "row" and params.tcam_kind != "external":
        row = int(rng.integers(0, min(params.tcam_rows + 1, 12)))
        for name, data in _tcam_row(params, registers, rng, row, thorough=traffic.thorough):
            yield write(name, data)
    elif kind == "configuration":
        for name, data in _configuration_writes(params, registers, traffic, setup, rng, centres):
            yield write(name, data)
    elif kind == "enable":
        yield write("CTRL", 0)
        yield write("CTRL", ctrl.encode(enable=1))
    elif kind == "change":
        yield write("CTRL", ctrl.encode(enable=1, topology_change=1))
        yield 0, 1, registers["STATUS"].address, 0, OWN_WORD
        yield write("CTRL", ctrl.encode(enable=1))
    elif kind == "clear":
        yield write("CTRL", ctrl.encode(enable=1, clear_counters=1))
    elif kind == "counters":
        yield from _all_counters(registers)
    elif kind == "beside":
        yield from _beside(registers, rng)
    elif kind == "switch":
        for name, word in _switch(params, registers, rng, centres, beside=traffic.switching):
            yield write(name, word)
    elif kind == "any":
        word = int(rng.integers(0, 1 << 32)) & ~ctrl.field("enable").mask
        yield 1, 1, int(rng.integers(0, 1 << CSR_ADDR_BITS)), word, OWN_WORD
        yield write("CTRL", ctrl.encode(enable=1))


def _all_counters(registers: CsrMap) -> Iterator[tuple[int, int, int, int, int]]:
    for name, _ in (*COUNTERS, *SECOND_LEVEL_COUNTERS):
        if f"COUNT_{name.upper()}" in registers:
            yield 0, 1, registers[f"COUNT_{name.upper()}"].address, 0, OWN_WORD


def _beside(registers: CsrMap, rng: np.random.Generator) -> Iterator[tuple[int, int, int, int, int]]:
    """Write and read where nothing is, one bit of the address away from a register that a write would change."""
    taken = {register.address for register in registers}
    for _ in range(4):
        register = registers["CTRL"] if rng.random() < 0.2 else list(registers)[int(rng.integers(len(taken)))]
        address = register.address ^ 1 << int(rng.integers(CSR_ADDR_BITS))
        if address not in taken:
            yield 1, 1, address, int(rng.integers(0, 1 << 32)), OWN_WORD
            yield 0, 1, register.address, 0, OWN_WORD


def _switch(
    params: LookupParams, registers: CsrMap, rng: np.random.Generator, centres: np.ndarray, *, beside: bool = False
) -> Iterator[tuple[str, int]]:
    """Yield the registers of a switch of another network: radices as digits have values, so that bounds decide.

    Its own address may lie `beside` that of the destinations, so that any digit of the two can differ; all digits that
    there are then count half of the time.
    """
    chunk = int(rng.integers(len(params.chunk_bits)))
    digits = params.digits(params.chunk_bits[chunk])
    fields = registers["MODE"].decode(_configuration(params, registers, rng, "MODE", centres))
    yield "MODE", registers["MODE"].encode(**{**fields, "chunk_select": chunk})
    used = digits if beside and rng.random() < 0.5 else int(rng.integers(1, digits + 1))
    yield "LEVEL", registers["LEVEL"].encode(level=int(rng.integers(digits)), digits=used)
    if beside and len(centres):
        own = int(near_addresses(params, centres, 1, rng)[0] if rng.random() < 0.5 else rng.choice(centres))
        yield "OWN_LO", own & 0xFFFFFFFF
        if "OWN_HI" in registers:
            yield "OWN_HI", own >> 32
    else:
        yield "OWN_LO", _configuration(params, registers, rng, "OWN_LO", centres)
    for index in range(min(digits, params.radices)):
        yield f"RADIX{index}", int(rng.integers(1, (1 << params.chunk_bits[chunk]) + 2))
