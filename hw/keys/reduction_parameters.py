"""What is built into the hardware of node reduction, and the layouts of its registers."""

from dataclasses import dataclass
from typing import Any

from amaranth.hdl import unsigned
from amaranth.lib.data import ArrayLayout, StructLayout

from hopforge.hw.keys.expression import quiet_layout
from hopforge.model.expression.program import Program

__all__ = ["FLAGS", "MODES", "MODE_NUMBERS", "ReductionParameters"]

MODES = ("arbitrary", "mesh", "torus", "fat_tree", "dragonfly")
"""Modes in the order of their numbers (docs/architecture.md)."""

MODE_NUMBERS = (*MODES, "expression")
"""All values of the mode register; an expression is built if there is one."""

FLAGS = ("grid", "fat_tree", "dragonfly", "expression")
"""What is built, by the name of its flag."""

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
    expression : Program, optional
        Keys by an expression, for the mode ``expression``; its quiet part lies before the active registers.
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
    expression: Program | None = None

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
            ("functions", self.functions, MODE_NUMBERS),
            ("up_choices", self.up_choices, _UP_CHOICES),
            ("lag_hashes", self.lag_hashes, _LAG_HASHES),
        ):
            for one in given:
                if one not in known:
                    raise ValueError(f"{name} must be among {', '.join(known)}, not {one!r}")
        if not self.up_choices or not self.lag_hashes:
            raise ValueError("up_choices and lag_hashes must not be empty")
        if ("expression" in self.functions) != (self.expression is not None):
            raise ValueError("functions must contain 'expression' exactly if there is one")
        if self.expression is not None and self.expression.address_bits != self.address_bits:
            limit = f"address_bits={self.address_bits}"
            raise ValueError(f"expression must be one of {limit}, not {self.expression.address_bits}")
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
        built = [name for name in FLAGS if getattr(self, name)]
        return built[0] if len(built) == 1 and not self.arbitrary else None

    @property
    def flags(self) -> tuple[str, ...]:
        """Topologies that need a flag."""
        return () if self.only else tuple(name for name in FLAGS if getattr(self, name))

    @property
    def reduces(self) -> bool:
        """Whether anything but arbitrary is built."""
        return self.grid or self.fat_tree or self.dragonfly or self.expression is not None

    @property
    def widest(self) -> int:
        """Widest chunk, bits."""
        return max(self.chunk_bits)

    @property
    def value_bits(self) -> int:
        """Bits of the key's value field (of an expression: and of the kind)."""
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
        if self.expression is not None:
            fields["quiet"] = quiet_layout(self.expression)
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
        if self.expression is not None:
            fields["value"] = unsigned(self.expression.width)
            fields["pick_value"] = unsigned(1)
        if self.members:
            fields["members"] = unsigned(self.max_members)
            fields["residues"] = ArrayLayout(unsigned(4), -(-self.hash_bits // 4))
        return StructLayout(fields)
