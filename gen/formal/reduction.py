"""Proofs for all inputs that node reduction and CRCs are what the specification says; each must fail on a mutant.

The specification is written here a second time, in its own words: subtract and threshold for mesh and torus, digit by
digit for fat trees, field by field for dragonflies, division bit by bit for members, the shift register for CRCs.
"""

import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from amaranth.hdl import Array, Cat, Const, Elaboratable, Module, Mux, Signal, Value, signed

from hopforge.gen.formal.induction import planted
from hopforge.gen.tools.yosys import YosysError, run_yosys
from hopforge.gen.verilog.writer import rtlil_text
from hopforge.hw.keys.node_reduction import NodeReduction
from hopforge.hw.keys.reduction_parameters import MODES, ReductionParameters
from hopforge.hw.keys.reduction_setup import ReductionSetup
from hopforge.hw.parts.crc_hash import CrcHash
from hopforge.model.numbers.crc import crc_matrix
from hopforge.model.numbers.crc_catalogue import crc_spec

__all__ = ["AffineProof", "Proof", "ProofResult", "crc_proofs", "member_proofs", "prove", "reduction_proofs"]

_LOAD = ("read_rtlil claim.il", "hierarchy -top claim", "proc -norom", "flatten")
_SIMPLIFY = "opt -full\ntechmap\nopt -full\nopt_clean -purge"


class Claim(Elaboratable):
    """Circuit of a proof: whenever ``assumed`` is 1, ``equal`` is 1."""

    def __init__(self) -> None:
        self.inputs: list[Value] = []
        self.assumed = Signal()
        self.equal = Signal()
        self.outputs: list[Value] = [self.assumed, self.equal]


@dataclass(frozen=True, kw_only=True)
class Proof:
    """A claim about logic without registers.

    Parameters
    ----------
    name : str
        What is proved.
    build : callable
        Makes the circuit.
    mutant : tuple of str
        Wire of the flattened circuit and what it is tied to; with this fault the proof must fail.
    """

    name: str
    build: Callable[[], Claim]
    mutant: tuple[str, str]


@dataclass(frozen=True, kw_only=True)
class AffineProof:
    """A claim that a circuit of XOR gates alone has the output ``difference`` 0 for every ``data``.

    Such a circuit is affine over GF(2), so that it is 0 everywhere if it is 0 at 0 and at the unit vectors; that no
    other gate is left is checked. A solver, that knows nothing of linear functions, needs minutes.

    Parameters
    ----------
    name : str
        What is proved.
    build : callable
        Makes the circuit; with True, one with a fault.
    """

    name: str
    build: Callable[[bool], Claim]


@dataclass(frozen=True)
class ProofResult:
    """Outcome: ``proved``; ``possible``: something fulfils the assumptions; ``mutant_fails``: the fault was found."""

    name: str
    proved: bool
    possible: bool
    mutant_fails: bool

    @property
    def passed(self) -> bool:
        """Whether the claim holds and says something."""
        return self.proved and self.possible and self.mutant_fails


