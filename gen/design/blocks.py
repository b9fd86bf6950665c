"""What can be synthesized: a block, and the blocks of a lookup engine."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from amaranth.hdl import Module, Signal, Value
from amaranth.lib.data import View
from amaranth.lib.wiring import Component, In, Out

from hopforge.gen.tools.abc_recipes import QUICK, RECIPES
from hopforge.hw.cache.second_level import SecondLevel
from hopforge.hw.cache.tag_select import TagSelect
from hopforge.hw.keys.node_reduction import NodeReduction
from hopforge.hw.keys.reduction_compare import ReductionCompare
from hopforge.hw.keys.reduction_parameters import ReductionParameters
from hopforge.hw.keys.reduction_select import ReductionSelect
from hopforge.hw.keys.reduction_setup import ReductionSetup
from hopforge.hw.lookup.engine import lookup_engine, many_periods
from hopforge.hw.lookup.parallel_tcams import ParallelTcams
from hopforge.hw.lookup.tcam import Tcam
from hopforge.hw.parts.crc_hash import CrcHash
from hopforge.model.config.lookup import KEY_FUNCTIONS
from hopforge.model.lookup.params import LookupParams
from hopforge.model.numbers.crc import crc_matrix

__all__ = ["Block", "Registered", "lookup_blocks"]


PARALLEL_TCAMS = (1, 2, 4, 6, 10, 25, 63)
"""TCAMs of the rival: thesis figure 3.3 has six; 10 of 4 ns or 63 of 25 ns keep up with a cache of 0.4 ns."""


class Registered(Component):
    """A combinational component between registers: every input and output has one.

    Latency 2 cycles more than without (1 without registers at the inputs); one result per cycle. Registers have no
    reset.

    Parameters
    ----------
    inner : Component
        What lies between.
    inputs : bool
        Whether the inputs have registers too.
    """

    def __init__(self, inner: Component, *, inputs: bool = True) -> None:
        self.inner = inner
        self.inputs = inputs
        super().__init__(inner.signature)

    def elaborate(self, platform: object) -> Module:
        """Put the registers."""
        m = Module()
        m.submodules.inner = inner = self.inner
        ports = zip(self.signature.flatten(self), inner.signature.flatten(inner), strict=True)
        for (path, member, outside), (_, _, inside) in ports:
            held = Signal.like(Value.cast(inside), name=f"{'_'.join(map(str, path))}_q", reset_less=True)
            if member.flow is Out:
                m.d.sync += held.eq(inside)
                m.d.comb += outside.eq(held)
            elif self.inputs:
                m.d.sync += held.eq(outside)
                m.d.comb += inside.eq(held)
            else:
                m.d.comb += inside.eq(outside)
        return m


class KeySelect(Component):
    """Stage A2: key select and the whole CRC of the payload.

    Combinational.

    Parameters
    ----------
    parameters : ReductionParameters
        Key functions.
    masks : sequence of int
        Matrix of the index CRC.
    constant : int
        CRC of payload 0.
    """

    partial: View
    key: Signal
    index: Signal

    def __init__(self, parameters: ReductionParameters, masks: Sequence[int], constant: int) -> None:
        self.parameters = parameters
        self.masks = tuple(masks)
        self.constant = constant
        super().__init__(
            {
                "partial": In(parameters.partial_layout),
                "key": Out(parameters.key_bits),
                "index": Out(len(self.masks)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Connect select and CRC."""
        m = Module()
        m.submodules.select = select = ReductionSelect(self.parameters)
        m.submodules.hash = crc = CrcHash(
            width_bits=self.parameters.address_bits, masks=self.masks, constant=self.constant
        )
        m.d.comb += [
            select.partial.eq(self.partial),
            crc.data.eq(select.payload),
            self.key.eq(select.key),
            self.index.eq(crc.hash),
        ]
        return m


@dataclass(frozen=True, kw_only=True)
class Block:
    """Something to synthesize.

    Parameters
    ----------
    name : str
        Name in tables.
    what : str
        One line for the table.
    build : callable
        Makes the component.
    clocked : bool
        Delay = shortest clock period (with flip-flops) instead of input to output.
    aim_ns, aim_um2 : float or None
        Target delay and area (spec/router.md, Nangate 45 typical).
    recipes : tuple of str
        Recipes to try by default.
    efforts : bool
        Whether a recipe that is told a delay is tried with several.
    clock_gates : bool
        Whether registers with a common enable get a clock gate instead of multiplexers.
    on_request : bool
        Only synthesized when named: a recipe takes longer than the limit.
    many_periods : mapping of str to int
        Submodules that have several periods, and how many: what they read changes no later than that before their
        results are taken. They are mapped apart, for area.
    """

    name: str
    what: str
    build: Callable[[], Component]
    clocked: bool = False
    aim_ns: float | None = None
    aim_um2: float | None = None
    recipes: tuple[str, ...] = tuple(RECIPES)
    efforts: bool = True
    clock_gates: bool = False
    on_request: bool = False
    many_periods: Mapping[str, int] = field(default_factory=dict)


