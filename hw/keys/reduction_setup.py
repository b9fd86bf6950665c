"""Node reduction: from what the control registers hold to what the comparators see."""

from collections.abc import Mapping

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib.data import View
from amaranth.lib.wiring import Component, In, Out

from hopforge.hw.keys.expression import QuietSteps
from hopforge.hw.keys.reduction_parameters import MODE_NUMBERS, MODES, ReductionParameters
from hopforge.hw.parts.and_or import and_or, any_of

__all__ = ["ReductionSetup"]


class ReductionSetup(Component):
    """Next value of the active registers, from what the control registers hold.

    Combinational; the engine registers ``active`` at every edge. With ``registers`` there are two of them on the way of
    the intervals: ``active`` is right two cycles after the last change, before a deep engine loads it. Tools for FPGAs
    know no path of several periods.

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
    registers : bool
        Whether the intervals have registers on their way.
    """

    shadow: View
    active: View

    def __init__(self, parameters: ReductionParameters, *, registers: bool = False) -> None:
        self.parameters, self.registers = parameters, registers
        super().__init__({"shadow": In(parameters.shadow_layout), "active": Out(parameters.active_layout)})

    def elaborate(self, platform: object) -> Module:
        """Build the decoders and one interval bound per digit."""
        m = Module()
        p, shadow, active = self.parameters, self.shadow, self.active
        if not p.reduces:
            return m
        is_mode = {name: Signal(name=f"is_{name}") for name in p.functions if name != "arbitrary"}
        for name, flag in is_mode.items():
            m.d.comb += flag.eq(shadow.mode == MODE_NUMBERS.index(name))
        m.d.comb += active.mode.eq(
            and_or([(flag, Const(MODE_NUMBERS.index(name), 3)) for name, flag in is_mode.items()], 3)
        )
        grid = any_of([is_mode[name] for name in ("mesh", "torus") if name in is_mode])
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
            m.d.comb += active.digit_mask.eq(and_or(masks, p.widest))

        shifted = and_or(
            [(flag, (shadow.own << width)[: p.address_bits]) for width, flag in chunk.items()], p.address_bits
        )
        m.d.comb += active.own.eq(Mux(fat_tree, shifted, shadow.own) if p.fat_tree else shadow.own)

        self._positions(m, chunk, grid, fat_tree)
        if p.grid:
            self._intervals(m, chunk, is_mode)
        none = Const(0, 1)
        flags = {"grid": grid, "fat_tree": fat_tree} | {
            name: is_mode.get(name, none) for name in ("dragonfly", "expression")
        }
        for name in p.flags:
            m.d.comb += getattr(active, name).eq(flags[name])
        if p.expression is not None:
            m.submodules.quiet_steps = quiet = QuietSteps(p.expression)
            m.d.comb += [quiet.own.eq(shadow.own), quiet.level.eq(shadow.level), active.quiet.eq(quiet.quiet)]
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
            m.d.comb += self.active.position[number].eq(any_of(reasons))

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
            domain = m.d.sync if self.registers else m.d.comb
            domain += [
                own.eq(
                    and_or(
                        [(chunk[width], shadow.own[digit * width : (digit + 1) * width]) for width in widths], widest
                    )
                ),
                half.eq(
                    shadow.radix[digit][1 : widest + 1] | shadow.radix[digit][widest + 1 :].any().replicate(widest)
                ),
                most.eq(and_or([(chunk[width], Const((1 << width) - 1, widest)) for width in widths], widest)),
                below.eq(own + ~half),  # own − half − 1 with the borrow inverted in the top bit: set if own > half
                above.eq(own + half),
            ]
            m.d.comb += [
                self.active.wrap[digit].eq(torus & below[widest]),
                bound.eq(
                    Mux(below[widest], below[:widest], Mux(above > most, most, above[:widest]))
                    | ~torus.replicate(widest)
                ),
            ]
            for width in widths:
                places[width].append(bound[:width])
        m.d.comb += self.active.threshold.eq(
            and_or([(chunk[width], Cat(*places[width])) for width in p.chunk_bits], p.address_bits)
        )