class _ReductionClaim(Claim):
    """Setup and reduction against the definition, in one mode with one chunk width; the hardware has them all."""

    def __init__(self, parameters: ReductionParameters, mode: str, chunk: int) -> None:
        super().__init__()
        self.parameters = p = parameters
        self.mode = mode
        self.chunk = chunk
        self.dst = Signal(p.address_bits)
        self.own = Signal(p.address_bits)
        self.digits = Signal(5)
        self.level = Signal(5)
        self.radix = [Signal(9, name=f"radix{i}") for i in range(p.most_digits)]
        self.up_choice = Signal()
        self.inputs = [self.dst, self.own, self.digits, self.level, *self.radix, self.up_choice]

    def digit(self, word: Value, number: int) -> Value:
        """Digit of a word; 0 beyond its end."""
        return Cat(word[number * self.chunk : (number + 1) * self.chunk], Const(0, self.chunk))[: self.chunk]

    def elaborate(self, platform: object) -> Module:
        """Connect hardware and definition."""
        m = Module()
        p = self.parameters
        m.submodules.setup = setup = ReductionSetup(p)
        m.submodules.dut = dut = NodeReduction(p)
        m.d.comb += [
            setup.shadow.mode.eq(MODES.index(self.mode)),
            setup.shadow.chunk_select.eq(p.chunk_bits.index(self.chunk)),
            setup.shadow.digits.eq(self.digits),
            setup.shadow.level.eq(self.level),
            setup.shadow.own.eq(self.own),
            setup.shadow.members.eq(1),
            setup.shadow.up_choice.eq(self.up_choice),
            dut.active.eq(setup.active),
            dut.dst.eq(self.dst),
        ]
        m.d.comb += [setup.shadow.radix[i].eq(self.radix[i]) for i in range(p.most_digits)]
        kind = Signal(2)
        value = Signal(p.value_bits)
        expected = Signal(p.key_bits)
        if self.mode in ("mesh", "torus"):
            self._grid(m, kind, value)
        elif self.mode == "fat_tree":
            self._fat_tree(m, kind, value)
        elif self.mode == "dragonfly":
            self._dragonfly(m, kind, value)
        else:
            m.d.comb += self.assumed.eq(1)
        if self.mode == "arbitrary":
            m.d.comb += expected.eq(self.dst)
        else:
            m.d.comb += expected.eq(Cat(value, kind, Const(0, 4), Const(MODES.index(self.mode), 4)))
        m.d.comb += self.equal.eq((dut.key == expected) & (dut.payload == expected[: p.address_bits]))
        return m

    def _grid(self, m: Module, kind: Value, value: Value) -> None:
        """Go through the dimensions: the first whose offset is not 0 decides by its sign and the threshold."""
        most = self.parameters.digits(self.chunk)
        fits = [self.digits >= 1, self.digits <= most]
        m.d.comb += [kind.eq(0), value.eq(Array(self.digit(self.dst, i) for i in range(32))[self.digits])]
        for i in reversed(range(most)):
            d, c, k = self.digit(self.dst, i), self.digit(self.own, i), self.radix[i]
            used = self.digits > i
            fits.append(~used | ((k >= 1) & (k <= 1 << self.chunk) & (d < k) & (c < k)))
            offset = Signal(signed(self.chunk + 2), name=f"offset{i}")
            half = Signal(signed(self.chunk + 2), name=f"half{i}")
            m.d.comb += [offset.eq(d.as_unsigned() - c.as_unsigned()), half.eq(k >> 1)]
            shorter = Mux(offset > half, 0, Mux(offset > 0, 1, offset < -half))
            plus = offset > 0 if self.mode == "mesh" else shorter
            with m.If(used & (offset != 0)):  # later statements win: dimension 0 comes last
                m.d.comb += [kind.eq(Mux(plus, 1, 2)), value.eq(i)]
        m.d.comb += self.assumed.eq(Cat(*fits).all())

    def _fat_tree(self, m: Module, kind: Value, value: Value) -> None:
        """Up if a digit of the destination at or above this level is not that of the switch, else down."""
        most = self.parameters.digits(self.chunk)
        m.d.comb += [
            self.assumed.eq((self.digits < most) & (self.level <= self.digits)),
            kind.eq(2),
            value.eq(Array(self.digit(self.dst, i) for i in range(32))[self.level]),
        ]
        for i in range(most - 1):  # later statements win: the highest mismatch
            compared = (self.level <= i) & (self.digits > i)
            with m.If(compared & (self.digit(self.dst, i + 1) != self.digit(self.own, i))):
                m.d.comb += kind.eq(1)
                with m.If(self.up_choice):
                    m.d.comb += value.eq(self.digit(self.dst, i))

    def _dragonfly(self, m: Module, kind: Value, value: Value) -> None:
        """Group, else router, else terminal."""
        low = 2 * self.chunk
        m.d.comb += self.assumed.eq(1)
        with m.If(self.dst[low:] != self.own[low:]):
            m.d.comb += [kind.eq(2), value.eq(self.dst[low:])]
        with m.Elif(self.digit(self.dst, 1) != self.digit(self.own, 1)):
            m.d.comb += [kind.eq(1), value.eq(self.digit(self.dst, 1))]
        with m.Else():
            m.d.comb += [kind.eq(0), value.eq(self.digit(self.dst, 0))]