def lookup_blocks(params: LookupParams) -> dict[str, Block]:
    """All blocks of an engine, and those of the specification's table.

    Parameters
    ----------
    params : LookupParams
        The engine.

    Returns
    -------
    dict of Block
        By name, in the order of a table.
    """
    tag_bits, output_bits = params.tag_bits, params.output_bits
    found = [
        *_key_blocks(params),
        Block(
            name="tag_select", what=f"tag compare and select, {params.ways} x {tag_bits} bits", clocked=True,
            aim_ns=0.43,
            build=lambda: Registered(TagSelect(ways=params.ways, tag_bits=tag_bits, output_bits=output_bits)),
        ),
    ]  # fmt: skip
    if params.tcam_kind != "external":
        found.append(
            Block(
                name="tcam", what=f"TCAM, {params.tcam_rows} rows, {params.tcam_kind}", clocked=True, recipes=QUICK,
                build=lambda: Tcam(
                    kind=params.tcam_kind, rows=params.tcam_rows, address_bits=params.address_bits,
                    output_bits=output_bits, id_bits=params.mshr_id_bits,
                    latency_cycles=params.tcam_latency_cycles, member_bits=0,
                ),
            )
        )  # fmt: skip
    found += [
        Block(
            name=f"tcams{count}", what=f"dispatcher of {count} TCAMs that are searched in turns, TCAMs outside",
            clocked=True, recipes=QUICK, on_request=True,
            build=partial(
                ParallelTcams, tcams=count, address_bits=params.address_bits, tag_bits=params.request_tag_bits,
                output_bits=output_bits,
            ),
        )
        for count in PARALLEL_TCAMS
    ]  # fmt: skip
    pipelined = dataclasses.replace(params, pipeline_depth=4, memory_stage=False, tcam_kind="external")
    found.append(
        Block(
            name="engine", what="pipelined engine, depth 4, SRAM and TCAM outside", clocked=True, aim_ns=0.43,
            build=lambda: lookup_engine(params=pipelined), recipes=QUICK,
        )
    )  # fmt: skip
    if params.second_level is not None:
        found.append(
            Block(
                name="second_level", what="second level, SRAM outside", clocked=True, aim_ns=0.43,
                build=partial(SecondLevel, params=pipelined), recipes=QUICK,
            )
        )  # fmt: skip
    found += _deep_blocks(params)
    return {block.name: block for block in found}


def _key_blocks(params: LookupParams) -> Iterator[Block]:
    """Blocks between an address and its place in the cache: reductions to keys and the hash of a key."""
    matrix = crc_matrix(params.crc, params.address_bits)
    reduction = ReductionParameters(
        address_bits=params.address_bits, functions=params.functions, chunk_bits=params.chunk_bits,
        comparators=params.comparators, up_choices=("d_mod_k", "highest_mismatch"), max_members=params.max_members,
        crc_masks=tuple(matrix.masks), crc_constant=matrix.constant,
        expression=None if params.expression is None else params.expression.program,
    )  # fmt: skip
    torus = ReductionParameters(
        address_bits=48, functions=("torus",), chunk_bits=(8,), comparators=6, terminals=False
    )  # fmt: skip
    tree = ReductionParameters(address_bits=20, functions=("fat_tree",), chunk_bits=(5,), comparators=4)
    dragonfly = ReductionParameters(functions=("dragonfly",), chunk_bits=(8,))
    every = dataclasses.replace(reduction, functions=KEY_FUNCTIONS, expression=None)
    index = range(max(1, params.index_bits))
    yield from (
        Block(
            name="crc_index", what="set index: CRC of the payload", aim_ns=0.186,
            build=lambda: CrcHash(
                width_bits=params.address_bits, masks=[matrix.masks[row] for row in index],
                constant=matrix.constant & (1 << len(index)) - 1,
            ),
        ),
        Block(
            name="torus", what="torus reduction, run-time k, 6 dimensions x 8 bits", aim_ns=0.25, aim_um2=480,
            build=lambda: NodeReduction(torus),
        ),
        Block(
            name="fat_tree", what="fat-tree reduction, 4 digits x 5 bits", aim_ns=0.15, aim_um2=80,
            build=lambda: NodeReduction(tree),
        ),
        Block(name="dragonfly", what="dragonfly reduction, 3 fields of 8 bits", build=lambda: NodeReduction(dragonfly)),
        Block(name="reduction", what="reduction as configured, one step", build=lambda: NodeReduction(reduction)),
        Block(
            name="stage_a1", what="compare, all functions, with registers", clocked=True, aim_ns=0.43,
            build=lambda: Registered(ReductionCompare(every)),
        ),
        Block(
            name="stage_a2", what="key select and CRC-32, with registers", clocked=True, aim_ns=0.43,
            build=lambda: Registered(KeySelect(every, matrix.masks, matrix.constant)),
        ),
        Block(
            name="setup", what="registers that the comparators see, with registers", clocked=True,
            build=lambda: Registered(ReductionSetup(every)), recipes=QUICK,
        ),
    )  # fmt: skip


def _deep_blocks(params: LookupParams) -> Iterator[Block]:
    """Deep engines; only synthesized when named."""
    inside = dataclasses.replace(params, pipeline_depth=params.pipeline_depth if params.pipeline_depth > 4 else 8)
    outside = dataclasses.replace(inside, tcam_kind="external")
    kinds = [("engine_deep", "SRAM and TCAM outside", outside), ("engine_deep_gated", "the same, clock gates", outside)]
    if params.tcam_kind != "external":
        kinds.append(("engine_deep_tcam", "SRAM outside, TCAM inside", inside))
    stage = " and a memory stage" if inside.memory_stage else ""
    for name, what, deep in kinds:
        yield Block(
            name=name, what=f"deep engine, depth {deep.pipeline_depth}{stage}, {what}", clocked=True, aim_ns=0.43,
            build=partial(lookup_engine, params=deep), recipes=QUICK, many_periods=many_periods(deep),
            clock_gates=name == "engine_deep_gated", on_request=True,
        )  # fmt: skip
