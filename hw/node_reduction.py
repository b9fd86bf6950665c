"""Node reduction: destination address and own position to the key of the routing cache.

Three combinational components, with registers of the engine between them:

``ReductionSetup``
    what the control registers hold (*shadow*) → what the comparators need (*active*), one register stage later;
``ReductionCompare`` (stage A1)
    destination and active registers → the decisions and the candidates for the key (*partial*);
``ReductionSelect`` (stage A2)
    partial → key and payload.

``NodeReduction`` is the two last ones in a row, for a single stage.

Mesh and torus use interval comparators: plus is the cyclic interval (c, c + ⌊k/2⌋] of digits, given by two registers
c and t and the bit ``wrap`` (docs/definitions/lookup-engine.md,
"Configuration registers"). Only the destination is late, everything else comes from registers. The comparators are
segments of one tree over the bits of the whole address: the
results for chunks of 2 bits are combined to those for 4 and 8, those for 3 to those for 6, so that the run-time chunk
width selects between results, not between digits.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, unsigned
from amaranth.lib.data import ArrayLayout, StructLayout, View
from amaranth.lib.wiring import Component, In, Out

from hopforge.hw.crc_hash import masked_parities

__all__ = ["MODES", "NodeReduction", "ReductionCompare", "ReductionParameters", "ReductionSelect", "ReductionSetup"]

MODES = ("arbitrary", "mesh", "torus", "fat_tree", "dragonfly")
"""Modes in the order of their numbers (docs/architecture.md)."""

_FLAGS = ("grid", "fat_tree", "dragonfly")

_UP_CHOICES = ("d_mod_k", "highest_mismatch")
_LAG_HASHES = ("crc", "modulo")


@dataclass(frozen=True, kw_only=True)
class ReductionParameters:
    """What is built into the reduction hardware.

    Parameters
    ----------
    address_bits : int
        Width of a destination address, A; at least 7.
    chunk_bits : tuple of int
        Chunk widths that can be chosen at run time, each at most A − 6 (a value of the key has A − 6 bits).
    functions : tuple of str
        Modes that are built; one that is not built behaves as arbitrary. Without ``arbitrary`` there is no such way
        out (key 0), and a single topology needs no mode register at all: hardware for one fixed network.
    comparators : int
        Digits 0 … comparators − 1 can be compared; fewer comparators save area and limit the dimensions (mesh, torus:
        n ≤ comparators; fat tree: n < comparators).
        The comparison of dragonfly groups covers all bits whatever this number is.
    up_choices : tuple of str
        Choices of the up port of a fat tree that are built, ``d_mod_k`` and ``highest_mismatch``; with both, a
        register chooses.
    max_members : int
        Most members of an aggregated link; 1 leaves the member out of the hardware.
    lag_hashes : tuple of str
        ``crc`` (CRC of the destination modulo the number of members), ``modulo`` (the destination itself); with both,
        a register chooses.
    crc_masks : tuple of int
        Matrix of the CRC over the destination, one input mask per bit; needed for ``crc`` with ``max_members`` above 1.
    crc_constant : int
        CRC of address 0.
    terminals : bool
        Whether mesh and torus keys carry the terminal digit (several hosts at a router); without, the value of Local
        is 0.

    Raises
    ------
    ValueError
        Naming the parameter and its limit.
    """

    address_bits: int = 24
    chunk_bits: tuple[int, ...] = (2, 3, 4, 6, 8)
    functions: tuple[str, ...] = MODES
    comparators: int = 12
    up_choices: tuple[str, ...] = ("d_mod_k",)
    max_members: int = 1
    lag_hashes: tuple[str, ...] = _LAG_HASHES
    crc_masks: tuple[int, ...] = ()
    crc_constant: int = 0
    terminals: bool = True

    def __post_init__(self) -> None:
        if self.address_bits < 7:
            raise ValueError(f"address_bits must be at least 7, not {self.address_bits}")
        if not self.chunk_bits or len(set(self.chunk_bits)) != len(self.chunk_bits):
            raise ValueError(f"chunk_bits must name at least one width and none twice, not {self.chunk_bits}")
        widest = min(self.address_bits - 6, 15)
        for width in self.chunk_bits:
            if not 1 <= width <= widest:
                limit = f"1..{widest} for address_bits={self.address_bits}"
                raise ValueError(f"chunk_bits must be in {limit}, not {width}")
        for name, given, known in (
            ("functions", self.functions, MODES),
            ("up_choices", self.up_choices, _UP_CHOICES),
            ("lag_hashes", self.lag_hashes, _LAG_HASHES),
        ):
            for one in given:
                if one not in known:
                    raise ValueError(f"{name} must be among {', '.join(known)}, not {one!r}")
        if not self.up_choices or not self.lag_hashes:
            raise ValueError("up_choices and lag_hashes must not be empty")
        if self.comparators < 1:
            raise ValueError(f"comparators must be at least 1, not {self.comparators}")
        if not 1 <= self.max_members <= 16:
            raise ValueError(f"max_members must be in 1..16, not {self.max_members}")
        if self.max_members > 1 and "crc" in self.lag_hashes and not self.crc_masks:
            raise ValueError("crc_masks must be given for lag_hashes 'crc' with max_members above 1")

    @property
    def grid(self) -> bool:
        """Whether mesh or torus is built."""
        return "mesh" in self.functions or "torus" in self.functions

    @property
    def fat_tree(self) -> bool:
        """Whether the fat tree is built."""
        return "fat_tree" in self.functions

    @property
    def dragonfly(self) -> bool:
        """Whether the dragonfly is built."""
        return "dragonfly" in self.functions

    @property
    def arbitrary(self) -> bool:
        """Whether the whole address can be the key."""
        return "arbitrary" in self.functions

    @property
    def only(self) -> str | None:
        """Name of the flag of the only topology, if nothing else is built."""
        built = [name for name in _FLAGS if getattr(self, name)]
        return built[0] if len(built) == 1 and not self.arbitrary else None

    @property
    def flags(self) -> tuple[str, ...]:
        """Topologies that need a flag."""
        return () if self.only else tuple(name for name in _FLAGS if getattr(self, name))

    @property
    def reduces(self) -> bool:
        """Whether anything but arbitrary is built."""
        return self.grid or self.fat_tree or self.dragonfly

    @property
    def widest(self) -> int:
        """Widest chunk, bits."""
        return max(self.chunk_bits)

    @property
    def value_bits(self) -> int:
        """Bits of the key's value field."""
        return self.address_bits - 6

    @property
    def key_bits(self) -> int:
        """Bits of the key."""
        return self.address_bits + 4

    @property
    def members(self) -> bool:
        """Whether the key can carry a link-aggregation member."""
        return self.max_members > 1 and self.reduces

    @property
    def both_up_choices(self) -> bool:
        """Whether a register chooses the up port."""
        return self.fat_tree and len(set(self.up_choices)) == 2

    @property
    def both_lag_hashes(self) -> bool:
        """Whether a register chooses the hash of the member."""
        return self.members and len(set(self.lag_hashes)) == 2

    def digits(self, chunk: int) -> int:
        """Digits that have a comparator when the chunk width is `chunk`."""
        return min(self.address_bits // chunk, self.comparators)

    @property
    def most_digits(self) -> int:
        """Digits that have a comparator with the narrowest chunks."""
        return max(self.digits(chunk) for chunk in self.chunk_bits)

    @property
    def positions(self) -> tuple[int, ...]:
        """Bit positions at which the digit of a terminal or of a fat-tree port can start, ascending."""
        found = {0} if self.dragonfly else set()
        for chunk in self.chunk_bits:
            most = self.digits(chunk)
            if self.fat_tree:
                found |= {level * chunk for level in range(most)}
            if self.grid and self.terminals:
                found |= {dimensions * chunk for dimensions in range(1, most + 1)}
        return tuple(sorted(position for position in found if position < self.address_bits))

    @property
    def shadow_layout(self) -> StructLayout:
        """What the control registers hold, as in the register map (`hopforge.model.lookup.csr`).

        ``mode`` (number in `MODES`), ``chunk_select`` (number in `chunk_bits`, one that does not exist acts as 0),
        ``digits`` (mesh, torus, fat tree: n), ``level`` (fat tree: of this switch), ``own`` (own
        address; fat tree: c_i is digit i), ``radix`` (k per dimension, 0 acts as 1), ``members`` (outside of
        1 … max_members acts as 1), ``member_hash`` (1: d mod m) and ``up_choice`` (1: highest mismatch). A field
        without hardware behind it is ignored.
        """
        return StructLayout(
            {
                "mode": unsigned(3),
                "chunk_select": unsigned(3),
                "digits": unsigned(5),
                "level": unsigned(5),
                "own": unsigned(self.address_bits),
                "radix": ArrayLayout(unsigned(9), self.most_digits),
                "members": unsigned(5),
                "member_hash": unsigned(1),
                "up_choice": unsigned(1),
            }
        )

    @property
    def active_layout(self) -> StructLayout:
        """Registers that the comparators see; `ReductionSetup` explains them and computes their next value."""
        fields: dict[str, Any] = {}
        if self.reduces:
            fields["mode"] = unsigned(3)
            fields["chunk"] = unsigned(len(self.chunk_bits))
            fields["own"] = unsigned(self.address_bits)
            fields["position"] = unsigned(len(self.positions))
            if len(self.chunk_bits) > 1:
                fields["digit_mask"] = unsigned(self.widest)
        if self.grid:
            fields["threshold"] = unsigned(self.address_bits)
            fields["wrap"] = unsigned(self.most_digits)
        fields |= {name: unsigned(1) for name in self.flags}
        if self.grid or self.fat_tree:
            fields["compare"] = StructLayout(
                {f"chunk{chunk}": unsigned(self.digits(chunk)) for chunk in self.chunk_bits}
            )
        if self.both_up_choices:
            fields["up_highest"] = unsigned(1)
        if self.members:
            fields["members"] = unsigned(self.max_members)
        if self.both_lag_hashes:
            fields["lag_modulo"] = unsigned(1)
        return StructLayout(fields)

    @property
    def hash_bits(self) -> int:
        """Width of the number whose residue is the member."""
        widths = [len(self.crc_masks)] if "crc" in self.lag_hashes else []
        return max([*widths, self.address_bits] if "modulo" in self.lag_hashes else widths)

    @property
    def partial_layout(self) -> StructLayout:
        """What passes from A1 to A2: decisions and candidates of the key."""
        fields: dict[str, Any] = {"dst": unsigned(self.address_bits)}
        if self.reduces:
            fields["mode"] = unsigned(3)
            if self.arbitrary:
                fields["pick_address"] = unsigned(1)
            fields["kind"] = unsigned(2)
            fields["digit"] = unsigned(self.widest)
            fields["pick_digit"] = unsigned(1)
        if self.grid:
            fields["dimension"] = unsigned(max(1, (self.most_digits - 1).bit_length()))
            fields["pick_dimension"] = unsigned(1)
        if self.dragonfly:
            fields["router"] = unsigned(self.widest)
            fields["pick_router"] = unsigned(1)
            fields["group"] = unsigned(self.value_bits)
            fields["pick_group"] = unsigned(1)
        if self.members:
            fields["members"] = unsigned(self.max_members)
            fields["residues"] = ArrayLayout(unsigned(4), -(-self.hash_bits // 4))
        return StructLayout(fields)


def _any(values: Sequence[Value]) -> Value:
    """OR of single bits; 0 without any."""
    return Cat(*values).any() if values else Const(0, 1)


def _select(choices: Sequence[tuple[Value, Value]], width: int) -> Value:
    """AND-OR selection: the value whose condition holds, 0 if none does."""
    result: Value = Const(0, width)
    for condition, value in choices:
        result = result | (value & condition.replicate(width))
    return result[:width]


class _CompareTree:
    """Magnitude and equality of bit ranges of two words, shared between ranges that contain each other."""

    def __init__(self, m: Module, word: Value, reference: Value, name: str) -> None:
        self._m = m
        self._word = word
        self._reference = reference
        self._name = name
        self._known: dict[tuple[int, int], tuple[Signal, Signal]] = {}

    def __call__(self, start: int, width: int) -> tuple[Signal, Signal]:
        """Signals (greater, different) of bits ``start … start + width − 1`` of word against reference."""
        if (start, width) in self._known:
            return self._known[start, width]
        greater = Signal(name=f"{self._name}_gt_{start}_{width}")
        different = Signal(name=f"{self._name}_ne_{start}_{width}")
        if width == 1:
            self._m.d.comb += [
                greater.eq(self._word[start] & ~self._reference[start]),
                different.eq(self._word[start] ^ self._reference[start]),
            ]
        else:
            split = self._split(start, width)
            low_greater, low_different = self(start, split)
            high_greater, high_different = self(start + split, width - split)
            self._m.d.comb += [
                greater.eq(high_greater | (~high_different & low_greater)),
                different.eq(high_different | low_different),
            ]
        self._known[start, width] = greater, different
        return greater, different

    @staticmethod
    def _split(start: int, width: int) -> int:
        """Width of the low part: half, or for odd widths so that pairs stay aligned with those of even widths."""
        if width % 2 == 0:
            return width // 2
        if width == 3:
            return 2 if start % 2 == 0 else 1
        return width // 2


def _first(
    m: Module, decisions: Sequence[tuple[Value, Mapping[str, Value]]], name: str
) -> tuple[Value, dict[str, Value]]:
    """Attributes of the first decision that is made, by a balanced tree; those of the last one if none is.

    Parameters
    ----------
    m : Module
        Receives the logic.
    decisions : sequence of (made, attributes)
        In order of priority; all with the same attributes.
    name : str
        Prefix of signal names.
    """
    if len(decisions) == 1:
        return decisions[0][0], dict(decisions[0][1])
    half = 1 << ((len(decisions) - 1).bit_length() - 1)
    early_made, early = _first(m, decisions[:half], f"{name}e")
    late_made, late = _first(m, decisions[half:], f"{name}l")
    made = Signal(name=f"{name}_made")
    m.d.comb += made.eq(early_made | late_made)
    chosen: dict[str, Value] = {}
    for attribute, early_value in early.items():
        chosen[attribute] = Mux(early_made, early_value, late[attribute])
    return made, chosen


class ReductionSetup(Component):
    """Next value of the active registers, from what the control registers hold.

    Combinational; the engine registers ``active`` at every edge.

    - ``chunk``, ``grid``, ``fat_tree``, ``dragonfly``, ``members``, ``position``: one-hot or flags; a mode that is
      not built sets no flag and ``mode`` 0.
    - ``own``: the own address; fat tree: shifted up by one digit, so that c_i faces d_{i+1}.
    - ``threshold`` and ``wrap``: t and wrap of docs/definitions/lookup-engine.md, t at the place of its digit.
    - ``compare``: per chunk width, the digits that may decide: mesh, torus 0 … n − 1; fat tree level + 1 … n.
    - ``position``: where the digit for Local, down and up starts; ``digit_mask``: its bits.

    Parameters
    ----------
    parameters : ReductionParameters
        What is built.
    """

    shadow: View
    active: View

    def __init__(self, parameters: ReductionParameters) -> None:
        self.parameters = parameters
        super().__init__({"shadow": In(parameters.shadow_layout), "active": Out(parameters.active_layout)})

    def elaborate(self, platform: object) -> Module:
        """Build the decoders and one interval bound per digit."""
        m = Module()
        p, shadow, active = self.parameters, self.shadow, self.active
        if not p.reduces:
            return m
        is_mode = {name: Signal(name=f"is_{name}") for name in p.functions if name != "arbitrary"}
        for name, flag in is_mode.items():
            m.d.comb += flag.eq(shadow.mode == MODES.index(name))
        m.d.comb += active.mode.eq(_select([(flag, Const(MODES.index(name), 3)) for name, flag in is_mode.items()], 3))
        grid = _any([is_mode[name] for name in ("mesh", "torus") if name in is_mode])
        fat_tree: Value = is_mode.get("fat_tree", Const(0, 1))
        if p.only:
            grid, fat_tree = Const(p.only == "grid"), Const(p.only == "fat_tree")
        chunk = {width: Signal(name=f"is_chunk{width}") for width in p.chunk_bits}
        for number, flag in enumerate(chunk.values()):
            absent = shadow.chunk_select >= len(chunk) if number == 0 and len(chunk) < 8 else 0
            m.d.comb += flag.eq((shadow.chunk_select == number) | absent)
        m.d.comb += active.chunk.eq(Cat(*chunk.values()))
        if len(chunk) > 1:
            masks = [(flag, Const((1 << width) - 1, p.widest)) for width, flag in chunk.items()]
            m.d.comb += active.digit_mask.eq(_select(masks, p.widest))

        shifted = _select(
            [(flag, (shadow.own << width)[: p.address_bits]) for width, flag in chunk.items()], p.address_bits
        )
        m.d.comb += active.own.eq(Mux(fat_tree, shifted, shadow.own) if p.fat_tree else shadow.own)

        self._positions(m, chunk, grid, fat_tree)
        if p.grid:
            self._intervals(m, chunk, is_mode)
        dragonfly: Value = is_mode.get("dragonfly", Const(0, 1))
        for name, is_built in (("grid", grid), ("fat_tree", fat_tree), ("dragonfly", dragonfly)):
            if name in p.flags:
                m.d.comb += getattr(active, name).eq(is_built)
        if p.grid or p.fat_tree:
            allowed = Signal(p.most_digits)
            for digit in range(p.most_digits):
                m.d.comb += allowed[digit].eq(
                    (grid & (shadow.digits > digit)) | (fat_tree & (shadow.level < digit) & (shadow.digits >= digit))
                )
            for width, flag in chunk.items():
                compare = getattr(active.compare, f"chunk{width}")
                m.d.comb += compare.eq(allowed[: p.digits(width)] & flag.replicate(p.digits(width)))
        if p.both_up_choices:
            m.d.comb += active.up_highest.eq(shadow.up_choice)
        if p.members:
            for count in range(2, p.max_members + 1):
                m.d.comb += active.members[count - 1].eq(shadow.members == count)
            m.d.comb += active.members[0].eq((shadow.members < 2) | (shadow.members > p.max_members))
        if p.both_lag_hashes:
            m.d.comb += active.lag_modulo.eq(shadow.member_hash)
        return m

    def _positions(self, m: Module, chunk: Mapping[int, Value], grid: Value, fat_tree: Value) -> None:
        """Drive ``active.position``."""
        p, shadow = self.parameters, self.shadow
        for number, position in enumerate(p.positions):
            reasons: list[Value] = []
            for width, flag in chunk.items():
                if position % width:
                    continue
                digit = position // width
                if p.fat_tree and digit < p.digits(width):
                    reasons.append(flag & fat_tree & (shadow.level == digit))
                if p.grid and p.terminals and 1 <= digit <= p.digits(width):
                    reasons.append(flag & grid & (shadow.digits == digit))
            if p.dragonfly and position == 0:
                reasons.append(Const(1) if p.only else shadow.mode == MODES.index("dragonfly"))
            m.d.comb += self.active.position[number].eq(_any(reasons))

    def _intervals(self, m: Module, chunk: Mapping[int, Value], is_mode: Mapping[str, Value]) -> None:
        """Drive ``active.threshold`` and ``active.wrap``: one subtractor and one adder per digit."""
        p, shadow = self.parameters, self.shadow
        torus: Value = is_mode.get("torus", Const(0, 1))
        if p.only and "mesh" not in p.functions:
            torus = Const(1)
        places: dict[int, list[Value]] = {width: [] for width in p.chunk_bits}
        for digit in range(p.most_digits):
            widths = [width for width in p.chunk_bits if digit < p.digits(width)]
            widest = max(widths)
            own = Signal(widest, name=f"own_{digit}")
            half = Signal(widest, name=f"half_{digit}")
            most = Signal(widest, name=f"most_{digit}")
            below = Signal(widest + 1, name=f"below_{digit}")
            above = Signal(widest + 1, name=f"above_{digit}")
            bound = Signal(widest, name=f"bound_{digit}")
            m.d.comb += [
                own.eq(
                    _select(
                        [(chunk[width], shadow.own[digit * width : (digit + 1) * width]) for width in widths], widest
                    )
                ),
                half.eq(
                    shadow.radix[digit][1 : widest + 1] | shadow.radix[digit][widest + 1 :].any().replicate(widest)
                ),
                most.eq(_select([(chunk[width], Const((1 << width) - 1, widest)) for width in widths], widest)),
                below.eq(own + ~half),  # own − half − 1 with the borrow inverted in the top bit: set if own > half
                above.eq(own + half),
                self.active.wrap[digit].eq(torus & below[widest]),
                bound.eq(
                    Mux(below[widest], below[:widest], Mux(above > most, most, above[:widest]))
                    | ~torus.replicate(widest)
                ),
            ]
            for width in widths:
                places[width].append(bound[:width])
        m.d.comb += self.active.threshold.eq(
            _select([(chunk[width], Cat(*places[width])) for width in p.chunk_bits], p.address_bits)
        )


class ReductionCompare(Component):
    """Stage A1: comparators, digit selection and the residues of the link-aggregation hash.

    Combinational, one destination per cycle; only ``dst`` is timing-critical. With ``registered`` there is a register
    between the comparisons of digits and what is decided by them, which takes its next value in cycles with ``go`` (two
    bits that are equal: each drives half of the register).

    Parameters
    ----------
    parameters : ReductionParameters
        What is built.
    registered : bool
        Whether it takes two cycles.
    """

    dst: Signal
    active: View
    partial: View
    go: Signal

    def __init__(self, parameters: ReductionParameters, *, registered: bool = False) -> None:
        self.parameters = parameters
        self.registered = registered
        ports = {
            "dst": In(parameters.address_bits),
            "active": In(parameters.active_layout),
            "partial": Out(parameters.partial_layout),
        }
        super().__init__(ports | ({"go": In(2)} if registered else {}))

    def elaborate(self, platform: object) -> Module:
        """Build the compare trees and the priority of the digits."""
        m = Module()
        p, active, partial = self.parameters, self.active, self.partial
        self._cuts: dict[str, Value] = {}
        self._late_dst = self._cut(m, self.dst, "dst")
        m.d.comb += partial.dst.eq(self._late_dst)
        if not p.reduces:
            return m
        own = self._tree(m, active.own, "own")
        kinds: list[Value] = []
        m.d.comb += partial.mode.eq(active.mode)

        flags = {name: getattr(active, name) if name in p.flags else Const(1) for name in _FLAGS}
        digit = Signal(p.widest)
        at_position = self._digit_at_position() & (active.digit_mask if len(p.chunk_bits) > 1 else ~0)
        m.d.comb += digit.eq(self._cut(m, at_position[: p.widest], "digit"))
        m.d.comb += partial.digit.eq(digit)
        picks_digit: list[Value] = []

        differs = self._digits_that_differ(own) if p.grid or p.fat_tree else []
        differ = _any(differs)
        if p.grid:
            plus = self._plus_sides(m, own)
            attributes = [
                {"plus": side, "dimension": Const(number, len(partial.dimension))} for number, side in enumerate(plus)
            ]
            _, nearest = _first(m, list(zip(differs, attributes, strict=True)), "first")
            other = flags["grid"] & differ
            kinds.append(Cat(other & nearest["plus"], other & ~nearest["plus"]))
            m.d.comb += [partial.dimension.eq(nearest["dimension"]), partial.pick_dimension.eq(other)]
            picks_digit.append(flags["grid"] & ~differ)
        if p.fat_tree:
            kinds.append(Cat(flags["fat_tree"] & differ, flags["fat_tree"] & ~differ))
            picks_digit.append(flags["fat_tree"])
            if "highest_mismatch" in p.up_choices:
                use = flags["fat_tree"] & differ & (active.up_highest if p.both_up_choices else 1)
                m.d.comb += partial.digit.eq(Mux(use, self._digit_below_highest(m, differs), digit))
        if p.dragonfly:
            group_differs, router_differs = self._hierarchy(own)
            kinds.append(Cat(flags["dragonfly"] & ~group_differs & router_differs, flags["dragonfly"] & group_differs))
            picks_digit.append(flags["dragonfly"] & ~group_differs & ~router_differs)
            m.d.comb += [
                partial.router.eq(self._of_chunk(lambda width: self._late_dst[width : 2 * width], p.widest)),
                partial.group.eq(self._of_chunk(lambda width: self._late_dst[2 * width :], p.value_bits)),
                partial.pick_router.eq(flags["dragonfly"] & ~group_differs & router_differs),
                partial.pick_group.eq(flags["dragonfly"] & group_differs),
            ]
        m.d.comb += [
            partial.kind.eq(Cat(_any([kind[bit] for kind in kinds]) for bit in range(2))),
            partial.pick_digit.eq(_any(picks_digit)),
        ]
        if p.arbitrary:
            m.d.comb += partial.pick_address.eq(~_any([flags[name] for name in p.flags]))
        if p.members:
            self._residues(m)
        return m

    def _cut(self, m: Module, value: Value, name: str) -> Value:
        """Value behind the register, if there is one."""
        if not self.registered:
            return value
        if name not in self._cuts:
            self._cuts[name] = held = Signal(len(value), name=f"{name}_held", reset_less=True)
            with m.If(self.go[name.startswith("own")]):
                m.d.sync += held.eq(value)
        return self._cuts[name]

    def _tree(self, m: Module, reference: Value, name: str) -> Callable[[int, int], tuple[Value, Value]]:
        """Return a function of (start, width): digit greater than and different from that of `reference`."""
        tree = _CompareTree(m, self.dst, reference, name)

        def results(start: int, width: int) -> tuple[Value, Value]:
            greater, different = tree(start, width)
            return self._cut(m, greater, greater.name), self._cut(m, different, different.name)

        return results

    def _of_chunk(self, piece: Callable[[int], Value], width_bits: int) -> Value:
        """Select by the run-time chunk width."""
        p = self.parameters
        choices = [(self.active.chunk[number], piece(width)) for number, width in enumerate(p.chunk_bits)]
        return choices[0][1] if len(choices) == 1 else _select(choices, width_bits)

    def _digit_at_position(self) -> Value:
        """Digit that starts at the registered position; bits beyond the address are 0."""
        p = self.parameters
        return _select(
            [(self.active.position[number], self.dst[position:]) for number, position in enumerate(p.positions)],
            p.widest,
        )

    def _compared(self, of_digit: Callable[[int, int], Value], number: int) -> Value:
        """Ask a tree about digit `number` in the chunk width that is set."""
        p = self.parameters
        return _any(
            [
                getattr(self.active.compare, f"chunk{width}")[number] & of_digit(number * width, width)
                for width in p.chunk_bits
                if number < p.digits(width)
            ]
        )

    def _digits_that_differ(self, own: Callable[[int, int], tuple[Value, Value]]) -> list[Value]:
        """Per digit: it may decide, and differs from the own one."""
        return [
            self._compared(lambda start, width: own(start, width)[1], number)
            for number in range(self.parameters.most_digits)
        ]

    def _plus_sides(self, m: Module, own: Callable[[int, int], tuple[Value, Value]]) -> list[Value]:
        """Per digit: it lies in the plus interval (only meaningful where it differs)."""
        p, active = self.parameters, self.active
        bound = self._tree(m, active.threshold, "bound")
        sides: list[Value] = []
        for number in range(p.most_digits):
            if len(p.chunk_bits) == 1:
                width = p.chunk_bits[0]
                above_own: Value
                above_bound: Value
                above_own, above_bound = own(number * width, width)[0], bound(number * width, width)[0]
            else:
                above_own = self._compared(lambda start, width: own(start, width)[0], number)
                above_bound = self._compared(lambda start, width: bound(start, width)[0], number)
            wrap = active.wrap[number]
            sides.append((above_own & ~above_bound) | (wrap & (above_own | ~above_bound)))
        return sides

    def _digit_below_highest(self, m: Module, differs: Sequence[Value]) -> Value:
        """Digit i where i + 1 is the highest digit that differs."""
        p = self.parameters
        below = [
            (differs[number], {"digit": self._of_chunk_digit(number - 1)})
            for number in reversed(range(1, p.most_digits))
        ]
        return _first(m, below, "highest")[1]["digit"] if below else Const(0, p.widest)

    def _of_chunk_digit(self, number: int) -> Value:
        """Digit `number` in the chunk width that is set."""
        return self._of_chunk(
            lambda width: self._late_dst[number * width : (number + 1) * width], self.parameters.widest
        )

    def _hierarchy(self, own: Callable[[int, int], tuple[Value, Value]]) -> tuple[Value, Value]:
        """Dragonfly: (group differs, router differs)."""
        p, active = self.parameters, self.active
        group: list[Value] = []
        router: list[Value] = []
        for number, width in enumerate(p.chunk_bits):
            starts = range(2 * width, p.address_bits, width)
            parts = [own(start, min(width, p.address_bits - start))[1] for start in starts]
            group.append(active.chunk[number] & _any(parts))
            router.append(active.chunk[number] & own(width, min(width, p.address_bits - width))[1])
        return _any(group), _any(router)

    def _residues(self, m: Module) -> None:
        """Residue of every nibble's share in the hash; their sum modulo m is the member.

        16^i mod m is a constant for each m, and m comes one-hot from a register, so that a share is a table of 16
        entries.
        """
        p, active, partial = self.parameters, self.active, self.partial
        crc = masked_parities(self.dst, p.crc_masks, p.crc_constant) if "crc" in p.lag_hashes else None
        if p.both_lag_hashes:
            word: Value = Mux(active.lag_modulo, self.dst, crc)
        else:
            word = self.dst if crc is None else crc
        hashed = Signal(p.hash_bits)
        m.d.comb += [hashed.eq(self._cut(m, word, "hashed")), partial.members.eq(active.members)]
        for number in range(len(partial.residues)):
            nibble = hashed[4 * number : 4 * number + 4]
            for count in range(2, p.max_members + 1):
                with m.If(active.members[count - 1]), m.Switch(nibble):
                    for value in range(1 << len(nibble)):
                        with m.Case(value):
                            m.d.comb += partial.residues[number].eq((value << 4 * number) % count)


class ReductionSelect(Component):
    """Stage A2: the key from the decisions of A1.

    Combinational. ``payload`` is the key without its mode; the set index is a CRC of it.

    Parameters
    ----------
    parameters : ReductionParameters
        What is built.
    """

    partial: View
    key: Signal
    payload: Signal

    def __init__(self, parameters: ReductionParameters) -> None:
        self.parameters = parameters
        super().__init__(
            {
                "partial": In(parameters.partial_layout),
                "key": Out(parameters.key_bits),
                "payload": Out(parameters.address_bits),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build the AND-OR selection and the sum of the residues."""
        m = Module()
        p, partial = self.parameters, self.partial
        if not p.reduces:
            m.d.comb += [self.payload.eq(partial.dst), self.key.eq(partial.dst)]
            return m
        candidates: list[tuple[Value, Value]] = [(partial.pick_digit, partial.digit)]
        if p.grid:
            candidates.append((partial.pick_dimension, partial.dimension))
        if p.dragonfly:
            candidates += [(partial.pick_router, partial.router), (partial.pick_group, partial.group)]
        value = Signal(p.value_bits)
        member = Signal(4)
        m.d.comb += value.eq(_select(candidates, p.value_bits))
        if p.members:
            m.d.comb += member.eq(self._sum_of_residues(m))
        if p.arbitrary:
            reduced = Cat(value, partial.kind, member & ~partial.pick_address.replicate(4))
            m.d.comb += self.payload.eq(reduced | (partial.dst & partial.pick_address.replicate(p.address_bits)))
        else:
            m.d.comb += self.payload.eq(Cat(value, partial.kind, member))
        m.d.comb += self.key.eq(Cat(self.payload, partial.mode))
        return m

    def _sum_of_residues(self, m: Module) -> Value:
        """Sum of the residues modulo the number of members, by a tree of adders that each subtract at most once."""
        p, partial = self.parameters, self.partial
        count = Signal(5)
        m.d.comb += count.eq(
            _select([(partial.members[number - 1], Const(number, 5)) for number in range(1, p.max_members + 1)], 5)
        )
        level: list[Value] = [partial.residues[number] for number in range(len(partial.residues))]
        depth = 0
        while len(level) > 1:
            following: list[Value] = []
            for pair in range(len(level) // 2):
                total = Signal(5, name=f"sum_{depth}_{pair}")
                rest = Signal(6, name=f"rest_{depth}_{pair}")
                residue = Signal(4, name=f"residue_{depth}_{pair}")
                m.d.comb += [
                    total.eq(level[2 * pair] + level[2 * pair + 1]),
                    rest.eq(total - count),
                    residue.eq(Mux(rest[5], total, rest)),
                ]
                following.append(residue)
            if len(level) % 2:
                following.append(level[-1])
            level = following
            depth += 1
        return level[0]


class NodeReduction(Component):
    """Destination to cache key: `ReductionCompare` and `ReductionSelect`, with or without a register between them.

    Latency 0 without, 1 cycle with the register; one key per cycle, never stalls. The register has no reset value that
    matters: a key is used only with a valid bit that its user carries beside it.

    Parameters
    ----------
    parameters : ReductionParameters
        What is built.
    registered : bool
        Whether a register divides it into two stages.
    """

    dst: Signal
    active: View
    key: Signal
    payload: Signal

    def __init__(self, parameters: ReductionParameters, *, registered: bool = False) -> None:
        self.parameters = parameters
        self.registered = registered
        super().__init__(
            {
                "dst": In(parameters.address_bits),
                "active": In(parameters.active_layout),
                "key": Out(parameters.key_bits),
                "payload": Out(parameters.address_bits),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Connect the two halves."""
        m = Module()
        m.submodules.compare = compare = ReductionCompare(self.parameters)
        m.submodules.select = select = ReductionSelect(self.parameters)
        m.d.comb += [
            compare.dst.eq(self.dst),
            compare.active.eq(self.active),
            self.key.eq(select.key),
            self.payload.eq(select.payload),
        ]
        if self.registered:
            between = Signal(self.parameters.partial_layout, reset_less=True)
            m.d.sync += between.eq(compare.partial)
            m.d.comb += select.partial.eq(between)
        else:
            m.d.comb += select.partial.eq(compare.partial)
        return m