class _MemberClaim(Claim):
    """Link-aggregation member of a key (d mod m) against division bit by bit, for one m."""

    def __init__(self, parameters: ReductionParameters, members: int) -> None:
        super().__init__()
        self.parameters = parameters
        self.members = members
        self.dst = Signal(parameters.address_bits)
        self.own = Signal(parameters.address_bits)
        self.inputs = [self.dst, self.own]

    def elaborate(self, platform: object) -> Module:
        """Connect hardware and division."""
        m = Module()
        p = self.parameters
        m.submodules.setup = setup = ReductionSetup(p)
        m.submodules.dut = dut = NodeReduction(p)
        m.d.comb += [
            setup.shadow.mode.eq(MODES.index("dragonfly")),
            setup.shadow.members.eq(self.members),
            setup.shadow.member_hash.eq(1),
            setup.shadow.own.eq(self.own),
            dut.active.eq(setup.active),
            dut.dst.eq(self.dst),
            self.assumed.eq(1),
        ]
        rest: Value = Const(0, 5)
        for bit in reversed(range(p.address_bits)):
            doubled = Signal(6, name=f"doubled{bit}")
            remainder = Signal(5, name=f"remainder{bit}")
            m.d.comb += [
                doubled.eq(Cat(self.dst[bit], rest)),
                remainder.eq(Mux(doubled >= self.members, doubled - self.members, doubled)),
            ]
            rest = remainder
        m.d.comb += self.equal.eq(dut.payload[p.address_bits - 4 :] == rest)
        return m


