"""Node reduction, stage A1: which digits differ, and what that decides."""

from collections.abc import Callable, Mapping, Sequence

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib.data import View
from amaranth.lib.wiring import Component, In, Out

from hopforge.hw.keys.compare_tree import CompareTree
from hopforge.hw.keys.expression import KeyExpression
from hopforge.hw.keys.reduction_parameters import FLAGS, ReductionParameters
from hopforge.hw.parts.and_or import and_or, any_of
from hopforge.hw.parts.crc_hash import masked_parities

__all__ = ["ReductionCompare"]


def first_made(
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
    early_made, early = first_made(m, decisions[:half], f"{name}e")
    late_made, late = first_made(m, decisions[half:], f"{name}l")
    made = Signal(name=f"{name}_made")
    m.d.comb += made.eq(early_made | late_made)
    chosen: dict[str, Value] = {}
    for attribute, early_value in early.items():
        chosen[attribute] = Mux(early_made, early_value, late[attribute])
    return made, chosen


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

        flags = {name: getattr(active, name) if name in p.flags else Const(1) for name in FLAGS}
        digit = Signal(p.widest)
        at_position = self._digit_at_position() & (active.digit_mask if len(p.chunk_bits) > 1 else ~0)
        m.d.comb += digit.eq(self._cut(m, at_position[: p.widest], "digit"))
        m.d.comb += partial.digit.eq(digit)
        picks_digit: list[Value] = []

        differs = self._digits_that_differ(own) if p.grid or p.fat_tree else []
        differ = any_of(differs)
        if p.grid:
            plus = self._plus_sides(m, own)
            attributes = [
                {"plus": side, "dimension": Const(number, len(partial.dimension))} for number, side in enumerate(plus)
            ]
            _, nearest = first_made(m, list(zip(differs, attributes, strict=True)), "first")
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
        if p.expression is not None:
            m.submodules.expression = expression = KeyExpression(p.expression)
            m.d.comb += [
                expression.dst.eq(self.dst),
                expression.quiet.eq(active.quiet),
                partial.value.eq(self._cut(m, expression.value, "value")),
                partial.pick_value.eq(flags["expression"]),
            ]
        m.d.comb += [
            partial.kind.eq(Cat(any_of([kind[bit] for kind in kinds]) for bit in range(2))),
            partial.pick_digit.eq(any_of(picks_digit)),
        ]
        if p.arbitrary:
            m.d.comb += partial.pick_address.eq(~any_of([flags[name] for name in p.flags]))
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
        tree = CompareTree(m, self.dst, reference, name)

        def results(start: int, width: int) -> tuple[Value, Value]:
            greater, different = tree(start, width)
            return self._cut(m, greater, greater.name), self._cut(m, different, different.name)

        return results

    def _of_chunk(self, piece: Callable[[int], Value], width_bits: int) -> Value:
        """Select by the run-time chunk width."""
        p = self.parameters
        choices = [(self.active.chunk[number], piece(width)) for number, width in enumerate(p.chunk_bits)]
        return choices[0][1] if len(choices) == 1 else and_or(choices, width_bits)

    def _digit_at_position(self) -> Value:
        """Digit that starts at the registered position; bits beyond the address are 0."""
        p = self.parameters
        return and_or(
            [(self.active.position[number], self.dst[position:]) for number, position in enumerate(p.positions)],
            p.widest,
        )

    def _compared(self, of_digit: Callable[[int, int], Value], number: int) -> Value:
        """Ask a tree about digit `number` in the chunk width that is set."""
        p = self.parameters
        return any_of(
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
        return first_made(m, below, "highest")[1]["digit"] if below else Const(0, p.widest)

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
            group.append(active.chunk[number] & any_of(parts))
            router.append(active.chunk[number] & own(width, min(width, p.address_bits - width))[1])
        return any_of(group), any_of(router)

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