class _CrcClaim(Claim):
    """The XOR trees of a CRC against its shift register, one bit of the message after the other."""

    def __init__(self, name: str, address_bits: int, fault: bool) -> None:
        super().__init__()
        self.name = name
        self.fault = fault
        self.address_bits = address_bits
        self.data = Signal(address_bits)
        self.difference = Signal(crc_spec(name).width)
        self.inputs = [self.data]
        self.outputs = [self.difference]

    def elaborate(self, platform: object) -> Module:
        """Unroll the register over the address as big-endian bytes."""
        m = Module()
        spec = crc_spec(self.name)
        masks, constant = crc_matrix(self.name, self.address_bits)
        if self.fault:
            masks = (masks[0] ^ 1, *masks[1:])
        m.submodules.dut = dut = CrcHash(width_bits=self.address_bits, masks=masks, constant=constant)
        m.d.comb += dut.data.eq(self.data)
        octets = -(-self.address_bits // 8)
        message = Cat(self.data, Const(0, 8))  # a last octet that is not full begins with zeros
        register: Value = Const(spec.init, spec.width)
        for octet in reversed(range(octets)):
            for bit in range(8) if spec.refin else reversed(range(8)):
                following = Signal(spec.width, name=f"register_{octet}_{bit}")
                feedback = register[-1] ^ message[8 * octet + bit]
                taps = Cat(feedback if spec.poly >> place & 1 else Const(0, 1) for place in range(spec.width))
                m.d.comb += following.eq(Cat(Const(0, 1), register[: spec.width - 1]) ^ taps)
                register = following
        result = Cat(*reversed([register[i] for i in range(spec.width)])) if spec.refout else register
        m.d.comb += self.difference.eq(dut.hash ^ result ^ spec.xorout)
        return m


def reduction_proofs(
    address_bits: int = 24, chunk_bits: Sequence[int] = (2, 3, 4, 6, 8), comparators: int = 12
) -> Iterator[Proof]:
    """Proofs of every mode with every chunk width; the hardware has all modes, widths and up choices.

    Mesh and torus assume what a network fulfils: c_i < k_i, d_i < k_i, 1 ≤ k_i ≤ 2^K, 1 ≤ n ≤ digits that have a
    comparator; fat tree: level ≤ n < digits. Dragonfly and arbitrary assume nothing.
    """
    parameters = ReductionParameters(
        address_bits=address_bits, chunk_bits=tuple(chunk_bits), comparators=comparators,
        up_choices=("d_mod_k", "highest_mismatch"),
    )  # fmt: skip

    def claim(mode: str, chunk: int) -> Callable[[], Claim]:
        return lambda: _ReductionClaim(parameters, mode, chunk)

    for mode in MODES:
        for chunk in chunk_bits if mode != "arbitrary" else chunk_bits[:1]:
            fault = {
                "arbitrary": ("dut.select.partial.pick_address", "1'b0"),
                "mesh": (f"dut.compare.own_gt_{chunk}_{chunk}", "1'b0"),
                "torus": (f"dut.compare.bound_gt_{chunk}_{chunk}", "1'b0"),
                "fat_tree": (f"dut.compare.own_ne_{chunk}_{chunk}", "1'b0"),
                "dragonfly": (f"dut.compare.own_ne_{chunk}_{chunk}", "1'b0"),
            }[mode]
            name = f"{mode}, {address_bits} bits" + ("" if mode == "arbitrary" else f", chunks of {chunk}")
            yield Proof(name=name, build=claim(mode, chunk), mutant=fault)


def member_proofs(address_bits: int = 12, most: int = 16) -> Iterator[Proof]:
    """Proofs of the link-aggregation member d mod m, for every m up to `most`."""
    parameters = ReductionParameters(
        address_bits=address_bits, functions=("arbitrary", "dragonfly"), chunk_bits=(4,), max_members=most,
        lag_hashes=("modulo",),
    )  # fmt: skip

    def claim(members: int) -> Callable[[], Claim]:
        return lambda: _MemberClaim(parameters, members)

    for members in range(1, most + 1):
        yield Proof(
            name=f"member, {address_bits} bits modulo {members}",
            build=claim(members),
            mutant=("dut.select.member", "4'b0001" if members == 1 else "4'b0000"),
        )


def crc_proofs(
    names: Sequence[str] = ("CRC-32C", "CRC-24/OPENPGP", "CRC-24/BLE"), address_bits: int = 24
) -> Iterator[AffineProof]:
    """Proofs that the XOR trees are the CRC."""

    def claim(name: str) -> Callable[[bool], Claim]:
        return lambda fault: _CrcClaim(name, address_bits, fault)

    for name in names:
        yield AffineProof(name=f"{name}, {address_bits} bits", build=claim(name))


def prove(proof: Proof | AffineProof, *, timeout_s: float = 600) -> ProofResult:
    """Run a proof: the claim, that its assumptions can be met, and that the mutant breaks it.

    Raises
    ------
    YosysError
        If yosys fails, or takes longer than `timeout_s` seconds.
    """
    if isinstance(proof, AffineProof):
        proved, broken = (_is_zero(proof.build(fault), timeout_s) for fault in (False, True))
        return ProofResult(proof.name, proved, possible=True, mutant_fails=not broken)
    claim = proof.build()
    check = "sat -set assumed 1 -prove equal 1 claim"
    script = [
        *_LOAD, "design -save flat", _SIMPLIFY,
        "log RESULT possible", "sat -set assumed 1 claim", "log RESULT proved", check,
        "design -load flat", *planted(proof.mutant, "claim"), _SIMPLIFY, "log RESULT mutant", check,
    ]  # fmt: skip
    log = _run(claim, script, timeout_s)
    # The marker also shows up as the echo of its command, before.
    before, after = log.rsplit("RESULT proved", 1)
    holds, broken_log = after.rsplit("RESULT mutant", 1)
    possible = before.rsplit("RESULT possible", 1)[1]
    return ProofResult(
        proof.name,
        proved="no model found: SUCCESS" in holds,
        possible="model found:" in possible and "no model found" not in possible,
        mutant_fails="model found: FAIL" in broken_log,
    )


def _is_zero(claim: Claim, timeout_s: float) -> bool:
    """Whether an affine circuit is 0 everywhere."""
    width = len(claim.inputs[0])
    points = [0, *(1 << bit for bit in range(width))]
    others = " ".join(["claim/t:*", *(f"claim/t:$_{gate}_ %d" for gate in ("XOR", "XNOR", "NOT"))])
    script = [
        *_LOAD, _SIMPLIFY, f"select -assert-none {others}",
        *(f"eval -set data {width}'d{point} -show difference claim" for point in points),
    ]  # fmt: skip
    # yosys writes words of 32 bits as a number, others bit by bit
    values = re.findall(r"difference = (?:\d+')?([01x]+|-?\d+)\.", _run(claim, script, timeout_s))
    if len(values) != len(points):
        raise YosysError(f"yosys: {len(values)} values of {len(points)}")
    return all(set(bits) == {"0"} for bits in values)


def _run(claim: Claim, script: Sequence[str], timeout_s: float) -> str:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        (path / "claim.il").write_text(rtlil_text(claim, "claim", [*claim.inputs, *claim.outputs]))
        return run_yosys("\n".join([*script, ""]), path, name="claim", timeout_s=timeout_s)
